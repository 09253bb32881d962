"""Entry points that feed Elasticsearch, and files: reading articles, indexing and clustering them."""
