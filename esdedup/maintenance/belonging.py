"""Refuses articles that another forest assigned: compared with this one, all of them would seem damaged."""

from esdedup.elastic.forest.index import ForestIndex
from esdedup.errors import ForestMismatch
from esdedup.maintenance.records import Records

# Fewer articles may have lost their nodes by an accident.
_FEWEST = 3


def refuse_others_articles(index: ForestIndex, records: Records, *, most_known: float = 0.1) -> None:
    """Make sure that each index of articles belongs to a forest, as far as a sample shows it.

    An index is another forest's if hardly any of the sampled articles has its node or root in this one. The
    sample leaves out what a forest may lack: the nodes of articles that may have expired, and, after it was
    restored from a snapshot, of articles with later numbers than it has.

    Args:
        index: The forest's index.
        records: What esdedup wrote into the articles.
        most_known: The share of articles, inclusive, that another forest may have too: the same texts may
            come to both.

    Raises:
        ForestMismatch: One belongs to another forest.
    """
    may_refresh = index.refresh_if_allowed()
    if not index.run(index.nodes.count_nodes()):
        return
    status = index.status()
    samples = records.samples(until_seq=status.state.seq, since_ms=status.live_since_ms(status.aging))
    for name, sample in samples.items():
        if len(sample) < _FEWEST:
            continue
        ids = {each for record in sample for each in (record.fingerprint, record.root) if each is not None}
        nodes = {node.id for node in index.run(index.nodes.by_id(ids))}
        known = sum(not nodes.isdisjoint((record.fingerprint, record.root)) for record in sample)
        if known <= most_known * len(sample):
            seen = "" if may_refresh else ", as far as this client, which may not refresh it, sees them"
            raise ForestMismatch(
                f"the articles in {name!r} seem to belong to another forest than {index.name!r}, which has "
                f"the nodes of {known} out of {len(sample)}{seen}. Name their forest, or leave them out; if "
                "it is theirs, rebuild it from all its articles",
                forest=index.name,
            )
