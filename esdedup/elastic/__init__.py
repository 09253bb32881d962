"""The way into and out of Elasticsearch."""
