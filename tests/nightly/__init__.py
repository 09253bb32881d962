"""Checks that are too large for the default suite, each with its own command."""
