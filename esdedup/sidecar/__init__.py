"""A proxy in front of Elasticsearch that owns a forest and adds roots to the articles of many feeders.

Articles are forwarded to Elasticsearch with their roots, and all other requests unchanged.
"""
