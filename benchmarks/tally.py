"""Scores of methods on one labelled set, while they are measured."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks import articles
from benchmarks.articles import Records
from benchmarks.detection import Detection
from benchmarks.score import Roots, Score


class Tally:
    """Scores of methods on one set."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._labels = articles.labels_of(name)
        self._of_edited = articles.labels_of(name, edited_only=True)
        self._scores: dict[tuple[str, float | None], list[Score]] = defaultdict(list)
        self._edited: dict[tuple[str, float | None], list[Score]] = defaultdict(list)

    def add(self, method: str, roots: Roots, *, threshold: float | None = None) -> None:
        """Score clusters, of all articles or of a part of them: pairs beyond the part do not count."""
        case = method, threshold
        self._scores[case].append(Score.of(roots, self._labels))
        self._edited[case].append(Score.of(roots, self._of_edited))

    def add_parts(self, method: str, found: Sequence[Roots]) -> None:
        """Score clusters of parts of the articles: pairs of two parts do not count."""
        part_of = {article: number for number, part in enumerate(found) for article in part}
        roots = {
            article: None if root is None else f"{number} {root}"
            for number, part in enumerate(found)
            for article, root in part.items()
        }
        for labels, scores in ((self._labels, self._scores), (self._of_edited, self._edited)):
            scores[method, None].append(Score.of(roots, _within(labels, part_of)))

    def detections(self, table: str) -> Iterator[Detection]:
        for (method, threshold), scores in self._scores.items():
            edited = self._edited[method, threshold]
            yield Detection(
                table=table,
                case=self._name,
                method=method,
                threshold=threshold,
                scores=scores,
                recalls_of_edited=[each.recall for each in edited],
                edited=edited[0].positives,
            )


def _within(labels: Records, part_of: dict[str, int]) -> Records:
    """Return the labels of pairs within one part."""
    return {pair: label for pair, label in labels.items() if len({part_of[each] for each in pair}) == 1}
