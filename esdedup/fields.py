"""The fields of an article: their names, and how to read and check their values."""

import base64
import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import mmh3

from esdedup.errors import ArticleRejected, SettingError


class _Written:
    """The full name of a field that esdedup writes."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, fields: "Fields | None", owner: "type[Fields]") -> str:
        return f"{(fields or owner).dedup}.{self._name}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fields:
    """The names of an article's fields; a dot separates an object from a field in it.

    Raises:
        SettingError: A name has a part that is empty or starts with ``_``, is used twice, or is inside the
            object that esdedup writes; or that object is not at the top level.
    """

    # The text that is fingerprinted.
    text: str = "text"
    title: str = "title"
    # The time of publication: ISO 8601, a date as in emails and RSS, or milliseconds since 1970.
    time: str = "published_at"
    # The publisher.
    source: str = "source"
    # The web address.
    link: str = "url"
    # The site, a name or an address (`esdedup/sites.py`); may be one of the other fields. None uses the host
    # of the link, or the source if there is no host.
    site: str | None = None
    # The object that esdedup writes, at the top level of the article.
    dedup: str = "dedup"
    # The format of the time field in the mapping of an index.
    time_format: str | None = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = {role: name for role, name in self.names.items() if name is not None}
        for role, name in names.items():
            if any(not part or part.startswith("_") for part in name.split(".")):
                raise SettingError(
                    f"{name!r} cannot name the {role} field: no part may be empty or start with _"
                )
            same = [
                other
                for other, taken in names.items()
                if taken == name and other != role and "site" not in (role, other)
            ]
            if same:
                raise SettingError(f"{name!r} names two fields: {role} and {same[0]}")
            if role != "dedup" and name.split(".")[0] == self.dedup:
                raise SettingError(f"{name!r} is inside the object {self.dedup!r}, which esdedup writes")
        if "." in self.dedup:
            raise SettingError(
                f"the dedup object {self.dedup!r} must be at the top level of the article: "
                "its name may not contain a dot"
            )

    @property
    def names(self) -> dict[str, str | None]:
        """The field names by role."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.compare}

    # The id of the root.
    root = _Written()
    # The id of a root that contains the root's text as a part.
    part_of = _Written()
    # The id of an earlier root whose text is a part of the root's text.
    has_part = _Written()
    fingerprint = _Written()
    # Everything that is compared with other texts.
    signature = _Written()
    # The article's number in the order of arrival.
    seq = _Written()
    # The time of publication, or of arrival if the article's date is implausible.
    published = _Written()
    # The number of letters and digits in the visible text.
    length = _Written()
    # The root's partition (`partition_of`).
    partition = _Written()

    @property
    def cluster(self) -> str:
        """The full name of the field by which readers group articles."""
        return self.root

    @property
    def links(self) -> tuple[str, str]:
        """The full names of `part_of` and `has_part`."""
        return self.part_of, self.has_part


class EditorialFields(Fields):
    """The fields of articles in an index where editors may merge and split stories."""

    @property
    def cluster(self) -> str:
        """The full name of the field with the story, which is the root unless an edit changed it."""
        return f"{self.dedup}.story"


def editorial(fields: Fields, *, is_editorial: bool) -> Fields:
    """Return the field names as `EditorialFields` or as `Fields`."""
    kind = EditorialFields if is_editorial else Fields
    return kind(**dataclasses.asdict(fields))


def fields_given(given: object) -> Fields | None:
    """Return the fields named by an object's ``text_field`` and similar attributes; None if all are None."""
    names = {role: name for role in Fields().names if (name := getattr(given, f"{role}_field")) is not None}
    return Fields(**names) if names else None


def is_in_objects(key: str, names: tuple[str, ...]) -> bool:
    """Return whether an article's key names one of these objects, or a field in it by a dotted name."""
    return key.startswith(names) and any(key == name or key.startswith(f"{name}.") for name in names)


PARTITIONS = 256
"""Roots are divided into this many partitions of about equal size."""


def partition_of(root: str) -> int:
    """Return the partition of a root, 0 to 255, from a hash of its id."""
    return mmh3.hash(root, signed=False) % PARTITIONS


def value_of(article: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """Return the value of a field, or `default` if the field is missing.

    A key that equals the full name, including dots, takes precedence over nested objects.
    """
    if name in article:
        return article[name]
    value: Any = article
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return default
        value = value[part]
    return value


def term_of(article: Mapping[str, Any], name: str) -> str | None:
    """Return the value of a keyword field as the term that Elasticsearch indexes; None if there is none.

    esdedup writes strings, but other programs may have written a number or a list; from a list, the first
    term is returned.
    """
    value = value_of(article, name)
    return value if isinstance(value, str) else next(_terms(value), None)


def terms_of(article: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the values of a keyword field as the terms that Elasticsearch indexes."""
    return tuple(_terms(value_of(article, name)))


def _terms(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield from itertools.chain.from_iterable(map(_terms, value))
    elif isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, str | int | float):
        yield str(value)


def signature_of(article: Mapping[str, Any], fields: Fields) -> bytes:
    """Return the signature that esdedup wrote into an article; empty if missing or damaged."""
    signature = value_of(article, fields.signature)
    try:
        return base64.b64decode(signature) if isinstance(signature, str) else b""
    except ValueError:  # invalid base64
        return b""


def text_of(article: Mapping[str, Any], fields: Fields, *, name: str) -> str:
    """Return the text of an article; a list of strings is joined as lines.

    Raises `ArticleRejected`, with the article's name, if the text is missing or has another type.
    """
    value = value_of(article, fields.text)
    if value is None:
        parent = list_above(article, fields.text)
        why = "or it is null" if parent is None else f"since {parent!r} is a list, not an object"
        raise ArticleRejected(name, f"has no field {fields.text!r}, {why}")
    if (text := as_text(value)) is None:
        names = {bool: "boolean", int: "number", float: "number", dict: "object"}
        kind = names.get(type(value), type(value).__name__)
        raise ArticleRejected(name, f"the text in the field {fields.text!r} is a {kind}, not a string")
    return text


def list_above(article: Mapping[str, Any], field: str) -> str | None:
    """Return the outermost field above `field` that is a list instead of an object; None if there is none."""
    parents = itertools.accumulate(field.split(".")[:-1], "{}.{}".format)
    return next((each for each in parents if isinstance(value_of(article, each), list)), None)


def as_text(value: object) -> str | None:
    """Return a string, or a list of strings joined as lines; None for anything else."""
    if isinstance(value, str):
        return value
    # Elasticsearch accepts any number of values for a field.
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return None


def refuse_surrogates(text: str, *, name: str) -> None:
    """Raise `ArticleRejected`, with the article's name, if a text cannot be encoded as UTF-8.

    A string from JSON may contain a lone surrogate, which other readers of the index could not decode.
    """
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        reason = "contains a lone surrogate, which UTF-8 cannot encode"
        raise ArticleRejected(name.encode(errors="backslashreplace").decode(), reason) from None
