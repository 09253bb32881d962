"""`Pins`: passages that a person has declared boilerplate, or text.

What pages teach can be wrong: a footer that is too rare, a sentence that a hundred weather reports share, or
what somebody has taught on purpose. Pins decide instead. They are settings, and no part of what is learned:
they count for pages that come from now on.
"""

import codecs
import dataclasses
import html
import json
import sys
from collections.abc import Iterable, Mapping, Sequence

from esdedup._core import Overrides
from esdedup.errors import SettingError
from esdedup.sites import site_name
from esdedup.text.parsed import ParsedTexts, Passages

# A text without these has no markup.
_MARKUP = frozenset("<&")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pin:
    """Declares each passage of a text to be boilerplate, or text, on one site or on all.

    Raises:
        SettingError: It has both, or neither; or a value is blank, or no string.
    """

    # One of both: the passages, as they stand in the text with its markup, or as readers see them.
    boilerplate: str | None = None
    text: str | None = None
    # A name or an address. None: all sites.
    site: str | None = None

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if value is not None and not isinstance(value, str):
                raise SettingError(f"its {name} is a {type(value).__name__}, not a string")
            if value is not None and not value.strip():
                raise SettingError(f"its {name} is blank")
        if (self.boilerplate is None) is (self.text is None):
            raise SettingError("it must have either boilerplate or text")


class Pins:
    """Passages that are pinned, to be found in pages."""

    def __init__(self, pinned: Mapping[tuple[int, str | None], bool]) -> None:
        """Take passages, by their hashes and the site where they are pinned, None for all.

        On a site, what is pinned there counts, and not what is pinned for all.

        Args:
            pinned: Whether each is boilerplate; if not, it is text.
        """
        self._count = len(pinned)
        self.overrides = Overrides(
            [(passage, site, is_boilerplate) for (passage, site), is_boilerplate in pinned.items()]
        )

    @classmethod
    def of(cls, pins: Iterable[Pin] | Mapping[str, Pin]) -> "Pins":
        """Take pins.

        Args:
            pins: With names for messages, or without.

        Raises:
            SettingError: A pin has no letter or digit; or two contradict each other.
        """
        named = pins if isinstance(pins, Mapping) else {f"pin {n}": pin for n, pin in enumerate(pins, 1)}
        given = [pin.boilerplate or pin.text or "" for pin in named.values()]
        texts = _passages(given)
        pinned: dict[tuple[int, str | None], bool] = {}
        first: dict[tuple[int, str | None], str] = {}
        for at, (name, pin) in enumerate(named.items()):
            hashes = texts.of_texts(at, at + 1).hashes.tolist()
            if not hashes:
                raise SettingError(f"{name}: it has no letters or digits outside of markup")
            is_boilerplate, site = _scope(pin)
            for number, passage in enumerate(hashes, 1):
                earlier = first.setdefault((passage, site), name)
                if pinned.setdefault((passage, site), is_boilerplate) != is_boilerplate:
                    kinds = ("boilerplate", "text") if is_boilerplate else ("text", "boilerplate")
                    raise SettingError(
                        f"{name}: passage {number} of its {kinds[0]} is {kinds[1]} in {earlier}, both "
                        f"{'for all sites' if site is None else f'for the site {site!r}'} (in short "
                        "passages, all numbers count as equal)"
                    )
        # Readers may see `<b>` or `&amp;` as well: where that makes other passages, these are pinned too.
        visible = [
            (pin, text) for pin, text in zip(named.values(), given, strict=True) if _MARKUP & set(text)
        ]
        texts = _passages([html.escape(text, quote=False) for _, text in visible])
        for place, passage in zip(texts.texts.tolist(), texts.hashes.tolist(), strict=True):
            is_boilerplate, site = _scope(visible[place][0])
            pinned.setdefault((passage, site), is_boilerplate)
        return cls(pinned)

    @classmethod
    def of_lines(cls, lines: Iterable[bytes], *, name: str = "line") -> "Pins":
        """Read pins from the lines of a file: JSON objects with the fields of `Pin`.

        Empty lines, and those that begin with ``#``, are skipped.

        Args:
            lines: Such as a file that is open for reading bytes.
            name: The file's, for messages.

        Raises:
            SettingError: A line is no pin, has no letter or digit, or contradicts another.
        """
        pins = {}
        for number, line in enumerate(lines, 1):
            content = line.removeprefix(codecs.BOM_UTF8).strip()
            if content and not content.startswith(b"#"):
                pins[f"{name}:{number}"] = _pin(content, f"{name}:{number}")
        return cls.of(pins)

    def __len__(self) -> int:
        """The number of pinned passages, for each site where they are."""
        return self._count


NO_PINS = Pins({})


def refuse_useless(pins: Pins, *, keep_boilerplate: bool) -> None:
    """Make sure that pins have an effect.

    Raises:
        SettingError: The profile keeps boilerplate, so nothing is left out.
    """
    if keep_boilerplate and len(pins):
        raise SettingError(
            "pins would have no effect with a profile that keeps boilerplate, since it takes pages whole: "
            "leave out one of them"
        )


def _pin(line: bytes, name: str) -> Pin:
    try:
        return _of_values(json.loads(line.decode()))
    except UnicodeDecodeError as error:
        raise SettingError(f"{name}: is not UTF-8 (byte {error.start + 1})") from error
    except json.JSONDecodeError as error:
        raise SettingError(f"{name}: is not JSON: {error.msg} at character {error.pos + 1}") from error
    except SettingError as error:
        raise SettingError(f"{name}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{name}: is not valid JSON: {error}") from error


def _of_values(values: object) -> Pin:
    if not isinstance(values, Mapping):
        raise SettingError("is JSON, but not an object")
    known = [field.name for field in dataclasses.fields(Pin)]
    if unknown := [each for each in values if each not in known]:
        raise SettingError(f"{unknown[0]!r:.60} is none of {', '.join(known)}")
    return Pin(**values)


def _scope(pin: Pin) -> tuple[bool, str | None]:
    """Return whether a pin declares boilerplate, and on which site."""
    return pin.boilerplate is not None, site_name(pin.site or "")


def _passages(texts: Sequence[str]) -> Passages:
    """Return the passages of raw texts, as they are found in pages."""
    return ParsedTexts.of(texts, max_length=sys.maxsize).passages
