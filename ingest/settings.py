"""Settings, each declared once: what it is called, what it is, its range and its default.

Options of commands, the sidecar's settings, messages, and the tables in documents are made from the fields.
"""

import dataclasses
import functools
import itertools
import json
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ByteSize, ConfigDict, Field, SecretStr

from esdedup import fingerprint
from esdedup.errors import SettingError

if TYPE_CHECKING:
    from esdedup.boilerplate.overrides import Overrides
    from esdedup.fingerprint.profile import Profile

_AS_NAMED = "as the name"
_MB = 1024 * 1024
# Descriptions of the values of each type, for messages and for the help.
_KINDS: dict[Any, tuple[str, str | None]] = {
    bool: ("true or false", None),
    ByteSize: ("a number of bytes, or such as 64MiB", "BYTES"),
    int: ("a whole number", "INTEGER"),
    float: ("a number", "NUMBER"),
    Path: ("a file", "FILE"),
    tuple: ("names, separated by commas", "NAME"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Naming:
    """Names and help of a setting that do not follow from its field and default."""

    # The heading that it and the following ones are shown under; None: that of the one before.
    heading: str | None = None
    # None: it has no option, since everybody on a machine can read command lines.
    flag: str | None = _AS_NAMED
    # Variables of other commands that count too, if ours is not set; the first one that is set counts.
    others: tuple[str, ...] = ()
    # What it is if it is not given, where its default is None.
    default: str = ""
    # What stands for a value in the help; None: that of its type.
    metavar: str | None = None


class SettingGroup(BaseModel):
    """Settings that belong together: fields with a docstring, and perhaps a `Naming`."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, defer_build=True)
    # The order of headings; () leaves settings in that of the fields.
    headings: ClassVar[tuple[str, ...]] = ()

    def given(self) -> dict[str, Any]:
        """Return the values that differ from the defaults, by the names of their fields."""
        return self.model_dump(exclude_defaults=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting, as it is described."""

    name: str
    # The heading that it is shown under, if any.
    group: str | None
    description: str
    # Its option, if it has one.
    flag: str | None
    # Its environment variables: ours, and those of other commands; the first one counts most.
    variables: tuple[str, ...]
    # The type of its value, if it has one, without what is in it, such as `tuple`.
    kind: Any
    # As text; empty without a default.
    default: str
    least: float | None
    most: float | None
    allowed: str
    metavar: str | None

    @property
    def called(self) -> str:
        """What those call it who give it."""
        variable = next(iter(self.variables), "")
        return f"{self.flag} ({variable})" if self.flag and variable else self.flag or variable

    @property
    def is_secret(self) -> bool:
        """Whether its value is never shown."""
        return self.kind is SecretStr


@functools.cache
def settings_of(model: type[SettingGroup]) -> list[Setting]:
    """Return all settings, in their order; those with the same heading follow each other."""
    found: list[Setting] = []
    prefix = str(model.model_config.get("env_prefix", ""))
    order = {heading: place for place, heading in enumerate(model.headings)}
    for name, field in model.model_fields.items():
        named = next((each for each in field.metadata if isinstance(each, Naming)), Naming())
        given = [each for each in get_args(field.annotation) if each is not NoneType]
        value_type = given[0] if NoneType in get_args(field.annotation) else field.annotation
        kind = get_origin(value_type) or value_type
        least: Any = next((each.ge for each in field.metadata if isinstance(each, annotated_types.Ge)), None)
        most: Any = next((each.le for each in field.metadata if isinstance(each, annotated_types.Le)), None)
        found.append(
            Setting(
                name=name,
                group=named.heading or (found[-1].group if found else None),
                description=" ".join((field.description or "").split()),
                flag=f"--{name.replace('_', '-')}" if named.flag == _AS_NAMED else named.flag,
                variables=(*filter(None, [prefix and f"{prefix}{name.upper()}"]), *named.others),
                kind=kind,
                default=named.default or _default(field.default),
                least=least,
                most=most,
                allowed=_allowed(kind, value_type, least, most),
                metavar=named.metavar or _KINDS.get(kind, ("", None))[1],
            )
        )
    return sorted(found, key=lambda each: order.get(each.group or "", 0))


def _default(value: object) -> str:
    match value:
        case None | ():
            return ""
        case ByteSize():
            return f"{value // _MB}MiB"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _allowed(kind: Any, value_type: Any, least: float | None, most: float | None) -> str:
    if kind is Literal:
        return f"one of {', '.join(get_args(value_type))}"
    text, _ = _KINDS.get(kind, ("a text", None))
    if least is None:
        return text
    return f"{text}, {least:,} or more" if most is None else f"{text}, {least:,} to {most:,}"


def names_of(model: type[SettingGroup], *names: str) -> str:
    """Return the names by which settings can be given, for a message."""
    settings = [each for name in names for each in settings_of(model) if each.name == name]
    called = [each.called for each in settings]
    return " and ".join(filter(None, (", ".join(called[:-1]), called[-1])))


def as_toml(settings: SettingGroup) -> str:
    """Return settings as TOML that can be read again; unset and secret ones are comments."""
    lines: list[str] = []
    # Secrets are masked.
    values = settings.model_dump(mode="json", exclude={"config"})
    for group, members in itertools.groupby(settings_of(type(settings)), lambda each: each.group):
        lines += [f"# {group}", ""]
        for setting in members:
            if setting.name in values:
                value = values[setting.name]
                shown = (setting.default or None) if value is None else value
                # JSON's strings, numbers, lists and booleans are TOML's, but for one control character.
                text = "" if shown is None else json.dumps(shown, ensure_ascii=False)
                mark = "# " if value is None or setting.is_secret else ""
                lines += [f"# {setting.description}", f"{mark}{setting.name} = {text}".rstrip(), ""]
    return "\n".join(lines).replace("\x7f", "\\u007f")


class Cut(SettingGroup):
    """How texts are cut into words."""

    segmenter: Annotated[str | None, Naming(heading="Fingerprint", default="jieba")] = None
    """How classic and keywords cut texts into words: jieba, words (letters and digits between others), or
    n-grams such as 3-grams."""
    dictionary: Path | None = None
    """Words that jieba keeps whole: one a line, perhaps with its frequency and part of speech, as in jieba's
    user dictionaries. A word of the frequency 0 is parted."""


class Fingerprinting(Cut):
    """The profile that texts are fingerprinted with."""

    weights: Annotated[str | None, Naming(default="tf-idf")] = None
    """Word weights of the profiles classic and keywords: tf-idf, tf, or a JSON file, as `esdedup weights`
    writes it or an object of words and their weights."""
    stop_words: Path | None = None
    """Words that weigh nothing, one a line."""
    token_hash: Annotated[str | None, Naming(default="murmur3")] = None
    """How classic and keywords hash words: murmur3, crc32, python2, times33."""
    zero_bit: Annotated[int | None, Naming(default="0")] = Field(default=None, ge=0, le=1)
    """The bit of a simhash where weights add up to zero: 0, or 1 as in much published code."""
    profile: Annotated[str | None, Naming(default=fingerprint.DEFAULT_PROFILE)] = None
    """How texts are fingerprinted: verified, classic or keywords."""
    keywords: int | None = Field(default=None, ge=1, le=fingerprint.MAX_KEYWORDS)
    """How many words the profile keywords takes."""
    resemblance: Annotated[float | None, Naming(default=f"{fingerprint.RESEMBLANCE:g}")] = Field(
        default=None, ge=fingerprint.LEAST_RESEMBLANCE, le=fingerprint.MOST_RESEMBLANCE
    )
    """How much of their wording two long texts share if they are near-duplicates, by the profile verified;
    short texts need more."""
    max_distance_bits: int = Field(
        default=fingerprint.MAX_DISTANCE_BITS, ge=0, le=fingerprint.MAX_DISTANCE_BITS
    )
    """Up to how many bits may differ in two simhashes that are near."""
    max_text_length: int = Field(
        default=fingerprint.MAX_TEXT_LENGTH, ge=1, le=fingerprint.LONGEST_TEXT_LENGTH
    )
    """How many characters of a text are fingerprinted; what lies beyond is not compared."""
    keep_boilerplate: bool = False
    """Fingerprint pages whole. Default: passages that are found around different articles, such as menus and
    disclaimers, are left out."""
    overrides_file: Annotated[Path | None, Naming(flag="--overrides")] = None
    """Passages that are boilerplate or text, whatever was learned: JSON Lines such as
    {"boilerplate": "Follow us on …", "site": "news.example"}, or "text" instead."""

    # Read once: the files might change, and a compiled dictionary is large.
    @functools.cached_property
    def fingerprint_profile(self) -> "Profile":
        """The profile that these describe; raises `SettingError`."""
        # What reads and fingerprints is imported here and below: the help of commands shares these settings.
        from esdedup.ingest.word_files import with_words

        from esdedup.fingerprint.profile import get_profile

        profile = get_profile(self.profile or fingerprint.DEFAULT_PROFILE)
        words = self.model_dump(include=_ABOUT_WORDS, exclude_none=True)
        if words and profile.agreement is not None:
            raise SettingError(
                f"{names_of(type(self), next(iter(words)))} goes with the profiles classic and keywords, "
                f"not with {profile.name}"
            )
        if self.keywords is not None and profile.representation != "keywords":
            called = names_of(type(self), "keywords")
            raise SettingError(f"{called} goes with the profile keywords, not with {profile.name}")
        return with_words(profile, **words).with_changes(
            keyword_count=self.keywords,
            max_distance_bits=self.max_distance_bits,
            resemblance=self.resemblance,
            max_text_length=self.max_text_length,
            keep_boilerplate=self.keep_boilerplate,
        )

    def overrides(self) -> "Overrides":
        """Return the overrides in the file, none if no file is given.

        Raises `SettingError` if it cannot be read, or is wrong, or overrides would mean nothing.
        """
        from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides, refuse_useless

        if (path := self.overrides_file) is None:
            return NO_OVERRIDES
        try:
            with path.open("rb") as lines:
                overrides = Overrides.of_lines(lines, name=str(path))
        except OSError as error:
            raise SettingError(f"cannot read {path}: {error.strerror}") from error
        refuse_useless(overrides, keep_boilerplate=self.keep_boilerplate)
        return overrides


_ABOUT_WORDS = {"segmenter", "dictionary", "weights", "stop_words", "token_hash", "zero_bit"}


class Threads(SettingGroup):
    """How many threads work."""

    workers: int = Field(default=fingerprint.WORKERS, ge=1, le=256)
    """How many threads fingerprint texts, with the same results. They cut no words, as classic and keywords
    do."""


class FieldNames(SettingGroup):
    """The names of the fields that hold an article's text, title and so on; None if not given."""

    text_field: Annotated[str | None, Naming(heading="Field names")] = None
    """The text; it is fingerprinted. Default: the name that the index keeps from `setup`, else text."""
    title_field: str | None = None
    """The title. Default: the name that the index keeps from `setup`, else title."""
    time_field: str | None = None
    """The publication time. Default: the name that the index keeps from `setup`, else published_at."""
    source_field: str | None = None
    """The publisher. Default: the name that the index keeps from `setup`, else source."""
    link_field: str | None = None
    """The web address. Default: the name that the index keeps from `setup`, else url."""
    site_field: str | None = None
    """The site. Default: the name that the index keeps from `setup`, else the host in the web address, or the
    publisher."""
    dedup_field: str | None = None
    """The object that esdedup writes. Default: the name that the index keeps from `setup`, else dedup."""
