"""Everything that talks to Elasticsearch: clients, requests and their execution, article indices, forests.

The client's exceptions become those of `esdedup.errors` here; the limits of Elasticsearch are in `limits`.
"""
