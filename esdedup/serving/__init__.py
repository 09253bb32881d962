"""Shared by the pages and the sidecar: sockets and connections, guards and limits, answers to errors."""
