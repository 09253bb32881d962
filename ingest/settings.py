"""Settings, each declared once with its name, description, range and default.

Command-line options, the sidecar's settings, messages and tables in the documentation are generated from
these declarations.
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
# For each type of value, a description for messages and a metavar for the help.
_KINDS: dict[Any, tuple[str, str | None]] = {
    bool: ("true or false", None),
    ByteSize: ("a number of bytes, or a size such as 64MiB", "BYTES"),
    int: ("a whole number", "INTEGER"),
    float: ("a number", "NUMBER"),
    Path: ("a file", "FILE"),
    tuple: ("names, separated by commas", "NAME"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Naming:
    """The parts of a setting's names and help that cannot be derived from its field and default."""

    # The heading above this setting and the following ones; None continues under the previous heading.
    heading: str | None = None
    # None for a secret, which has no option: every user of a machine can read command lines.
    flag: str | None = _AS_NAMED
    # Environment variables of other commands, used in this order if the setting's own variable is not set.
    others: tuple[str, ...] = ()
    # The default to show in the help if the field's default is None.
    default: str = ""
    # The placeholder for a value in the help; None uses the placeholder of the value's type.
    metavar: str | None = None


class SettingGroup(BaseModel):
    """Related settings: fields with a docstring and an optional `Naming`."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, defer_build=True)
    # The order of headings; () keeps the order of the fields.
    headings: ClassVar[tuple[str, ...]] = ()

    def given(self) -> dict[str, Any]:
        """Return the values that differ from the defaults, by field name."""
        return self.model_dump(exclude_defaults=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """The description of a setting."""

    name: str
    # The heading above the setting, if any.
    group: str | None
    description: str
    # The command-line option, if there is one.
    flag: str | None
    # The environment variables in order of priority: the setting's own, then those of other commands.
    variables: tuple[str, ...]
    # The type of the value, without type arguments and None: `tuple` for `tuple[str, ...]`.
    kind: Any
    # The default as text; empty if there is none.
    default: str
    least: float | None
    most: float | None
    allowed: str
    metavar: str | None

    @property
    def called(self) -> str:
        """The setting's name in messages: its option and environment variable."""
        variable = next(iter(self.variables), "")
        return f"{self.flag} ({variable})" if self.flag and variable else self.flag or variable

    @property
    def is_secret(self) -> bool:
        """Whether the value must never be shown."""
        return self.kind is SecretStr


@functools.cache
def settings_of(model: type[SettingGroup]) -> list[Setting]:
    """Return all settings in order, grouped by heading."""
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
    text, _ = _KINDS.get(kind, ("a string", None))
    if least is None:
        return text
    return f"{text}, {least:,} or more" if most is None else f"{text}, {least:,} to {most:,}"


def names_of(model: type[SettingGroup], *names: str) -> str:
    """Return the names of settings for a message, joined by "and"."""
    settings = [each for name in names for each in settings_of(model) if each.name == name]
    called = [each.called for each in settings]
    return " and ".join(filter(None, (", ".join(called[:-1]), called[-1])))


def as_toml(settings: SettingGroup) -> str:
    """Return settings as a TOML file; unset and secret settings become comments."""
    lines: list[str] = []
    # `model_dump` masks secrets.
    values = settings.model_dump(mode="json", exclude={"config"})
    for group, members in itertools.groupby(settings_of(type(settings)), lambda each: each.group):
        lines += [f"# {group}", ""]
        for setting in members:
            if setting.name in values:
                value = values[setting.name]
                shown = (setting.default or None) if value is None else value
                # JSON strings, numbers, lists and booleans are TOML too, except for one control character.
                text = "" if shown is None else json.dumps(shown, ensure_ascii=False)
                mark = "# " if value is None or setting.is_secret else ""
                lines += [f"# {setting.description}", f"{mark}{setting.name} = {text}".rstrip(), ""]
    return "\n".join(lines).replace("\x7f", "\\u007f")


class Cut(SettingGroup):
    """Settings for segmenting texts into words."""

    segmenter: Annotated[str | None, Naming(heading="Fingerprint", default="jieba")] = None
    """How classic and keywords segment texts into words: jieba, words (runs of letters and digits), or
    n-grams such as 3-grams."""
    dictionary: Path | None = None
    """A file of words that jieba keeps whole: one per line, optionally with frequency and part of speech, as
    in jieba's user dictionaries. A word with the frequency 0 is split."""


