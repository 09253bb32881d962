"""Mappings and searches as JSON files, for use with curl.

`articles.json` is a component template and `forest.json` creates the index of a forest. `list-newest.json`,
`list-most-similar.json` and `similar.json` are searches.
"""
