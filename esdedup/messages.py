"""Marks messages that the web pages show in the visitor's language."""


def translatable(message: str) -> str:
    """Mark a message for extraction and return it unchanged; the pages translate it when they show it."""
    return message
