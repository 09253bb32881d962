"""The command line."""

from esdedup.cli.app import main

__all__ = ["main"]
