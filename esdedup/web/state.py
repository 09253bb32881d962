"""What every route needs: the reader and the index that it reads."""

import dataclasses
from typing import Annotated, cast

from fastapi import Depends, Request

from esdedup.reading.reader import AsyncReader


@dataclasses.dataclass(frozen=True, kw_only=True)
class Site:
    """The index that is served."""

    reader: AsyncReader
    index: str


def _site(request: Request) -> Site:
    return cast("Site", request.app.state.site)


CurrentSite = Annotated[Site, Depends(_site)]
