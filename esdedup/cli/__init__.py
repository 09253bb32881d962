"""The command line: options become calls, results tables or JSON, errors advice and exit codes.

Alone reads the environment. May import everything; nothing imports it.
"""

from esdedup.cli.app import main

__all__ = ["main"]
