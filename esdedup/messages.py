"""Messages that the pages show in the visitor's language."""


def translatable(message: str) -> str:
    """Mark a message for extraction; it is translated where it is shown."""
    return message
