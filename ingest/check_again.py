"""Recognises an index that was deleted while articles were written to it. Pure but for the check."""

from collections.abc import Callable

from esdedup.errors import IndexNotReady


def check_again(check: Callable[[str], object], index: str) -> None:
    """Raise if an index that was deleted has come back without the fields, as bulk requests bring it back.

    Args:
        check: Raises if articles cannot be written to an index.
        index: Articles have been written to it, or are being written.

    Raises:
        IndexNotReady: It was deleted, changed or closed.
    """
    try:
        check(index)
    except IndexNotReady as error:
        if error.status is None and not error.missing_fields:
            raise  # closed
        raise IndexNotReady(
            f"the index {index!r} was deleted or changed while articles were written to it ({error}): delete "
            "what is there now, set it up, and index the articles again",
            status=error.status,
            index=index,
            missing_fields=error.missing_fields,
        ) from error
