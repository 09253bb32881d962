"""Mappings and searches as JSON files; `README.md` describes those for use with curl.

`articles.json` is a component template and `forest.json` the body of a forest's index without its metadata.
"""
