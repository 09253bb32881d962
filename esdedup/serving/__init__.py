"""What the pages and the sidecar both need to listen: sockets, and connections that do not last for ever.

Needs uvicorn and nothing of this package but its errors.
"""
