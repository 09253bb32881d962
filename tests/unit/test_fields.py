import pytest

from esdedup import Fields, SettingError
from esdedup.fields import signature_of, value_of


def test_a_value_is_found_by_its_full_name_or_along_its_dots() -> None:
    assert value_of({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
    assert value_of({"a": {"b": 2}}, "a.b") == 2
    assert value_of({"a": "text"}, "a.b") is None


@pytest.mark.parametrize(
    "names",
    [
        {"text": ""},
        {"title": "a..b"},
        {"dedup": "a.b"},
        {"text": "title"},
        {"text": "title", "site": "title"},
        {"site": "dedup.x"},
        {"time": "_id"},
        {"source": "dedup.x"},
    ],
)
def test_names_that_cannot_be_fields_are_refused(names: dict[str, str]) -> None:
    with pytest.raises(SettingError):
        Fields(**names)


@pytest.mark.parametrize("damaged", ["é", "a", 5, None, ["QQ=="]])
def test_a_damaged_signature_counts_as_missing(damaged: object) -> None:
    assert signature_of({"dedup": {"signature": damaged}}, Fields()) == b""
    assert signature_of({"dedup": {"signature": "QQ=="}}, Fields()) == b"A"
