"""A process that feeds articles dies at any moment; the next one goes on as if nothing had been."""

import dataclasses
import signal
from collections.abc import Callable, Iterable

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, VERIFIED, Dedup, Profile
from tests.support import stream
from tests.support.feeder import Job, Point, feed

Names = Callable[[str], str]


@pytest.fixture
def job(es: Elasticsearch, elasticsearch_url: str, index_name: Names, profile: Profile) -> Job:
    index = index_name("news")
    Dedup(es).setup(index)
    return Job(url=elasticsearch_url, index=index, forest=index_name("forest"), profile=profile)


def result(es: Elasticsearch, job: Job) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the root of each article, and of each node."""
    return stream.indexed(es, job.index), stream.nodes(es, job.forest)


def assert_nothing_is_lost(es: Elasticsearch, undisturbed: Job, points: Iterable[Point]) -> None:
    """Compare what a process at that job came to with what two come to, of which the first one dies."""
    expected = result(es, undisturbed)
    roots, nodes = expected
    assert expected == stream.expected(
        stream.articles_for(undisturbed.profile, undisturbed.count), undisturbed.profile
    )
    assert len(roots) == undisturbed.count
    assert len(set(roots.values())) < len(nodes) < len(roots)
    job = dataclasses.replace(
        undisturbed, index=f"{undisturbed.index}-again", forest=f"{undisturbed.forest}-again"
    )
    for point in points:
        Dedup(es).setup(job.index)
        try:
            died = feed(dataclasses.replace(job, point=point))
            assert died.exit_code == -signal.SIGKILL, point
            again = feed(job)
            assert again.error is None, (point, again.error)
            found = result(es, job)
            assert died.acknowledged.items() <= found[0].items(), point
            assert found == expected, point
        finally:
            es.options(ignore_status=404).indices.delete(index=f"{job.index},{job.forest}")


@pytest.mark.parametrize("profile", [CLASSIC], ids=lambda profile: profile.name)
def test_killed_at_any_request_nothing_is_lost_and_no_root_changes(es: Elasticsearch, job: Job) -> None:
    """Before each request of a run, and when each write has been sent but not answered."""
    requests = feed(job).requests
    points = [Point(signal=signal.SIGKILL, number=number + 1) for number in range(len(requests))]
    points += [
        Point(signal=signal.SIGKILL, number=number, when="unanswered")
        for number, request in enumerate(requests, 1)
        if not request.startswith(("GET", "HEAD")) and "_search" not in request
    ]
    assert_nothing_is_lost(es, job, points)


@pytest.mark.parametrize("profile", [VERIFIED], ids=lambda profile: profile.name)
def test_killed_between_the_writes_of_a_batch_nothing_is_lost(es: Elasticsearch, job: Job) -> None:
    """State and roots, leaves, articles: none of them has been written, or each of them in turn."""
    feed(job)
    writes = ("/_bulk.*~state", "-w-1/_bulk(?!.*~state)", "PUT /_bulk")
    points = [Point(signal=signal.SIGKILL, matching=each, number=2) for each in writes]
    points.append(dataclasses.replace(points[-1], when="unanswered"))
    assert_nothing_is_lost(es, job, points)
