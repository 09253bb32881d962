"""The last batch of a forest with several shards, in one document.

Shards apply a request independently, so a crash may leave any part of a batch unwritten. The owner therefore
writes the whole batch to one document first, then the documents of its nodes. After a crash, the next owner
writes them again. Until then, readers add the batch to the results of their searches.
"""

import base64
from collections.abc import Sequence
from typing import NamedTuple

from esdedup.elastic.forest.meta import Meta
from esdedup.elastic.forest.stored import Document, Stored, unpacked
from esdedup.elastic.requests import ReadDocument, Requests
from esdedup.forest.model import State
from esdedup.neighbours.relation import Relation

BATCH_ID = "~batch"


class Batch(NamedTuple):
    """A batch, which may have been written to some of the shards only."""

    # The forest's state after the batch; None if there is no such batch.
    state: State | None = None
    # Its nodes and content hashes, packed.
    packed: Sequence[bytes] = ()

    def stored(self, relation: Relation) -> list[Stored]:
        """Return its nodes and content hashes."""
        return unpacked(self.packed, relation)


def batch_document(packed: Sequence[bytes], state: State | None, relation: Relation) -> Document:
    """Return the document with a whole batch; without a state, there is no batch to write again."""
    log, _ = relation.core.log([*packed])
    batch = {"log": base64.b64encode(log).decode()}
    return BATCH_ID, {"state": state._asdict() | batch if state else {}}


def read_batch(forest: str, meta: Meta) -> Requests[Batch]:
    """Read the last batch, even before a refresh. With one shard there is none, and no request."""
    source = None if meta.shards == 1 else (yield ReadDocument(index=forest, id=BATCH_ID))
    if not source or not (state := dict(source["state"])):
        return Batch()
    entries, _ = meta.relation.core.entries(base64.b64decode(state.pop("log")))
    return Batch(State(**state), [each for each in entries if isinstance(each, bytes)])
