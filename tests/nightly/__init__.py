"""Checks too large for the default suite: each is a command of its own."""
