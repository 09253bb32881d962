"""Names of indices."""

from esdedup.elastic.limits import MAX_INDEX_NAME_BYTES
from esdedup.errors import SettingError

DEFAULT_FOREST = "esdedup-forest"
"""The index of the forest, unless another one is named."""


def check_index_name(name: str) -> None:
    """Refuse a name that no index can have, before it is sent.

    Raises:
        SettingError: Elasticsearch would refuse it, or take it for several indices.
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
