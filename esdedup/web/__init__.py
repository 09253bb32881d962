"""The pages, and the same answers as JSON over HTTP."""

from esdedup.web.app import create_app

__all__ = ["create_app"]
