"""`Feeding`: the processes that feed, and what they tell."""

import dataclasses
import json
import subprocess
import threading
import time
from pathlib import Path

from tests.soak.feeders import Job

_ROOT = Path(__file__).parents[2]
_END_S = 30.0


@dataclasses.dataclass(frozen=True)
class Refused:
    """An answer of a sidecar by which it took nothing."""

    at_s: float
    kind: str
    status: int
    retry_after: str | None


class FeederProcess:
    """A feeder that works, and counts how many of its articles were taken."""

    def __init__(self, job: Job) -> None:
        self.kind = job.kind
        self.fed = 0
        self.refused: list[Refused] = []
        self._errors: list[str] = []
        self._process = subprocess.Popen(
            job.command(), cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._readers = [threading.Thread(target=each, daemon=True) for each in (self._listen, self._keep)]
        for each in self._readers:
            each.start()

    @property
    def is_working(self) -> bool:
        return self._process.poll() is None

    @property
    def fault(self) -> str | None:
        """Why it ended without having fed everything."""
        if self._process.wait(_END_S) == 0:
            return None
        for each in self._readers:
            each.join(_END_S)
        return f"a feeder of the kind {self.kind} ended: {' '.join(self._errors)[-500:]}"

    def close(self) -> None:
        if self.is_working:
            self._process.kill()
        self._process.wait(_END_S)
        for each in self._readers:
            each.join(_END_S)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            self.fed += said.get("fed", 0)
            if "status" in said:
                self.refused.append(Refused(time.monotonic(), self.kind, said["status"], said["retry_after"]))

    def _keep(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line.strip())
