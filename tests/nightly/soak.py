"""Articles stream in for minutes while everything that can die or stop does; then every root is checked.

`make soak` runs it, half of the time for each profile; `make soak MINUTES=30 SEED=7` runs it longer, with
other random events.
"""

import argparse
import contextlib
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Literal

import psutil

from esdedup import CLASSIC, VERIFIED, Dedup, Profile, node
from esdedup.elastic.client import connect
from esdedup.elastic.patience import patient
from tests.support import stream
from tests.support.feeder import TIMEOUT_S, Feeder, Job, Point

INDEX, FOREST = "soak", "soak-forest"
TTL_S = 5.0
BATCH_SIZE = 20
# More than a process can have written to the forest without the articles being acknowledged.
UNDER_WAY = 10 * BATCH_SIZE


class Soak:
    """The state of a run: what has been acknowledged, and who feeds now."""

    def __init__(self, data: Path, profile: Profile, *, seed: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._data = data
        self._profile = profile
        self._chance = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        # The roots that were acknowledged, by article.
        self.acknowledged: dict[str, str | None] = {}
        self._start_server()
        self._url = f"http://127.0.0.1:{self._port}"
        self._client = patient(connect(self._url))
        Dedup(self._client).setup(INDEX)
        self._feeder = self._start_feeder()

    def run(self, *, until: float) -> None:
        """Let things happen until then, and the rest of the articles in."""
        events = {
            self._kill_feeder: 4,
            self._stop_feeder_beyond_its_lease: 4,
            self._start_rival: 2,
            self._refresh: 3,
            self._restart_server: 1,
        }
        while time.monotonic() < until:
            if not self._feeder.listen(self._chance.uniform(0.2, 2.5)):
                self.counts["processes killed at a request of theirs"] += 1
                self._replace_feeder()
            (event,) = self._chance.choices(list(events), list(events.values()))
            event()
        self._kill_feeder(count=UNDER_WAY)
        self._feeder.wait()
        self._take_note(self._feeder)
        if self._feeder.exit_code != 0 or self._feeder.error is not None:
            self.faults.append(f"the last process ended with {self._feeder.error}")

    def check(self) -> None:
        """Compare every root with those of an undisturbed run in memory."""
        total = self.acknowledged_until
        roots, nodes = stream.expected(stream.articles(total, self._profile), self._profile)
        found, found_nodes = stream.indexed(self._client, INDEX), stream.nodes(self._client, FOREST)
        for what, is_, should_be in (
            ("article", found, roots),
            ("acknowledged article", self.acknowledged, roots),
            ("node", found_nodes, nodes),
        ):
            wrong = [each for each in should_be if each not in is_ or is_[each] != should_be[each]]
            wrong += [each for each in is_ if each not in should_be]
            self.faults += [f"{what} {each}: {is_.get(each)} for {should_be.get(each)}" for each in wrong[:5]]
            self.counts[f"{what}s compared"] = len(should_be)
            self.counts[f"{what}s wrong"] = len(wrong)
        self.counts["clusters"] = len(set(nodes.values()))

    def close(self) -> None:
        self._feeder.__exit__(None, None, None)
        self._client.close()
        node.stop(self._data)

    @property
    def acknowledged_until(self) -> int:
        """The number of articles acknowledged without a gap from the first."""
        count = self.counts["articles in a row"]
        while f"article-{count:06d}" in self.acknowledged:
            count += 1
        self.counts["articles in a row"] = count
        return count

    def _start_feeder(
        self, *, count: int = 1_000_000, wait_s: float = 0.0, point: Point | None = None
    ) -> Feeder:
        self.counts["processes"] += 1
        return Feeder(
            Job(
                url=self._url,
                index=INDEX,
                forest=FOREST,
                profile=self._profile,
                first=self.acknowledged_until,
                count=count,
                batch_size=BATCH_SIZE,
                lease_ttl_s=TTL_S,
                wait_s=wait_s,
                point=point,
            )
        )

    def _replace_feeder(self, *, count: int = 1_000_000) -> None:
        """Start the next process where the last one, which has ended, has come to."""
        self._take_note(self._feeder)
        if self._feeder.exit_code != -signal.SIGKILL:
            self.faults.append(f"a process ended by itself: {self._feeder.error}")
        self._feeder.__exit__(None, None, None)
        point = None
        if count > UNDER_WAY and self._chance.random() < 0.4:
            when: Literal["before", "unanswered"] = self._chance.choice(("before", "unanswered"))
            point = Point(signal=signal.SIGKILL, number=self._chance.randrange(1, 200), when=when)
        self._feeder = self._start_feeder(count=count, point=point)

    def _take_note(self, feeder: Feeder) -> None:
        for article_id, root in feeder.acknowledged.items():
            if self.acknowledged.setdefault(article_id, root) != root:
                self.faults.append(f"{article_id} was acknowledged with two roots")

    def _kill_feeder(self, *, count: int = 1_000_000) -> None:
        self.counts["processes killed"] += 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._feeder.pid, signal.SIGKILL)
        self._feeder.wait()
        self._replace_feeder(count=count)

    def _stop_feeder_beyond_its_lease(self) -> None:
        """Another one takes over; when it goes on it has lost the forest."""
        stale = self._feeder
        if not self._is_feeding():
            return
        self.counts["processes stopped beyond their lease"] += 1
        os.kill(stale.pid, signal.SIGSTOP)
        stale.listen(0.2)
        self._take_note(stale)
        self._feeder = self._start_feeder(wait_s=TIMEOUT_S)
        if not self._is_feeding():
            self.faults.append(f"nobody could take over: {self._feeder.error}")
        stale.go_on()
        stale.wait()
        self._take_note(stale)
        if stale.exit_code == 0 and (stale.error is None or stale.error[0] != "ForestLost"):
            self.faults.append(f"a process that lost the forest ended with {stale.error}")
        stale.__exit__(None, None, None)

    def _start_rival(self) -> None:
        """Start a second owner, which must be refused while the first one lives."""
        if not self._is_feeding():
            return
        self.counts["rivals refused"] += 1
        with self._start_feeder(count=1) as rival:
            rival.wait()
        if self._feeder.listen(0.0) and (rival.error is None or rival.error[0] != "ForestBusy"):
            self.faults.append(f"a rival ended with {rival.error}")

    def _is_feeding(self) -> bool:
        """Wait until the process that feeds has something acknowledged; return whether it lives."""
        before, deadline = len(self._feeder.acknowledged), time.monotonic() + TIMEOUT_S
        while self._feeder.listen(0.1):
            if len(self._feeder.acknowledged) > before:
                return True
            if time.monotonic() > deadline:
                self.faults.append("a process has nothing acknowledged for a minute")
                return False
        return False

    def _refresh(self) -> None:
        self.counts["refreshes"] += 1
        self._client.options(ignore_status=404).indices.refresh(index=f"{INDEX},{FOREST}")

    def _start_server(self) -> None:
        node.start(self._data, port=self._port, lifetime_s=24 * 3600, with_parent=True)

    def _restart_server(self) -> None:
        self.counts["servers killed and started again"] += 1
        running = node.find(self._data)
        assert running is not None
        server = psutil.Process(running.nodes[0].pid)
        server.kill()
        server.wait(TIMEOUT_S)
        self._start_server()


def run(profile: Profile, *, minutes: float, seed: int) -> int:
    """Let articles stream in with that profile, say how it went, and return the number of faults."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="esdedup-soak-", ignore_cleanup_errors=True) as data:
        soak = Soak(Path(data), profile, seed=seed)
        try:
            soak.run(until=time.monotonic() + 60 * minutes)
            soak.check()
        finally:
            soak.close()
    for what, count in soak.counts.items():
        sys.stdout.write(f"{count:>10,}  {what}\n")
    for fault in soak.faults:
        sys.stdout.write(f"FAULT: {fault}\n")
    verdict = "FAILED" if soak.faults else "all well"
    sys.stdout.write(f"soak of {profile.name}: {verdict}, {time.monotonic() - started:.0f} s, seed {seed}\n")
    sys.stdout.flush()
    return len(soak.faults)


def main() -> None:
    """Run once for each profile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0, help="of all profiles together")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    profiles = (VERIFIED, CLASSIC)
    faults = [run(each, minutes=options.minutes / len(profiles), seed=options.seed) for each in profiles]
    sys.exit(1 if any(faults) else 0)


if __name__ == "__main__":
    main()
