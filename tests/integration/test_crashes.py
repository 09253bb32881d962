"""A process that feeds articles dies at any moment; the next one goes on as if nothing had been."""

import signal
from collections.abc import Callable

from elasticsearch import Elasticsearch

from esdedup import Dedup
from tests import stream
from tests.feeder import Job, Point, feed

Names = Callable[[str], str]


def test_killed_at_any_request_nothing_is_lost_and_no_root_changes(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    """Before each request of a run, and when each write has been sent but not answered."""

    def job(point: Point | None = None) -> Job:
        index, forest = index_name("news"), index_name("forest")
        Dedup(es).setup(index)
        return Job(url=elasticsearch_url, index=index, forest=forest, point=point)

    undisturbed = job()
    requests = feed(undisturbed).requests
    roots, nodes = stream.indexed(es, undisturbed.index), stream.nodes(es, undisturbed.forest)
    assert (roots, nodes) == stream.expected(stream.articles(undisturbed.count))
    assert len(roots) == undisturbed.count
    assert len(set(roots.values())) < len(nodes) < len(roots)

    points = [Point(signal=signal.SIGKILL, number=number + 1) for number in range(len(requests))]
    points += [
        Point(signal=signal.SIGKILL, number=number, when="unanswered")
        for number, request in enumerate(requests, 1)
        if not request.startswith(("GET", "HEAD")) and "_search" not in request
    ]
    for point in points:
        disturbed = job(point)
        died = feed(disturbed)
        assert died.exit_code == -signal.SIGKILL, point
        again = feed(Job(url=elasticsearch_url, index=disturbed.index, forest=disturbed.forest))
        assert again.error is None, (point, again.error)
        found = stream.indexed(es, disturbed.index)
        assert died.acknowledged.items() <= found.items(), point
        assert (found, stream.nodes(es, disturbed.forest)) == (roots, nodes), point
        es.indices.delete(index=f"{disturbed.index},{disturbed.forest}")
