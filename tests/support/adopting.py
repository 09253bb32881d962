"""Kills adoption of indices with odd aliases and templates at random moments, then compares everything."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, Fields
from tests import sample
from tests.support.forests import feed, roots
from tests.support.names import Names

ROOT = Path(__file__).parent.parent.parent
FIELDS = Fields(text="body", time="date")
DAYS = 4


class AdoptionUnderFire:
    """Some days of articles as a program has stored them, before and after adoption."""

    def __init__(self, es: Elasticsearch, url: str, name: Names, *, articles: int, seed: int) -> None:
        self._es, self._chance = es, random.Random(seed)
        self._articles = [
            {"_id": each["id"], "body": each["text"], "date": each["published_at"]}
            for each in sample.articles(articles)
        ]
        self.forest, self._fed, self._fed_forest = name("forest"), name("fed"), name("fed-forest")
        self.days = [name(f"day{number}") for number in range(DAYS)]
        self.copies = [f"{day}-2" for day in self.days]
        self.alias = f"{self.days[0]}-all"
        self.counts: Counter[str] = Counter()
        # Adoption starts in a process of its own.
        self._command = [sys.executable, "-m", "esdedup", "adopt", self.alias, "--forest", self.forest]
        self._command += ["--wait", "60", "--url", url, "--text-field", "body", "--time-field", "date"]
        self._templates = self._put_templates()
        actions = ({"_index": self.days[at % DAYS], **each} for at, each in enumerate(self._articles))
        helpers.bulk(es, actions, refresh=True)
        # Without a text, under ids that articles of other days have.
        textless = (
            {"_index": self.days[0], "_id": each["_id"], "title": "-"} for each in self._articles[1:9:4]
        )
        helpers.bulk(es, textless, refresh=True)
        self._put_aliases()

    def run(self, *, kills: int, into: bool) -> list[str]:
        """Adopt with `kills` kills and twice more to the end; return what is wrong then."""
        command = [*self._command, *(["--into", "-2"] if into else [])]
        if into:
            for day in self.days:
                self._es.indices.add_block(index=day, block="write")
        before = self._aliases(self.days)
        # Slow enough that the last kills hit it in the middle, too.
        slow = [*command, "--rate", str(len(self._articles) / (2 * kills))]
        for _ in range(kills):
            self._kill(slow)
        for _ in range(2):
            ended = subprocess.run(
                command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=300
            )
            # What has no text is rejected each time, where it is; in copies it is copied.
            self.counts[f"ended with {ended.returncode}"] += 1
            if ended.returncode not in {0, 1} or "Traceback" in ended.stderr:
                return [f"ended with {ended.returncode}: {ended.stderr[-500:]}"]
        faults = []
        present = self.copies if into else self.days
        if (after := self._aliases(present)) != before:
            faults.append(f"aliases {after} for {before}")
        if into and any(self._aliases(self.days)):
            faults.append("indices have kept aliases")
        found, expected = roots(self._es, ",".join(present)), self._replayed()
        wrong = [each for each in expected if found.get(each) != expected[each]]
        self.counts |= {"articles": len(expected), "roots": len(set(expected.values())), "wrong": len(wrong)}
        total = int(self._es.count(index=present)["count"])
        if wrong or len(found) != len(expected) or total != len(expected) + 2:
            faults.append(
                f"{len(wrong)} roots are wrong, {len(found)} of {len(expected)} there, {total} in all"
            )
        return faults

    def close(self) -> None:
        """Delete what has no name of its own."""
        for each in self._templates:
            self._es.indices.delete_index_template(name=each)
        self._es.options(ignore_status=404).indices.delete(index=",".join(self.copies))

    def _kill(self, command: list[str]) -> None:
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            # Most of the first second is spent with imports.
            time.sleep(self._chance.uniform(0.7, 4.0))
            is_killed = process.poll() is None
            process.send_signal(signal.SIGKILL)
        self.counts["killed" if is_killed else "ended before it was killed"] += 1

    def _put_templates(self) -> list[str]:
        """Make one of settings, one with an alias, one with mappings, and one for all that begins so."""
        given: list[dict[str, Any]] = [
            {"settings": {"refresh_interval": "2s"}},
            {"aliases": {self.alias: {}, f"{self.days[1]}-given": {"is_hidden": True}}},
            {"mappings": {"properties": {"body": {"type": "text"}, "section": {"type": "keyword"}}}},
            {"settings": {"number_of_replicas": 0}},
        ]
        for at, (day, template) in enumerate(zip(self.days, given, strict=True)):
            self._es.indices.put_index_template(
                name=day, index_patterns=[f"{day}*"], priority=50 + at, template=template
            )
        return self.days

    def _put_aliases(self) -> None:
        first, second, third, last = self.days
        options: list[tuple[str, str, dict[str, Any]]] = [
            *((day, self.alias, {"is_write_index": day == last}) for day in self.days),
            (first, f"{first}-filtered", {"filter": {"exists": {"field": "body"}}}),
            (second, f"{first}-filtered", {"filter": {"match": {"body": "the"}}}),
            (second, f"{second}-routed", {"index_routing": "1", "search_routing": "1,2"}),
            (third, f"{third}-hidden", {"is_hidden": True}),
            (
                last,
                f"{third}-hidden",
                {"is_hidden": True, "filter": {"match_all": {}}, "is_write_index": True},
            ),
        ]
        actions = [{"add": {"index": index, "alias": alias, **of}} for index, alias, of in options]
        self._es.indices.update_aliases(actions=actions)

    def _aliases(self, indices: list[str]) -> list[dict[str, Any]]:
        found = self._es.indices.get_alias(index=indices)
        return [found[index]["aliases"] for index in indices]

    def _replayed(self) -> dict[str, str]:
        with Dedup(self._es, forest=self._fed_forest, fields=FIELDS) as dedup:
            dedup.setup(self._fed)
            feed(self._es, dedup, self._fed, self._articles, backfill=True)
        return roots(self._es, self._fed)
