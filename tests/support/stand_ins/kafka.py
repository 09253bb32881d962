"""A stand-in for `kafka-python` in the guide about Kafka: a consumer of three articles, without a broker."""

from collections.abc import Callable
from typing import Any, NamedTuple

TEXT = "The ferry to the outer islands runs from Monday, the harbour council said on Friday."
ARTICLES = [b'{"title": "Ferry %d", "text": "%s"}' % (number, TEXT.encode()) for number in range(3)]


class Message(NamedTuple):
    """A record of a topic."""

    key: bytes
    value: Any


class KafkaConsumer:
    """Returns the articles in two batches, and requires a commit after each batch."""

    def __init__(
        self,
        topic: str,
        *,
        bootstrap_servers: str,
        group_id: str,
        enable_auto_commit: bool,
        value_deserializer: Callable[[bytes], Any],
    ) -> None:
        assert (topic, group_id, enable_auto_commit) == ("articles", "esdedup", False)
        assert bootstrap_servers.startswith("localhost:")
        messages = [Message(b"%d" % number, value_deserializer(each)) for number, each in enumerate(ARTICLES)]
        self._batches = [{"partition 0": messages[:2]}, {"partition 0": messages[2:]}, {}]
        self._is_committed = True

    def poll(self, *, timeout_ms: int, max_records: int) -> dict[str, list[Message]]:
        assert self._is_committed
        assert timeout_ms > 0
        assert max_records >= len(ARTICLES)
        self._is_committed = False
        return self._batches.pop(0)

    def commit(self) -> None:
        self._is_committed = True
