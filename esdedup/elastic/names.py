"""Names of indices."""

from collections.abc import Sequence

from esdedup.errors import SettingError

DEFAULT_FOREST = "esdedup-forest"
"""The default name of a forest's index."""

_MAX_BYTES = 255


def check_index_names(names: Sequence[str]) -> None:
    """Make sure that these are names, aliases or patterns in a list, none of them empty."""
    if isinstance(names, str):
        raise SettingError(f"name the indices of the articles as a list: [{names!r}]")
    if not all(names):
        raise SettingError("the name of an index of articles is empty")


def check_index_name(name: str) -> str:
    """Return a name that a single index can have: Elasticsearch neither refuses nor divides it."""
    if (
        name in {"", ".", ".."}
        or name[0] in "_-+"
        or name != name.lower()
        or len(name.encode(errors="replace")) > _MAX_BYTES
        or any(character in '\\/*?"<>| ,#:' for character in name)
    ):
        raise SettingError(
            f"{name!r} cannot name one index: lower case, not beginning with _ - or +, "
            'and without white space or any of \\ / * ? " < > | , # :'
        )
    return name
