"""Learned boilerplate: the passages of web pages that belong to a site, and not to an article.

Boilerplate is learned without configuration: it recurs on pages that otherwise differ. Overrides
take precedence over learned boilerplate. The rules are in the crate: `core/src/boilerplate/`. Pure: no I/O,
clock or environment, so the result depends only on the pages and their order.
"""
