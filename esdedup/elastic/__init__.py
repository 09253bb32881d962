"""The way into and out of Elasticsearch: clients, errors, requests and their execution, indices.

Foreign exceptions become ours here. May import `forest` and what lies below it.
"""
