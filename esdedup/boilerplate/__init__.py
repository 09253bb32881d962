"""Learned boilerplate: which passages of pages belong to their sites, and not to an article.

Nobody names sites or marks their passages: what repeats while the rest of the page differs is boilerplate.
Pure: no I/O, clock or environment; the same pages in the same order teach the same. May import `neighbours`
(for its tables), `text` and `errors`.
"""
