"""Rebuilds a forest from articles: it adopts their roots instead of deciding them."""

import dataclasses
import logging

from elasticsearch import Elasticsearch

from esdedup.elastic.execute import execute
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedLog, LearnedRecord, read_learned
from esdedup.elastic.forest.meta import Lookup, Meta, read_meta
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.errors import ForestDamaged, ForestExists, ForestMismatch, IndexNotReady, SettingError
from esdedup.fingerprint.profile import Profile, get_profile
from esdedup.forest.model import NO_TIME, Aging, State
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.belonging import refuse_others_articles
from esdedup.maintenance.records import Records
from esdedup.maintenance.repair import Repair
from esdedup.maintenance.times_ahead import TimesAhead

log = logging.getLogger("esdedup")


def begin(
    client: Elasticsearch,
    name: str,
    records: Records,
    *,
    aging: Aging | None,
    lookup: Lookup | None,
    replace: bool,
    wait_s: float,
) -> ForestWriter:
    """Make an empty forest that cannot be used yet, or find the one that an interrupted rebuild left.

    Args:
        client: Owned by the caller.
        name: Of the forest's index.
        records: What esdedup wrote into the articles.
        aging: How long nodes live. None: as in the forest that is replaced, else the default.
        lookup: How its nodes are found. None: as in the forest that is replaced, else in memory.
        replace: Delete an existing forest first.
        wait_s: How long to wait while another process owns it.

    Raises:
        ForestExists: There is a complete one, and `replace` is false.
        ForestBusy: Another process owns it.
        ForestMismatch: The articles are of several profiles, or of an unknown one, or belong to another
            forest than the one that is replaced.
    """
    found = execute(client, read_meta(name))
    meta = _meta(name, records, found, lookup=lookup)
    index = ForestIndex.make(client, name, meta=meta)
    latest_ms = Clock(index).latest_ms()
    state, dead_before_ms = State(), NO_TIME
    learned: list[LearnedRecord] = []
    if index.meta != meta:
        if not replace:
            raise ForestExists(
                f"there is a forest {name!r} already: replace it, or name another one", forest=name
            )
        if index.meta.profile == meta.profile and not index.meta.rebuilding:
            # A forest that was made anew after it was lost may have few of its articles' nodes.
            refuse_others_articles(index, records, most_known=0.0)
        # Take its lease first: otherwise its owner could write into the new forest through the alias.
        former = ForestWriter(index, wait_s=wait_s)
        with former.released_on_error():
            status = index.status(latest_ms=latest_ms)
            state = status.state
            # Longer retention must not revive expired nodes.
            dead_before_ms = status.live_since_ms(status.aging)
            aging = aging or status.aging
            learned = _learned(index)
        former.drop()
        index = ForestIndex.make(client, name, meta=meta)
    writer = ForestWriter(index, wait_s=wait_s)
    with writer.released_on_error():
        status = index.status()
        aging = aging or status.aging
        writer.write_aging(aging, dead_before_ms=max(dead_before_ms, status.dead_before_ms))
        # Numbers of arrivals are never reused, not even those of deleted articles.
        ahead = TimesAhead(index, records, latest_ms=latest_ms, aging=aging)
        state = ahead.true_state().after(state)
        ahead.set_articles_back(state)
        writer.write([], state=state)
        for each in learned:
            writer.write([], learned=each.to_documents())
        # An article that was indexed twice has the number of its second arrival: the order is unreliable.
        writer.write_ordered_since(index.status().state.seq)
    return writer


def rebuild(writer: ForestWriter, articles: ArticleAudit) -> int:
    """Adopt the roots of all articles, and complete the forest; return how many nodes it has."""
    Repair(writer).adopt(articles)
    writer.index.refresh()
    if not writer.index.run(read_learned(writer.index.name)):
        log.warning(
            "the rebuilt forest %r has not learned what is boilerplate: let it learn from its stored "
            "articles, or the first pages that arrive are compared whole",
            writer.index.name,
        )
    writer.renew()
    writer.index.write_meta(dataclasses.replace(writer.index.meta, rebuilding=False))
    return writer.index.run(writer.index.nodes.count_nodes())


def _learned(index: ForestIndex) -> list[LearnedRecord]:
    """Return what a forest has learned, as documents; nothing if they are damaged."""
    try:
        found = index.run(read_learned(index.name))
        LearnedLog(index.name, found)
    except ForestDamaged as error:
        log.warning("the rebuilt forest begins to learn anew: %s", error)
        return []
    return found


def _meta(name: str, records: Records, former: Meta | None, *, lookup: Lookup | None) -> Meta:
    """Return the metadata of a forest of these articles, which may replace a former one."""
    found = records.profiles()
    if not found:
        raise IndexNotReady(
            "none of the articles was indexed through esdedup, so there is nothing to rebuild a forest from: "
            "index them through esdedup, which makes their forest"
        )
    if len(found) != 1:
        raise ForestMismatch(
            f"the articles were fingerprinted with {' and '.join(found)}: name indices of one profile",
            forest=name,
        )
    (label,) = found
    try:
        profile = _profile(label)
    except SettingError as error:
        raise ForestMismatch(
            f"the articles were fingerprinted with {label!r}: {error}", forest=name, found=label
        ) from error
    meta = Meta.of(profile, lookup=lookup or (former.lookup if former else "memory"))
    return dataclasses.replace(meta, profile=label, rebuilding=True)


def _profile(label: str) -> Profile:
    """Return the profile with that label as far as the label tells, else the standard one of its name.

    Raises:
        SettingError: There is none of that name.
    """
    standard = get_profile(label.split("-")[0])
    whole = standard.with_changes(keep_boilerplate=True)
    return whole if whole.label == label else standard
