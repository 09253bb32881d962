"""What a reader may put into the address of a list: the same for pages and JSON."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from esdedup.reading.list_request import Counting, Head, Only, Sort
from esdedup.reading.queries import narrowed
from esdedup.web.state import Site

_MAX_SIZE = 100


class Form(BaseModel):
    """The list that is asked for."""

    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, Field(description="Words that title or text must have.", max_length=1_000)] = ""
    since: Annotated[str, Field(description="Only articles from that day or moment on, ISO 8601.")] = ""
    until: Annotated[str, Field(description="Only articles up to it, inclusive.")] = ""
    source: Annotated[str, Field(description="Only articles of that source.")] = ""
    sort: Annotated[
        Sort | None, Field(description="Without it: relevance if there are words, else newest.")
    ] = None
    head: Annotated[Head | None, Field(description="Which article stands for a row.")] = None
    counting: Annotated[Counting, Field(description="What the sorts by count count.")] = "similar"
    only: Annotated[Only | None, Field(description="Only rows with similar articles, or single ones.")] = None
    dedup: Annotated[bool, Field(description="False: a row for each article.")] = True
    page: Annotated[int, Field(ge=1, description="From 1.")] = 1
    size: Annotated[int, Field(ge=1, le=_MAX_SIZE, description="Rows on a page.")] = 20
    after: Annotated[str | None, Field(description="The cursor `next` of the page before.")] = None

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, values: Any) -> Any:
        # A form sends also what nobody filled in.
        return {name: value for name, value in values.items() if value != ""}

    @property
    def chosen_sort(self) -> Sort:
        """The sort, also where none was asked for."""
        if self.sort is not None:
            return self.sort
        return "relevance" if self.q.strip() and self.only is None else "newest"

    def options(self, site: Site, source_field: str | None) -> dict[str, Any]:
        """Return what `AsyncReader.list` takes.

        Raises:
            SettingError: A time is none.
        """
        query = narrowed(
            self.q,
            fields=site.fields,
            since=self.since,
            until=self.until,
            source=self.source,
            source_field=source_field,
        )
        return {
            "query": query,
            "sort": self.chosen_sort,
            "head": self.head,
            "counting": self.counting,
            "only": self.only,
            "dedup": self.dedup,
            "page": self.page,
            "size": self.size,
            "after": self.after,
        }


class PageForm(Form):
    """The same as a person fills it in: what does not go together gives way, what is unknown is ignored."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="after")
    def _give_way(self) -> "PageForm":
        if not self.dedup:
            self.head = self.only = None
            if self.chosen_sort.startswith("similar-"):
                self.sort = "newest"
        elif self.only is not None and self.chosen_sort not in {"newest", "oldest"}:
            self.sort = "newest"
        return self
