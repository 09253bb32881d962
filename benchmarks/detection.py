"""A row of the tables of detection: one method on one set, over some hash functions."""

import dataclasses
import statistics
from collections.abc import Sequence

from benchmarks.score import Score, Share


@dataclasses.dataclass(frozen=True, kw_only=True)
class Detection:
    """The scores of one method on one set."""

    table: str
    # The set.
    case: str
    method: str
    # The threshold that was chosen or varied, if any.
    threshold: float | None = None
    # One for each hash function.
    scores: Sequence[Score]
    # Recall of the pairs that are not copies of each other, and their number.
    recalls_of_edited: Sequence[Share]
    edited: int

    @property
    def precision(self) -> Share:
        return Share.mean([each.precision for each in self.scores])

    @property
    def recall(self) -> Share:
        return Share.mean([each.recall for each in self.scores])

    @property
    def recall_of_edited(self) -> Share:
        return Share.mean(self.recalls_of_edited)

    @property
    def f1(self) -> Share:
        return Share.mean([each.f1 for each in self.scores])

    def cells(self) -> dict[str, str]:
        first = self.scores[0]
        return {
            "set": self.case,
            "method": self.method,
            "threshold": "" if self.threshold is None else f"{self.threshold:g}",
            "precision": str(self.precision),
            "precision by seed": _range([each.precision for each in self.scores]),
            "recall": str(self.recall),
            "recall by seed": _range([each.recall for each in self.scores]),
            "of edited pairs": str(self.recall_of_edited),
            "F1": str(self.f1),
            "pairs": str(first.positives),
            "edited": str(self.edited),
            "false": f"{statistics.mean(each.false_positives for each in self.scores):,.0f}",
            "largest": str(max(each.largest_cluster for each in self.scores)),
        }


def _range(shares: Sequence[Share]) -> str:
    values = [each.value for each in shares]
    return f"{min(values):.3f}-{max(values):.3f}" if len(values) > 1 else ""
