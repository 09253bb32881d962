"""Sockets, connections, guards, limits and error responses, for the web pages and the sidecar."""
