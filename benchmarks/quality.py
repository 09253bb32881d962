"""Measures the detection quality of all profiles and peers, and draws it as a function of the threshold."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks import articles, detectors
from benchmarks.articles import Articles
from benchmarks.detection import Detection, Score, Share, Tally
from benchmarks.detectors import hashed_by
from benchmarks.excerpts import Counted
from benchmarks.server import Run
from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.profile import DEFAULT, PROFILES, VERIFIED

TABLE, PEERS_TABLE, SETS_TABLE = "quality", "quality-peers", "sets"
RESEMBLANCE = "resemblance"
AS_THEY_COME = "as-they-come"
KEPT_WHOLE = f"{DEFAULT.name}, pages kept whole"
BY_DEFAULT = f"{DEFAULT.name} (default)"
TWO_PASSES = f"{DEFAULT.name}, two looks"
SHUFFLED = f"{DEFAULT.name}, in another order"
WITHOUT_SOURCE = f"{DEFAULT.name}, without `source`"
NEW_SITES = f"{DEFAULT.name}, all sites new"
NOTHING_LEARNED = f"{DEFAULT.name}, nothing learned"
# For `NEW_SITES`, a set is split into parts with this mean number of pages per site.
_FIRST_PAGES = 20


def sets(_: Run) -> list[Counted]:
    """Count the pairs of each set by label."""
    rows = []
    for name in (*articles.SETS, *articles.MORE):
        labels = Counter(articles.labels_of(name).values())
        counts = {
            "pairs": labels["pos"],
            "edited": list(articles.labels_of(name, edited_only=True).values()).count("pos"),
            "grey": labels["grey"],
            "look-alikes": labels["hardneg_template"],
        }
        rows.append(
            Counted(table=SETS_TABLE, case=name, kind={}, counts=counts, of=len(articles.articles_of(name)))
        )
    return rows


def quality(run: Run) -> list[Detection]:
    """Score our profiles on all sets, with several hash functions."""
    rows: list[Detection] = []
    for name in articles.SETS:
        tally, held = Tally(name), articles.articles_of(name)
        for seed in range(run.seeds):
            with hashed_by(seed):
                _add_ours(tally, name, held, seed)
        rows += tally.detections(TABLE)
    return rows


def as_they_come(run: Run) -> list[Counted]:
    """Score the default profile, with several hash functions, on texts as feeds and crawlers deliver them."""
    rows = []
    for name in articles.AS_THEY_COME:
        held, labels, scores = articles.articles_of(name), articles.labels_of(name), []
        for seed in range(run.seeds):
            with hashed_by(seed):
                scores.append(Score.of(detectors.clustered(held, DEFAULT), labels))
        shares = {
            measure: f"{Share.mean([getattr(score, measure) for score in scores]).value:.3f}"
            for measure in ("precision", "recall", "f1")
        }
        counts = {"false": max(score.false_positives for score in scores), "pairs": scores[0].positives}
        rows.append(Counted(table=AS_THEY_COME, case=name, kind=shares, counts=counts, of=len(held)))
    return rows


def quality_peers(run: Run) -> list[Detection]:
    """Score the peers on all sets, each peer with its best threshold for the set."""
    rows: list[Detection] = []
    for name in articles.SETS:
        first = Tally(name)
        held = articles.articles_of(name)
        shingled = detectors.Shingled(held)
        add_minhashes(first, shingled, seed=1, thresholds=detectors.THRESHOLDS)
        _add_simhash(first, held, seed=1, distances_bits=detectors.DISTANCES_BITS)
        best = _best(list(first.detections(PEERS_TABLE)))
        others = Tally(name)
        for seed in range(2, run.seeds + 1):
            for each in best:
                assert each.threshold is not None
                if each.method == detectors.SIMHASH:
                    _add_simhash(others, held, seed=seed, distances_bits=[int(each.threshold)])
                else:
                    add_minhashes(
                        others, shingled, seed=seed, thresholds=[each.threshold], methods=[each.method]
                    )
        found = {(each.method, each.threshold): each for each in others.detections(PEERS_TABLE)}
        rows += [_joined(each, found.get((each.method, each.threshold))) for each in best]
    return rows


def _add_ours(tally: Tally, name: str, held: Articles, seed: int) -> None:
    tally.add(KEPT_WHOLE, detectors.clustered(held, DEFAULT.with_changes(keep_boilerplate=True)))
    found = detectors.clustered(held, DEFAULT)
    tally.add(BY_DEFAULT, found)
    tally.add(TWO_PASSES, detectors.in_two_passes(held, DEFAULT))
    ids = np.random.default_rng(seed).permutation(np.array(list(held), object))
    tally.add(SHUFFLED, detectors.clustered({article: held[article] for article in ids}, DEFAULT))
    if name in articles.SITES:
        without_source = {
            article: {field: value for field, value in each.items() if field != "source"}
            for article, each in held.items()
        }
        tally.add(WITHOUT_SOURCE, detectors.clustered(without_source, DEFAULT))
        parts = detectors.parts(held, _FIRST_PAGES * articles.SITES[name])
        tally.add_parts(NEW_SITES, [detectors.clustered(part, DEFAULT) for part in parts])
        tally.add(NOTHING_LEARNED, detectors.never_learning(held, DEFAULT))
    for profile in PROFILES.values():
        if profile != DEFAULT:
            tally.add(profile.name, detectors.clustered(held, profile))


def add_minhashes(
    tally: Tally,
    shingled: detectors.Shingled,
    *,
    seed: int,
    thresholds: Sequence[float],
    methods: Sequence[str] = (detectors.LSH, detectors.CHECKED),
) -> None:
    found = detectors.minhash_lsh(shingled, seed=seed, thresholds=thresholds)
    for method in methods:
        for threshold, roots in found[method].items():
            tally.add(method, roots, threshold=threshold)


def _add_simhash(tally: Tally, held: Articles, *, seed: int, distances_bits: Sequence[int]) -> None:
    for bits, roots in detectors.simhash(held, seed=seed, distances_bits=distances_bits).items():
        tally.add(detectors.SIMHASH, roots, threshold=bits)


def _best(found: Sequence[Detection]) -> list[Detection]:
    """Return the result of each method at the threshold with the highest F1."""
    by_method: dict[str, list[Detection]] = defaultdict(list)
    for each in found:
        by_method[each.method].append(each)
    return [max(some, key=lambda each: each.f1.value) for some in by_method.values()]


def _joined(one: Detection, other: Detection | None) -> Detection:
    """Combine the scores of the same method on the same set."""
    if other is None:
        return one
    recalls: list[Share] = [*one.recalls_of_edited, *other.recalls_of_edited]
    return dataclasses.replace(one, scores=[*one.scores, *other.scores], recalls_of_edited=recalls)


_TABLE_RESEMBLANCES = (None, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def resemblance(_: Run) -> list[Counted]:
    """Score the default profile on all sets with several values of `resemblance`."""
    rows = []
    for name in (*articles.SETS, *articles.MORE):
        held, labels = articles.articles_of(name), articles.labels_of(name)
        for needed in _TABLE_RESEMBLANCES:
            score = Score.of(detectors.clustered(held, DEFAULT.with_changes(resemblance=needed)), labels)
            kind = {
                "resemblance": "default" if needed is None else f"{needed:.2f}",
                "precision / recall": f"{score.precision.value:.3f} / {score.recall.value:.3f}",
            }
            counts = {"found": score.true_positives, "false": score.false_positives}
            rows.append(Counted(table=RESEMBLANCE, case=name, kind=kind, counts=counts, of=score.positives))
    return rows


THRESHOLDS = "thresholds"
SHIFTED = "verified, by `--resemblance`"
_CURVE_RESEMBLANCES = (0.4, 0.5, 0.6, Agreement.resemblance, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def thresholds(_: Run) -> list[Detection]:
    rows: list[Detection] = []
    for name in (*articles.SETS, *articles.MORE):
        tally, held = Tally(name), articles.articles_of(name)
        for resemblance in _CURVE_RESEMBLANCES:
            found = detectors.clustered(held, VERIFIED.with_changes(resemblance=resemblance))
            tally.add(SHIFTED, found, threshold=resemblance)
        if name in articles.SETS:
            add_minhashes(tally, detectors.Shingled(held), seed=1, thresholds=detectors.THRESHOLDS)
        rows += tally.detections(THRESHOLDS)
    return rows


_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red")


def draw(curves: Sequence[Detection], path: Path) -> None:
    """Write a picture with a column for each set; the suffix of `path` determines its format."""
    sets = list(dict.fromkeys(each.case for each in curves))
    methods = list(dict.fromkeys(each.method for each in curves))
    figure = Figure(figsize=(4.5 * len(sets), 6), layout="constrained")
    panels = figure.subplots(2, len(sets), sharex=True, sharey=True, squeeze=False)
    for column, name in enumerate(sets):
        for row, measure in enumerate(("precision", "recall")):
            panel = panels[row][column]
            for method, colour in zip(methods, _COLOURS, strict=False):
                points = [each for each in curves if each.case == name and each.method == method]
                thresholds = [each.threshold for each in points if each.threshold is not None]
                shares = [getattr(each, measure) for each in points]
                panel.plot(thresholds, [share.value for share in shares], color=colour, label=method)
                panel.fill_between(
                    thresholds,
                    [share.low for share in shares],
                    [share.high for share in shares],
                    color=colour,
                    alpha=0.15,
                    linewidth=0,
                )
            panel.set_title(f"{name}: {measure}")
            panel.set_ylim(0, 1.02)
            panel.grid(alpha=0.3)
    figure.supxlabel("threshold (for `verified`: --resemblance); bands: 95% intervals")
    handles, names = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    figure.savefig(path)
