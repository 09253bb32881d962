"""The sidecar's documents say what the code says."""

from docs.made_from_code import DOCUMENT, made


def test_the_tables_are_made_from_the_code() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert made(text) == text, "run `python -m docs.made_from_code`"
    assert "| `esdedup_articles_total` | counter |" in text
    assert "| `port` | `--port` |" in text
