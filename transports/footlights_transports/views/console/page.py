"""Routes of the console's page: its HTML, its style and its ES modules. They are the same for every client.

The page may run only the scripts and styles of this server, and may speak to it alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import trio
from starlette.exceptions import HTTPException
from starlette.responses import Response

from footlights_transports.http.javascript import STATIC
from footlights_transports.http.openapi import TEXT, answer
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import path_of

if TYPE_CHECKING:
    from starlette.requests import Request

FOLDER = STATIC / "console"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
}
_NAME = re.compile(r"[a-z_]+\.(js|css|svg)")
_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


class PageRoutes:
    """The files of the page."""

    @Operation("GET", "/", {200: answer("It.", TEXT, "text/html")}, public=True)
    async def console(self, request: Request) -> Response:
        """The console, a page for operators."""
        return Response(await _read("index.html"), headers=_HEADERS, media_type="text/html")

    @Operation("GET", "/console/files/{name}", {200: answer("It.", TEXT, "text/javascript")}, (404,), public=True)
    async def console_file(self, request: Request) -> Response:
        """A script or the style of the console."""
        name = path_of(request)["name"]
        if (known := _NAME.fullmatch(name)) is None:
            raise HTTPException(404)
        return Response(await _read(name), headers=_HEADERS, media_type=_TYPES[known[1]])


async def _read(name: str) -> bytes:
    try:
        return await trio.Path(FOLDER / name).read_bytes()
    except FileNotFoundError:
        raise HTTPException(404) from None
