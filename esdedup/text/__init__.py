"""Normalises raw texts, and divides them into sentences, tokens and words.

The same text gives the same result on every machine. Pure, except that dictionaries and tables of installed
packages are read on first use.
"""
