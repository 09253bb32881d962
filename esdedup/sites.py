"""Determines the site of an article; boilerplate is learned for each site. Pure.

Publishers and sites do not correspond one to one, so the site is the host of the article's address, unless
articles name their site.
"""

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from zlib import crc32

from esdedup.fields import Fields, term_of, text_of

_WWW = "www."
# The beginning of an address, up to its host and port. Browsers treat backslashes as slashes, and
# accept addresses without slashes after `http:`. A link without a scheme is relative unless it begins with a
# domain and a port or path.
_ADDRESSES = (
    re.compile(
        rf"(?:(?:https?|ftp):[/\\]*|[a-z][a-z0-9+.-]*://|[/\\]{{2,}}|(?={re.escape(_WWW)}))([^/\\?#]*)",
        re.IGNORECASE,
    ),
    re.compile(
        r"((?:[^\s/\\:@?#]+\.(?:[^\W\d_]{2,}|xn--[a-z\d-]+)|\d+\.\d+\.\d+\.\d+)(?::\d+(?![^/\\])|(?=[/\\])))",
        re.IGNORECASE,
    ),
)
# Finding the host in an address takes longer than fingerprinting a short text. The link of an article is
# parsed several times in succession.
_MOST_CACHED, _FEW_CACHED = 16_384, 4
_HOST_NAME = re.compile(r"[^\s/\\:@?#]+\.[^\s/\\:@?#]+")
# A fragment that names a place in a page. A fragment with a slash is a path, and is kept.
_PLACE = re.compile(r"#[^/]*$")
# Parameters that record where a reader came from and do not identify the page. Parameters that identify pages
# on some sites, such as `source`, are treated as tracking only if their value is one or two words.
_TRACKING = re.compile(
    r"""(?:[?&](?:(?:
        (?:utm|[im]tm|hsa|bsft|gad|guce)_[\w-]+ | at_(?:campaign|custom\d+|link\w*|medium) | wt\.\w+ | wt_z?mc
        | pk_(?:campaign|content|keyword|kwd|medium|source|vid) | soc_(?:src|trk) | ref_(?:src|url) | xtor
        | cmpid | [ino]cid | s_(?:kw)?cid | click_from | guccounter | usqp | spm(?:_id_from)? | scm | bd_vid
        | share_(?:from|medium|plat|session_id|source|tag|times|token) | isappinstalled | vd_source | _g[al]
        | \w*cl(?:k|ick_?)?id | [gw]braid | gclsrc | srsltid | igsh(?:id)? | li_fat_id | rdt_cid | epik
        | mc_[cet]id | mkt_tok | _hs(?:enc|mi) | __hs\w+ | hsctatracking | vero_(?:conv|id) | oly_\w+_id
        | ml_subscriber(?:_hash)? | _kx | __s | wickedid | _openstat | _branch_match_id
    )=[^&#]* | (?:from|ref|source|src)=[a-z]+(?:[._-][a-z]+)?(?![^&#])))+(&?)""",
    re.IGNORECASE | re.VERBOSE,
)
# The prefix of labels of domain names that are not ASCII.
_PUNYCODE = "xn--"
_DOTS = re.compile("[.\u3002]")
# An article's address has at least this many digits, or words at its end; a section's rarely has.
_FEWEST = 4
# The maximum length of a domain name.
_MOST_CHARACTERS = 253


class Provenance(NamedTuple):
    """The origin of an article according to its fields."""

    # The site (`site_of`).
    site: str | None
    # The part of the link after the host, without tracking parameters, and without fragments except paths.
    # None if the link seems to lead to a front page or a section.
    path: str | None
    # 64 bits by which versions of an article are recognised: 26 bits from its address (the host, path and
    # query of its link), 26 bits from its id, then zeros. The id's bits are 0 if the id is unknown; the
    # address's bits are 0 if the link is missing or leads to a front page or a section.
    origin: int

    @classmethod
    def of(cls, article: Mapping[str, Any], fields: Fields, article_id: str | None) -> "Provenance":
        """Read the provenance from an article's fields."""
        link = (term_of(article, fields.link) or "").strip()
        # Most links have no parameters, and this test is faster than the search.
        if "=" in link:
            link = _TRACKING.sub(lambda found: found[1] and found[0][0], link)
        _, _, path = (link.partition("//")[2] or link).partition("/")
        path = _PLACE.sub("", path)
        of_link = of_id = 0
        host, rest = _located(link)
        address = unquote(rest.partition("#")[0]).strip("/")
        if host is not None and _names_article(address):
            of_link = crc32(f"{host}/{address}".encode(errors="replace"))
        if article_id is not None:
            of_id = crc32(article_id.encode(errors="replace"))
        origin = of_link >> 6 << 38 | of_id >> 6 << 12
        return cls(site_of(article, fields), path if _names_article(path) else None, origin)


