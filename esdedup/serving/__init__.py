"""What the pages and the sidecar both need to listen and to answer.

These are sockets and connections, guards and limits, and what is answered to errors. Needs uvicorn, Starlette
and FastAPI, and nothing of this package but its errors and what it knows of origins.
"""
