"""Used by the pages and the sidecar: sockets, connections, guards, limits, and answers to errors."""