class RawPage(NamedTuple):
    """A raw text and its origin; None for unknown values."""

    text: str
    site: str | None = None
    # The id of the article on its site: the path of the article's address or, without a path, its `_id`.
    article: str | None = None
    # The bits by which versions are recognised (`Provenance.origin`); 0 if they are not needed.
    origin: int = 0
    title: str | None = None

    @classmethod
    def of(cls, article: Mapping[str, Any], fields: Fields, *, name: str, article_id: str) -> "RawPage":
        """Return the page of an article.

        Raises:
            ArticleRejected: The text is missing or is not a string.
        """
        text, title = text_of(article, fields, name=name), term_of(article, fields.title)
        site, path, _ = Provenance.of(article, fields, None)
        return cls(text, site, path or article_id, title=title)


def site_of(article: Mapping[str, Any], fields: Fields) -> str | None:
    """Return the site of an article: the host of its link or, without one, its source (see `site_name`).

    If `fields` names a field for the site, only that field is used. None means that the site is unknown.
    """
    if fields.site is not None:
        return _name_in(article, fields.site)
    link = term_of(article, fields.link)
    return (None if link is None else _located(link.strip())[0]) or _name_in(article, fields.source)


# Cached, because the learner and the forest both call it for the path of an article.
@functools.lru_cache(_MOST_CACHED)
def _names_article(path: str) -> bool:
    """Return whether a path names an article: it contains four digits, or ends in four words."""
    last = path.partition("?")[0].rpartition("/")[2]
    # In scripts without spaces between words, two characters count as a word.
    words = (1 if word.isascii() else (len(word) + 1) // 2 for word in re.split(r"[-_+ .]+", last) if word)
    return sum(map(str.isdigit, path)) >= _FEWEST or sum(words) >= _FEWEST


def site_fields(fields: Fields) -> list[str]:
    """Return the fields that `Provenance` reads."""
    return [fields.link, fields.site or fields.source]


def site_name(value: str) -> str | None:
    """Return the canonical name of a site; None if the value is blank.

    An address is reduced to its host. A host is written in lower case, without ``www.`` and decoded from
    punycode: both ``https://www.XN--BCHER-KVA.example:8080/a`` and ``bücher.example:8080`` become
    ``bücher.example``. Other names are returned unchanged.
    """
    name = value.strip()
    return _located(name)[0] or (_host_in(name) if _HOST_NAME.fullmatch(name) else None) or name or None


def _name_in(article: Mapping[str, Any], field: str) -> str | None:
    value = term_of(article, field)
    return None if value is None else site_name(value)


@functools.lru_cache(_FEW_CACHED)
def _located(address: str) -> tuple[str | None, str]:
    """Return the host in an address, None if there is none, and the rest after the host and port."""
    for pattern in _ADDRESSES:
        if found := pattern.match(address):
            return _host_in(found[1]), address[found.end() :]
    return None, ""


@functools.lru_cache(_MOST_CACHED)
def _host_in(authority: str) -> str | None:
    """Return the host in an address's authority, which may also contain a user and a port."""
    try:
        host = urlsplit(f"//{authority}").hostname
    except ValueError:  # stray brackets, or characters that NFKC turns into delimiters
        return None
    if not host or len(host) > _MOST_CHARACTERS or " " in host or not host.isprintable():
        return None
    labels = [_readable(label) for label in _DOTS.split(unicodedata.normalize("NFKC", host).lower()) if label]
    if len(labels) > len(("www", "name")) and labels[0] == _WWW[:-1]:
        labels = labels[1:]
    return ".".join(labels) or None


def _readable(label: str) -> str:
    """Decode a punycode label of a domain name; return other labels unchanged."""
    if not label.startswith(_PUNYCODE):
        return label
    encoded = label.removeprefix(_PUNYCODE)
    try:
        decoded = encoded.encode("ascii").decode("punycode")
    except UnicodeError:
        return label
    # An invalid label stays encoded: decoded, it might contain any character, such as a line break.
    is_name = all(unicodedata.category(character)[0] in "LMN" or character == "-" for character in decoded)
    is_normal = unicodedata.normalize("NFKC", decoded).lower() == decoded and not decoded.isascii()
    return decoded if is_name and is_normal else label
