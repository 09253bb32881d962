"""Names of indices."""

from collections.abc import Sequence

from esdedup.elastic.limits import MAX_INDEX_NAME_BYTES
from esdedup.errors import SettingError

DEFAULT_FOREST = "esdedup-forest"
"""The default name of a forest's index."""


def check_index_names(names: Sequence[str]) -> None:
    """Make sure that these are names, aliases or patterns in a list, none of them empty.

    Raises:
        SettingError: It is a single string, or a name is empty.
    """
    if isinstance(names, str):
        raise SettingError(f"name the indices of the articles as a list: [{names!r}]")
    if not all(names):
        raise SettingError("the name of an index of articles is empty")


def check_index_name(name: str) -> None:
    """Make sure that a single index can have this name.

    Raises:
        SettingError: Elasticsearch would refuse it, or read it as several indices.
    """
    is_bad = name in {"", ".", ".."} or name[0] in "_-+" or name != name.lower()
    if (
        is_bad
        or len(name.encode(errors="replace")) > MAX_INDEX_NAME_BYTES
        or any(character in '\\/*?"<>| ,#:' for character in name)
    ):
        raise SettingError(
            f"{name!r} cannot name one index: lower case, not beginning with _ - or +, "
            'and without white space or any of \\ / * ? " < > | , # :'
        )
