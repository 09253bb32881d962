"""The forest's store in Elasticsearch: its index, the search for nodes, the one writer, expiry."""
