"""Learned boilerplate: which passages of pages belong to their sites, and not to an article.

Nobody need name sites or mark their passages: what repeats while the rest of the page differs is boilerplate.
Where that is wrong, people override it. The rules are in the crate: `core/src/boilerplate/`.
Pure: no I/O, clock or environment; the same pages in the same order teach the same. May import `fingerprint`,
`text`, `sites` and `errors`.
"""
