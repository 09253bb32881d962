"""What the pages and the sidecar both need to listen and to answer: sockets, bounded connections, problems.

Needs uvicorn and Starlette, and nothing of this package but its errors.
"""
