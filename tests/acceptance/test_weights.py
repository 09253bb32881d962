"""`esdedup weights`, and the options about words."""

import json
from pathlib import Path

import pytest

from esdedup import sample
from tests.acceptance.conftest import Run

ARTICLES = (
    '{"id": 1, "text": "the ferry has ships"}\n'
    '{"id": 2, "text": "the ferry of the north"}\n'
    '{"id": 3, "text": "the north"}\n'
    '{"id": 4, "text": "<b>NORTH</b> and south"}\n'
)


def test_weights_of_articles_are_those_of_fingerprints(run: Run, tmp_path: Path) -> None:
    made = run("weights", "-", "--output", "weights.json", stdin=ARTICLES.encode())
    assert (made.code, made.out) == (0, "")
    assert "4 read, 4 counted, 0 failed, 3 words, the median weighs 0.510826" in made.err
    table = json.loads((tmp_path / "weights.json").read_text())
    # ln(5/3) twice, and ln(5/2).
    assert table == {
        "default": 0.510826,
        "articles": 4,
        "words": {"ferry": 0.916291, "north": 0.510826, "the": 0.510826},
    }
    options = ("--json", "--profile", "keywords", "--weights", "weights.json")
    shown = run("fingerprint", *options, stdin=b"the ferry to somewhere")
    assert {each["word"]: each["weight"] for each in shown.json["features"]} == {
        "ferry": 0.916291,
        "the": 0.510826,
        "to": 0.510826,
        "somewhere": 0.510826,
    }
    assert shown.err == ""


def test_words_of_a_dictionary_that_are_never_cut_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("ferry\nfähre 9\n")
    made = run("weights", "-", "--dictionary", "words.txt", stdin=ARTICLES.encode())
    assert made.code == 0
    assert "1 of 2 words of the dictionary have no effect" in made.err
    assert "'fähre' (as f | ä | hre)" in made.err


def test_bad_articles_are_counted_and_said(run: Run) -> None:
    lines = ARTICLES + 'nonsense\n{"id": 5}\n{"id": 1, "text": "again"}\n'
    made = run("weights", "-", "--min-articles", "1", stdin=lines.encode())
    assert made.code == 1
    assert json.loads(made.out)["articles"] == 4
    assert "7 read, 4 counted, 3 failed, 8 words" in made.err
    assert "standard input:5: is not JSON" in made.err
    assert "standard input:6 (id '5'): has no field 'text'" in made.err
    assert "standard input:7: repeats the id '1'" in made.err


def test_words_that_are_never_cut_are_named_and_a_dictionary_helps(run: Run, tmp_path: Path) -> None:
    (tmp_path / "weights.json").write_text('{"long-term": 3, "plan": 1}')
    (tmp_path / "words.txt").write_text("long-term 10 n\n")
    (tmp_path / "stop.txt").write_text("plan\n")
    options = ("fingerprint", "--json", "--profile", "classic", "--weights", "weights.json")
    shown = run(*options, stdin=b"a Long-Term plan")
    assert "1 of 2 words with a weight have no effect" in shown.err
    assert "'long-term' (as long | - | term); add them to a dictionary" in shown.err
    assert [each["word"] for each in shown.json["features"]] == ["plan"]
    helped = run(*options, "--dictionary", "words.txt", stdin=b"a Long-Term plan")
    assert helped.err == ""
    assert [each["word"] for each in helped.json["features"]] == ["long-term", "plan"]
    stopped = run(
        *options, "--dictionary", "words.txt", "--stop-words", "stop.txt", stdin=b"a Long-Term plan"
    )
    assert [each["word"] for each in stopped.json["features"]] == ["long-term"]
    assert len({each.json["profile"] for each in (shown, helped, stopped)}) == 3


def test_clusters_by_other_words_and_hashes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "news.jsonl").write_text("".join(json.dumps(each) + "\n" for each in sample.articles(120)))
    made = run("weights", "news.jsonl", "--segmenter", "2-grams", "--output", "weights.json")
    assert made.code == 0
    options = (
        "--profile",
        "classic",
        "--segmenter",
        "2-grams",
        "--token-hash",
        "times33",
        "--weights",
        "weights.json",
    )
    alone = run("cluster", "news.jsonl", *options)
    assert alone.code == 0
    assert run("cluster", "news.jsonl", "--workers", "2", *options).out == alone.out
    assert run("cluster", "news.jsonl", "--profile", "classic").out != alone.out
    assert "have no effect" not in alone.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["weights", "none.jsonl"], "cannot read none.jsonl"),
        (["weights", "-"], "no word occurs in 2 or more of the 1 articles"),
        (["weights", "-", "--min-articles", "0"], "Invalid value for '--min-articles'"),
        (["weights", "-", "--segmenter", "spaces"], "no segmenter 'spaces'"),
        (["weights", "-", "--dictionary", "none"], "cannot read none"),
        (["weights", "-", "--segmenter", "words", "--dictionary", "news"], "goes with the segmenter jieba"),
        (["weights", "-", "--min-articles", "1", "--output", "no/such/dir"], "cannot write"),
        (["weights"], "FILE"),
        (["cluster", "-", "--segmenter", "words"], "--segmenter goes with the profiles classic and keywords"),
        (["cluster", "-", "--stop-words", "x"], "--stop-words goes with"),
        (["cluster", "-", "--profile", "classic", "--token-hash", "md5"], "no hash 'md5'"),
    ],
)
def test_usage_errors_exit_with_2_and_say_why(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments, stdin=b'{"id": 1, "text": "one text of some words"}')
    assert result.code == 2
    assert message in result.err
