"""What the sidecar remembers of indices."""

import asyncio

from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import IndexNotReady, ServerError
from esdedup.fields import Fields
from esdedup.sidecar.enrichment import Indices, Target

NEWS = WritableIndex(fields=Fields(), name="news")
CLOSED = IndexNotReady("the index 'news' is closed", index="news")


def test_what_takes_articles_is_remembered_and_what_takes_none_is_asked_again() -> None:
    answers: list[WritableIndex | IndexNotReady] = [CLOSED, CLOSED, NEWS]

    def find(name: str) -> WritableIndex | None:
        assert name == "news"
        answer = answers.pop(0)
        if isinstance(answer, IndexNotReady):
            raise answer
        return answer

    async def found() -> list[Target]:
        async with Indices(find) as indices:
            return [(await indices.find({"news"}))["news"] for _ in range(5)]

    assert asyncio.run(found()) == [CLOSED, CLOSED, NEWS, NEWS, NEWS]


def test_a_name_that_elasticsearch_cannot_read_concerns_its_items_alone() -> None:
    def find(name: str) -> WritableIndex | None:
        if name == "<a1-{now/x}>":
            raise ServerError("unit [x] not supported for date math", status=400)
        return NEWS

    async def found() -> dict[str, Target]:
        async with Indices(find) as indices:
            return await indices.find({"news", "<a1-{now/x}>"})

    answers = asyncio.run(found())
    assert answers["news"] is NEWS
    assert isinstance(answers["<a1-{now/x}>"], IndexNotReady)
