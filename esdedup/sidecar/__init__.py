"""One process that owns a forest, and takes articles from many feeders over HTTP.

It speaks Elasticsearch's own interface: articles go on to Elasticsearch with their roots, everything else
as it came.
"""
