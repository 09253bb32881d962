"""Mappings and requests as JSON, to be used with curl as they are.

`articles.json` is a component template, `forest.json` the index of a forest; `list-newest.json`,
`list-most-similar.json` and `similar.json` are searches.
"""
