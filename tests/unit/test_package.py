"""The package as others see it: its names, its errors, its JSON files."""

import pickle
import types

import esdedup
from esdedup import errors
from esdedup.elastic.mappings import article_index, dedup_properties, forest_index
from esdedup.fields import Fields


def test_all_names_what_there_is() -> None:
    public = {
        name
        for name, value in vars(esdedup).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public == set(esdedup.__all__)
    assert list(esdedup.__all__) == sorted(esdedup.__all__, key=lambda name: (not name.isupper(), name))


def test_every_error_is_ours_and_says_what_it_is() -> None:
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, errors.EsdedupError)
        assert kind.__doc__
        assert name in (errors.__doc__ or "") or kind is errors.EsdedupError


def test_a_rejection_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(errors.ArticleRejected("id", "is bad")))
    assert (str(error), error.article, error.reason) == ("id: is bad", "id", "is bad")


def test_mappings() -> None:
    root = dedup_properties("dedup")["dedup"]["properties"]["root"]
    assert root == {"type": "keyword", "eager_global_ordinals": True}
    assert "near" in article_index(Fields(dedup="near"))["mappings"]["properties"]
    assert forest_index(meta={"format": 1})["mappings"]["_meta"] == {"esdedup": {"format": 1}}
