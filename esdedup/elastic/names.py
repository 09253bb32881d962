"""Checks the names of indices."""

from collections.abc import Sequence

from esdedup.errors import SettingError

DEFAULT_FOREST = "esdedup-forest"
"""The default name of a forest's index."""

_MAX_BYTES = 255


def check_index_names(names: Sequence[str]) -> None:
    """Raise `SettingError` unless `names` is a list of names, aliases or patterns, none of them empty."""
    if isinstance(names, str):
        raise SettingError(f"name the indices of the articles as a list: [{names!r}]")
    if not all(names):
        raise SettingError("the name of an article index is empty")


def check_index_name(name: str) -> str:
    """Return the name, or raise `SettingError` if it cannot be the name of a single index."""
    if (
        name in {"", ".", ".."}
        or name[0] in "_-+"
        or name != name.lower()
        or len(name.encode(errors="replace")) > _MAX_BYTES
        or any(character in '\\/*?"<>| ,#:' for character in name)
    ):
        raise SettingError(
            f"{name!r} is not a valid name for an index: a name must be lower case, not begin with _ - or +, "
            'and have no white space and none of \\ / * ? " < > | , # :'
        )
    return name
