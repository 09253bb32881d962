"""`Overrides`: passages that a person has declared to be boilerplate or text.

Learned boilerplate can be wrong: a footer may be too rare, a hundred weather reports may share a sentence, or
somebody may have planted a passage. Overrides take precedence. They are settings, not learned data, and apply
to pages that arrive later. The package ships overrides for placeholders, which many sites serve instead of
articles. A text that consists only of declared boilerplate gets no fingerprint.
"""

import codecs
import dataclasses
import functools
import html
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources

import numpy as np

from esdedup import _core
from esdedup.errors import SettingError
from esdedup.fingerprint.signature import Fingerprints
from esdedup.sites import site_name
from esdedup.text.parsed import ParsedTexts, Passages

# A text without these characters has no markup.
_MARKUP = frozenset("<&")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Override:
    """Declares each passage of a text to be boilerplate or text, on one site or on all sites.

    Raises:
        SettingError: There are both or neither of `boilerplate` and `text`; or a value is blank or not a
        string.
    """

    # Exactly one of these two contains the passages, either with markup or as readers see them.
    boilerplate: str | None = None
    text: str | None = None
    # A name or an address; None for all sites.
    site: str | None = None

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if value is not None and not isinstance(value, str):
                raise SettingError(f"its {name} must be a string, not {type(value).__name__}")
            if value is not None and not value.strip():
                raise SettingError(f"its {name} is blank")
        if (self.boilerplate is None) is (self.text is None):
            raise SettingError("it must have either boilerplate or text")


class Overrides:
    """Passages that a person has declared to be boilerplate or text."""

    def __init__(self, overridden: Mapping[tuple[int, str | None], bool]) -> None:
        """Create overrides. Precedence: overrides for a site, overrides for all sites, shipped overrides.

        Args:
            overridden: By hash and site (None for all sites), True for boilerplate and False for text.
        """
        self._overridden = dict(overridden)

    @functools.cached_property
    def _with_shipped(self) -> dict[tuple[int, str | None], bool]:
        return _shipped() | self._overridden

    @functools.cached_property
    def core(self) -> _core.OverrideTable:
        """These overrides and the shipped overrides, as a table of the crate."""
        return _core.OverrideTable([(*place, declared) for place, declared in self._with_shipped.items()])

    def declare_all(self, text: str, site: str | None) -> bool:
        """Return whether a raw text of a site consists only of declared boilerplate."""
        declared = self._with_shipped
        return all(
            declared.get((passage, site), declared.get((passage, None), False))
            for passage in _passages([text]).hashes.tolist()
        )

    @classmethod
    def of(cls, overrides: Iterable[Override] | Mapping[str, Override]) -> "Overrides":
        """Create overrides from `Override` objects.

        Args:
            overrides: The overrides, or a mapping from the names that messages use to the overrides.

        Raises:
            SettingError: An override has no letters or digits; or two overrides contradict each other.
        """
        named = (
            overrides
            if isinstance(overrides, Mapping)
            else {f"override {n}": override for n, override in enumerate(overrides, 1)}
        )
        given = [override.boilerplate or override.text or "" for override in named.values()]
        texts = _passages(given)
        overridden: dict[tuple[int, str | None], bool] = {}
        first: dict[tuple[int, str | None], str] = {}
        for at, (name, override) in enumerate(named.items()):
            hashes = texts.hashes[slice(*np.searchsorted(texts.texts, (at, at + 1)))].tolist()
            if not hashes:
                raise SettingError(f"{name}: it has no letters or digits outside of markup")
            is_boilerplate, site = _scope(override)
            for number, passage in enumerate(hashes, 1):
                earlier = first.setdefault((passage, site), name)
                if overridden.setdefault((passage, site), is_boilerplate) != is_boilerplate:
                    kinds = ("boilerplate", "text") if is_boilerplate else ("text", "boilerplate")
                    raise SettingError(
                        f"{name}: passage {number} of its {kinds[0]} is {kinds[1]} in {earlier}, both "
                        f"{'for all sites' if site is None else f'for the site {site!r}'} (in short "
                        "passages, all numbers count as equal)"
                    )
        # `<b>` or `&amp;` may also be text that readers see. If reading them as text yields other passages,
        # override those passages too.
        visible = [
            (override, text)
            for override, text in zip(named.values(), given, strict=True)
            if _MARKUP & set(text)
        ]
        texts = _passages([html.escape(text, quote=False) for _, text in visible])
        for place, passage in zip(texts.texts.tolist(), texts.hashes.tolist(), strict=True):
            is_boilerplate, site = _scope(visible[place][0])
            overridden.setdefault((passage, site), is_boilerplate)
        return cls(overridden)

    @classmethod
    def of_lines(cls, lines: Iterable[bytes], *, name: str = "line") -> "Overrides":
        """Read overrides from the lines of a file: JSON objects with the fields of `Override`.

        Empty lines, and lines that begin with ``#``, are skipped.

        Args:
            lines: For example a file opened for reading bytes.
            name: The name of the file in messages.

        Raises:
            SettingError: A line is not an override, has no letters or digits, or contradicts another line.
        """
        overrides = {}
        for number, line in enumerate(lines, 1):
            content = line.removeprefix(codecs.BOM_UTF8).strip()
            if content and not content.startswith(b"#"):
                overrides[f"{name}:{number}"] = _override(content, f"{name}:{number}")
        return cls.of(overrides)

    def __len__(self) -> int:
        """The number of declarations: one for each passage and site."""
        return len(self._overridden)


NO_OVERRIDES = Overrides({})


def without_placeholders(
    overrides: Overrides, found: Fingerprints, texts: Sequence[str], sites: Sequence[str | None]
) -> Fingerprints:
    """Return the fingerprints, but none for raw texts that consist only of declared boilerplate."""
    empty = (at for at in found.boilerplate_letters.nonzero()[0].tolist() if found.alphanumerics[at] == 0)
    return found.without([at for at in empty if overrides.declare_all(texts[at], sites[at])])


def refuse_useless(overrides: Overrides, *, keep_boilerplate: bool) -> None:
    """Raise `SettingError` if overrides would have no effect because the profile keeps boilerplate."""
    if keep_boilerplate and len(overrides):
        raise SettingError(
            "overrides would have no effect with a profile that keeps boilerplate, since it uses whole "
            "pages: use only one of the two settings"
        )


def _override(line: bytes, name: str) -> Override:
    try:
        values = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{name}: is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise SettingError(f"{name}: is JSON, but not an object")
    known = [field.name for field in dataclasses.fields(Override)]
    if unknown := [each for each in values if each not in known]:
        raise SettingError(f"{name}: {unknown[0]!r:.60} is not one of {', '.join(known)}")
    try:
        return Override(**values)
    except SettingError as error:
        raise SettingError(f"{name}: {error}") from error


@functools.cache
def _shipped() -> dict[tuple[int, str | None], bool]:
    with (resources.files("esdedup.boilerplate") / "placeholders.jsonl").open("rb") as lines:
        return Overrides.of_lines(lines)._overridden


def _scope(override: Override) -> tuple[bool, str | None]:
    """Return whether an override declares boilerplate, and its site."""
    return override.boilerplate is not None, site_name(override.site or "")


def _passages(texts: Sequence[str]) -> Passages:
    return ParsedTexts.of(texts, max_length=sys.maxsize).passages
