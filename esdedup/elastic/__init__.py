"""Everything that talks to Elasticsearch: clients, requests and their execution, article indices, forests.

Translates the client's exceptions into those of `esdedup.errors`. `limits` has the limits of Elasticsearch.
"""
