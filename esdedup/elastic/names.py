"""Names of indices."""

from esdedup.elastic.limits import MAX_INDEX_NAME_BYTES
from esdedup.errors import SettingError

DEFAULT_FOREST = "esdedup-forest"
"""The default name of a forest's index."""


def check_index_name(name: str) -> None:
    """Make sure that a single index can have this name.

    Raises:
        SettingError: Elasticsearch would refuse it, or read it as several indices.
    """
    is_bad = name in {"", ".", ".."} or name[0] in "_-+" or name != name.lower()
    if (
        is_bad
        or len(name.encode()) > MAX_INDEX_NAME_BYTES
        or any(character in '\\/*?"<>| ,#:' for character in name)
    ):
        raise SettingError(
            f"{name!r} cannot name one index: lower case, not beginning with _ - or +, "
            'and without white space or any of \\ / * ? " < > | , # :'
        )
