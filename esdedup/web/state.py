"""What every route needs: the reader, the index that it reads, and what marks boilerplate."""

import asyncio
import dataclasses
from typing import Annotated, cast

from fastapi import Depends, Request

from esdedup.reading.reader import AsyncReader
from esdedup.reading.results import FullArticle
from esdedup.reading.scope import LANGUAGE_FIELDS
from esdedup.web.marking import Marking

# Files that are made at once; more are refused.
_MOST_EXPORTS = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Site:
    """The index that is served."""

    reader: AsyncReader
    index: str
    marking: Marking
    # Held while a file is made, which takes long: visitors of pages have their turn meanwhile.
    exports: asyncio.Semaphore = dataclasses.field(default_factory=lambda: asyncio.Semaphore(_MOST_EXPORTS))
    # What stands before the paths of all pages, where the server has other things too.
    prefix: str = ""

    async def article(self, article_id: str, *, in_index: str | None = None) -> FullArticle:
        """Return an article as its pages show it, with the language that it names."""
        return await self.reader.article(
            self.index, article_id, in_index=in_index, source_includes=LANGUAGE_FIELDS
        )


async def site_of(request: Request) -> Site:
    """Return what a request reads, as its application says."""
    return cast("Site", request.app.state.site_of(request))


CurrentSite = Annotated[Site, Depends(site_of)]
