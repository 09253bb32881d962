"""Messages that the pages show in the visitor's language."""


def translatable(message: str) -> str:
    """Mark a message, so that it is found when messages are collected; it is translated where it is shown."""
    return message
