"""Optional parts of esdedup: the extras of its package."""

import contextlib
from collections.abc import Iterator

from esdedup.errors import SettingError


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """Name the extra to install if an import in this block fails; the block belongs inside a command.

    So `--help` works without the extra.

    Raises:
        SettingError: A package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(
            f"this command needs {error.name}, which is not installed: pip install 'esdedup[{name}]'"
        ) from error
