"""A forest made anew from articles: it adopts their roots, and decides nothing."""

import dataclasses

from elasticsearch import Elasticsearch

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.meta import Meta
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.errors import ForestExists, ForestMismatch, SettingError
from esdedup.fingerprint.profile import get_profile
from esdedup.forest.model import NO_TIME, Aging, State
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.records import Records
from esdedup.maintenance.repair import adopt


def begin(
    client: Elasticsearch, name: str, labels: Records, *, aging: Aging | None, replace: bool, wait_s: float
) -> ForestWriter:
    """Make an empty forest that nobody else can use, or find the one that was begun before.

    Raises:
        ForestExists: There is a complete one, and it is not to be replaced.
        ForestBusy: Another process owns it.
        ForestMismatch: The articles are of several profiles, or of an unknown one.
    """
    meta = _meta(name, labels)
    index = ForestIndex.make(client, name, meta=meta)
    state, dead_before_ms = State(), NO_TIME
    if index.meta != meta:
        if not replace:
            raise ForestExists(
                f"there is a forest {name!r} already: replace it, or name another one", forest=name
            )
        # Whoever owns it must not write into the new one with an alias of the old.
        before = ForestWriter(index, wait_s=wait_s)
        with before.released_on_error():
            former, state = index.status().aging, index.status().state
            # What has expired must not come to life again by living longer.
            dead_before_ms = index.status().live_since_ms(former)
            aging = aging or former
        before.drop()
        index = ForestIndex.make(client, name, meta=meta)
    owned = ForestWriter(index, wait_s=wait_s)
    with owned.released_on_error():
        aging = aging or index.status().aging
        owned.write_aging(aging, dead_before_ms=max(dead_before_ms, index.status().dead_before_ms))
        # Of articles that have been deleted no number must come again.
        owned.write([], state=index.status().state.after(state).after(labels.state()))
        # The order of articles that were indexed twice is that of the second time.
        owned.write_ordered_since(index.status().state.seq)
    return owned


def rebuild(owned: ForestWriter, articles: ArticleAudit) -> int:
    """Adopt the roots of all articles; return how many nodes there are then."""
    adopt(owned, articles)
    owned.index.refresh()
    owned.renew()
    owned.index.write_meta(dataclasses.replace(owned.index.meta, rebuilding=False))
    return owned.index.run(owned.index.search.count_nodes())


def _meta(name: str, labels: Records) -> Meta:
    found = labels.profiles()
    if len(found) != 1:
        raise ForestMismatch(
            f"the articles were fingerprinted with {' and '.join(found)}: name indices of one profile"
            if found
            else "none of the articles was fingerprinted by esdedup",
            forest=name,
        )
    (label,) = found
    try:
        profile = get_profile(label.split("-")[0])
    except SettingError as error:
        raise ForestMismatch(
            f"the articles were fingerprinted with {label!r}: {error}", forest=name, found=label
        ) from error
    return dataclasses.replace(Meta.of(profile), profile=label, rebuilding=True)