class Fingerprinting(Cut):
    """The profile that texts are fingerprinted with."""

    weights: Annotated[str | None, Naming(default="tf-idf")] = None
    """Word weights of the profiles classic and keywords: tf-idf, tf, or a file (a JSON object of words and
    their weights, the output of `esdedup weights`, or a table such as jieba's idf.txt)."""
    stop_words: Path | None = None
    """A file of words whose weight is 0, one per line."""
    token_hash: Annotated[str | None, Naming(default="murmur3")] = None
    """How classic and keywords hash words: murmur3, crc32, python2, times33."""
    zero_bit: Annotated[int | None, Naming(default="0")] = Field(default=None, ge=0, le=1)
    """The value of a simhash bit whose weights add up to zero: 0, or 1 as in much published code."""
    profile: Annotated[str | None, Naming(default=fingerprint.DEFAULT_PROFILE)] = None
    """How texts are fingerprinted: verified, classic or keywords."""
    keywords: int | None = Field(default=None, ge=1, le=fingerprint.MAX_KEYWORDS)
    """How many words the profile keywords uses."""
    resemblance: Annotated[float | None, Naming(default=f"{fingerprint.RESEMBLANCE:g}")] = Field(
        default=None, ge=fingerprint.LEAST_RESEMBLANCE, le=fingerprint.MOST_RESEMBLANCE
    )
    """The share of their wording that two long texts must have in common to be near-duplicates in the profile
    verified; short texts need more."""
    max_distance_bits: int = Field(
        default=fingerprint.MAX_DISTANCE_BITS, ge=0, le=fingerprint.MAX_DISTANCE_BITS
    )
    """The maximum number of bits in which two near simhashes may differ."""
    max_text_length: int = Field(
        default=fingerprint.MAX_TEXT_LENGTH, ge=1, le=fingerprint.LONGEST_TEXT_LENGTH
    )
    """How many characters of a text are fingerprinted; the rest of a longer text is not compared."""
    keep_boilerplate: bool = False
    """Fingerprint pages whole. By default, passages that recur around different articles, such as menus and
    disclaimers, are left out."""
    overrides_file: Annotated[Path | None, Naming(flag="--overrides")] = None
    """A JSON Lines file of passages that are boilerplate or text regardless of what was learned, such as
    {"boilerplate": "Follow us on …", "site": "news.example"}, or with "text" instead of "boilerplate"."""

    # Read once: the files might change, and a compiled dictionary is large.
    @functools.cached_property
    def fingerprint_profile(self) -> "Profile":
        """The profile that these settings describe; raises `SettingError`."""
        # Imported late, here and below, so that the help of commands, which needs this module, is fast.
        from esdedup.ingest.word_files import with_words

        from esdedup.fingerprint.profile import get_profile

        profile = get_profile(self.profile or fingerprint.DEFAULT_PROFILE)
        words = self.model_dump(include=_ABOUT_WORDS, exclude_none=True)
        if words and profile.agreement is not None:
            raise SettingError(
                f"{names_of(type(self), next(iter(words)))} applies to the profiles classic and keywords, "
                f"not to {profile.name}"
            )
        if self.keywords is not None and profile.representation != "keywords":
            called = names_of(type(self), "keywords")
            raise SettingError(f"{called} applies to the profile keywords, not to {profile.name}")
        return with_words(profile, **words).with_changes(
            keyword_count=self.keywords,
            max_distance_bits=self.max_distance_bits,
            resemblance=self.resemblance,
            max_text_length=self.max_text_length,
            keep_boilerplate=self.keep_boilerplate,
        )

    def overrides(self) -> "Overrides":
        """Return the overrides in the file, or no overrides if no file is given.

        Raises `SettingError` if the file is unreadable or invalid, or if overrides would have no effect.
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
    """The number of worker threads."""

    workers: int = Field(default=fingerprint.WORKERS, ge=1, le=256)
    """How many threads fingerprint texts, which does not affect the results. Segmenting texts into words, as
    classic and keywords do, uses a single thread."""


class FieldNames(SettingGroup):
    """The names of the fields that contain an article's text, title and so on; None if not given."""

    text_field: Annotated[str | None, Naming(heading="Field names")] = None
    """The text, which is fingerprinted. Default: the name that `setup` has recorded in the index, or text."""
    title_field: str | None = None
    """The title. Default: the name that `setup` has recorded in the index, or title."""
    time_field: str | None = None
    """The publication time. Default: the name that `setup` has recorded in the index, or published_at."""
    source_field: str | None = None
    """The publisher. Default: the name that `setup` has recorded in the index, or source."""
    link_field: str | None = None
    """The web address. Default: the name that `setup` has recorded in the index, or url."""
    site_field: str | None = None
    """The site. Default: the name that `setup` has recorded in the index, otherwise the host of the web
    address or, without one, the publisher."""
    dedup_field: str | None = None
    """The object that esdedup writes. Default: the name that `setup` has recorded in the index, or dedup."""
