"""JavaScript modules of the package, served to pages."""

from __future__ import annotations

from pathlib import Path

import trio
from starlette.exceptions import HTTPException
from starlette.responses import Response

from footlights_transports.http.openapi import TEXT, answer

STATIC = Path(__file__).parents[1] / "static"
SOURCE = {200: answer("Its source.", TEXT, "text/javascript")}


async def javascript(name: str) -> Response:
    """An ES module of the folder `static`."""
    try:
        source = await trio.Path(STATIC / name).read_bytes()
    except FileNotFoundError:
        raise HTTPException(404) from None
    # Pages of any origin may read it: it is the same for every client, and holds no data of any.
    headers = {"cache-control": "no-cache", "access-control-allow-origin": "*"}
    return Response(source, headers=headers, media_type="text/javascript")
