"""Closing what was opened, without hiding what went wrong in between."""

from types import TracebackType
from typing import Self

from esdedup.errors import EsdedupError


class Closing:
    """A context manager for what has `close`."""

    def close(self) -> None:
        """Let go of what is held."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except EsdedupError:
            # What went wrong first is what the caller must see.
            if error is None:
                raise
