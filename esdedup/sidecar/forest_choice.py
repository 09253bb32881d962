"""Which forest an article belongs to, where there are several. Pure.

The values that have a forest of their own are declared: otherwise whoever sends articles could have a
thousand forests made, each with a thread and memory, by sending a thousand values.
"""

import dataclasses
from collections.abc import Mapping

from esdedup.fields import value_of
from esdedup.ingest.actions import ArticleAction


@dataclasses.dataclass(frozen=True)
class ForestChoice:
    """Chooses by the value of a field. Articles without a value of its own go to the default forest."""

    default: str
    # None: there is only the default forest.
    field: str | None = None
    values: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all forests."""
        return (self.default, *map(self.of_value, self.values))

    def of_value(self, value: object) -> str:
        """Return the name of the forest of articles with a value; it counts as it is written."""
        has_own = isinstance(value, str) and value in self.values
        return f"{self.default}-{value}" if has_own else self.default

    def of(self, article: ArticleAction) -> str:
        """Return the name of an article's forest; of an update, by the first part that has the field."""
        if self.field is None:
            return self.default
        source = article.action["_source"]
        parts = (source.get("doc"), source.get("upsert")) if article.is_update else (source,)
        values = (value_of(each, self.field) for each in parts if isinstance(each, Mapping))
        return self.of_value(next((each for each in values if each is not None), None))
