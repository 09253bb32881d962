"""`Closing`: a base class for objects that hold a forest or a connection until they are closed."""

import threading
from types import TracebackType
from typing import Self

from esdedup.errors import EsdedupError

ENDING = threading.Event()
"""Set when this process is about to exit, to stop all waiting for a server that does not answer."""


class Closing:
    """Makes a class with `close` a context manager."""

    def close(self) -> None:
        """Release the object's resources."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except EsdedupError:
            # Let the caller see the error that ended the `with` block.
            if error is None:
                raise
