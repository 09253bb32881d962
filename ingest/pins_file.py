"""Pins in a file."""

from pathlib import Path

from esdedup.boilerplate.pins import NO_PINS, Pins, refuse_useless
from esdedup.errors import SettingError


def read_pins(path: Path | None, *, keep_boilerplate: bool) -> Pins:
    """Return the pins in a file, none if no file is named.

    Args:
        path: JSON Lines.
        keep_boilerplate: Whether nothing is left out of fingerprints, so that pins would mean nothing.

    Raises:
        SettingError: The file cannot be read, or is wrong; or boilerplate is kept anyway.
    """
    if path is None:
        return NO_PINS
    try:
        with path.open("rb") as lines:
            pins = Pins.of_lines(lines, name=str(path))
    except OSError as error:
        raise SettingError(f"cannot read {path}: {error.strerror}") from error
    refuse_useless(pins, keep_boilerplate=keep_boilerplate)
    return pins
