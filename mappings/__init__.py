"""Mappings as JSON. `articles.json` is a component template, `forest.json` an index."""
