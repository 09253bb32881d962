"""What of an article's fields stands in results, whatever other programs have written into them."""

from typing import Any

import pytest

from esdedup import Fields
from esdedup.reading.queries import values_of


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (" The ferry\n", "The ferry"),
        (["The ferry", " ", "An update"], "The ferry, An update"),
        (["", None], None),
        (" ", None),
        (7, "7"),
        ({"text": "x"}, None),
        (None, None),
    ],
)
def test_a_title_is_one_text(title: Any, shown: str | None) -> None:
    hit = {"_id": "1", "_index": "news", "_source": {"title": title}}
    assert values_of(hit, Fields())["title"] == shown
