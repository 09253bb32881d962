"""From raw text to normal text, sentences, tokens and words. Pure.

Imports nothing of esdedup but `errors`: here nobody knows what a fingerprint is.
"""
