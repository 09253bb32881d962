"""Parts of esdedup that are installed on request."""

import contextlib
from collections.abc import Iterator

from esdedup.errors import SettingError


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """Import what an extra of esdedup brings, inside a function: help must work without it.

    Raises:
        SettingError: A package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(
            f"{error.name} is not installed, which this command needs: pip install 'esdedup[{name}]'"
        ) from error
