"""The only server is killed and restarted: feeding and verifying wait for it, and nothing is lost."""

import itertools
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.files import FileArticle
from esdedup.ingest.load import Load

from esdedup import VERIFIED, Adoption, Dedup, Maintenance, Migration, Reader
from esdedup.elastic.client import connect
from tests.soak.stage import Server, free_port
from tests.support import exploring, stream

ARTICLES = 400


@pytest.fixture(scope="module")
def server(data_directory: Path) -> Iterator[Server]:
    server = Server(data_directory, free_port())
    with server.running():
        yield server


@pytest.fixture
def es(server: Server) -> Iterator[Elasticsearch]:
    with connect(server.url) as client:
        yield client


class Restart:
    """Kills the server, and restarts it after `away_s` seconds in another thread."""

    def __init__(self, server: Server, *, away_s: float) -> None:
        self._server, self._away_s = server, away_s
        self._thread = threading.Thread(target=self._run)

    def begin(self) -> None:
        self._server.kill()
        self._thread.start()

    def wait(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        time.sleep(self._away_s)
        self._server.start()


def articles(index: str, restart: Restart, *, at: int) -> Iterator[dict[str, Any]]:
    for number, article in enumerate(stream.articles(ARTICLES, VERIFIED)):
        if number == at:
            restart.begin()
        yield {"_index": index, "_id": article.pop("id"), "_source": article}


def test_indexing_files_waits_for_a_restart(
    server: Server, es: Elasticsearch, caplog: pytest.LogCaptureFixture
) -> None:
    index, forest, restart = "files", "files-forest", Restart(server, away_s=5.0)
    rejected: list[str] = []
    load = Load(on_rejected=lambda each: rejected.append(str(each)))
    read = (
        FileArticle(place=each["_id"], id=each["_id"], article=each["_source"], size_bytes=1_000)
        for each in articles(index, restart, at=ARTICLES // 2)
    )
    with caplog.at_level(logging.WARNING), Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        load.run(es, dedup, read, index=index, batch_size=20)
    restart.wait()
    assert rejected == []
    assert (load.summary.read, load.summary.written) == (ARTICLES, ARTICLES)
    messages = [each.message for each in caplog.records if each.message.startswith("Elasticsearch ")]
    assert any("retrying for up to" in each for each in messages)
    assert any("answers again, after" in each for each in messages)
    found = stream.indexed(es, index), stream.nodes(es, forest)
    assert found == stream.expected(stream.articles(ARTICLES, VERIFIED), VERIFIED)


@pytest.mark.parametrize("lookup", ["memory", "search"])
def test_enriching_and_verifying_wait_for_a_restart(
    server: Server, es: Elasticsearch, lookup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = f"enriched-{lookup}", f"enriched-{lookup}-forest"
    restart, again = Restart(server, away_s=2.0), Restart(server, away_s=0.0)
    with Dedup(es, forest=forest, lookup=lookup, batch_size=20) as dedup:
        dedup.setup(index)
        enriched = list(dedup.enrich(articles(index, restart, at=ARTICLES // 2)))
        restart.wait()
        helpers.bulk(es, enriched)
        # Damage an article, so that verification finds a violation.
        es.update(index=index, id=enriched[0]["_id"], doc={"dedup": {"root": "0" * 32}}, refresh=True)
    monkeypatch.setattr("esdedup.maintenance.forest_audit.AUDIT_BATCH", 10)
    maintenance = Maintenance(es, forest=forest)
    expected = list(maintenance.verify([index]))
    assert [each.subject for each in expected] == [enriched[0]["_id"]]
    counts = itertools.count()
    assert expected == list(
        maintenance.verify([index], on_progress=lambda _: again.begin() if next(counts) == 2 else None)
    )
    again.wait()
    assert maintenance.stats([index]).nodes == len(stream.nodes(es, forest))


def test_adopting_and_migrating_wait_for_a_restart(server: Server, es: Elasticsearch) -> None:
    """The server is restarted during the adoption, and in `make nightly` also during the migration."""
    index, forest = "in-place", "in-place-forest"
    never = Restart(server, away_s=0.0)
    helpers.bulk(es, articles(index, never, at=-1), refresh=True)

    def restarting(dedup: Dedup, restart: Restart) -> Dedup:
        enrich = dedup.enrich

        def enriched(*given: Any, **options: Any) -> Iterator[dict[str, Any]]:
            for number, action in enumerate(enrich(*given, **options)):
                if number == ARTICLES // 2:
                    restart.begin()
                yield action

        dedup.enrich = enriched  # type: ignore[method-assign]
        return dedup

    adoption, restart = Adoption(es, index), Restart(server, away_s=5.0)
    with restarting(Dedup(es, forest=forest, batch_size=20), restart) as dedup:
        adoption.run(dedup)
    restart.wait()
    assert (adoption.summary.written, adoption.summary.failed) == (ARTICLES, 0)
    migration, again = Migration(es, index, forest=forest, to=f"{forest}-2"), Restart(server, away_s=5.0)
    with Dedup(es, forest=f"{forest}-2", fields=migration.fields, batch_size=20) as dedup:
        migration.run(restarting(dedup, again) if exploring.EFFORT > 1 else dedup)
        if exploring.EFFORT > 1:
            again.wait()
        migration.swap(dedup)
    assert (migration.summary.written, migration.summary.failed) == (ARTICLES, 0)
    assert not list(Maintenance(es, forest=f"{forest}-2").verify([index]))
    assert Reader(es).list(index).total_articles == ARTICLES
