"""The two servers with views, as `serve` puts them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import trio

from footlights.errors import FootlightsError
from footlights_transports.config.views import VIEWS
from footlights_transports.http import server as http
from footlights_transports.views.base.view import run_views
from footlights_transports.views.native.view import NativeView
from footlights_transports.websocket import server as websocket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.config import Config
    from footlights_transports.views.base.view import Mount, View


V = TypeVar("V", bound="View")


def view_of(config: Config, kind: type[V]) -> V:
    """The view of this kind, as the settings describe it."""
    (found,) = [each for each in config.views if isinstance(each, kind)]
    return found


def native(access: SessionAccess) -> list[Mount]:
    return [NativeView().mount(access)]


def with_routes(*views: View) -> list[View]:
    """Every view that has routes, with these in place of those of their kind."""
    given = {type(each): each for each in views}
    return [given.get(each) or each() for each in VIEWS if each.routes]


async def serve_ws(access: SessionAccess, *, views: Iterable[View] = (NativeView(),), **options: Any) -> None:
    await _serve(websocket.serve_ws, access, views, options)


async def serve_http(access: SessionAccess, *, views: Iterable[View] | None = None, **options: Any) -> None:
    """By default with every view that has routes."""
    await _serve(http.serve_http, access, with_routes() if views is None else views, options)


async def _serve(
    serve: Callable[..., Awaitable[None]], access: SessionAccess, views: Iterable[View], options: Mapping[str, Any]
) -> None:
    failed: BaseException | None = None
    async with trio.open_nursery() as nursery:
        mounts: list[Mount] = await nursery.start(run_views, access, views)
        try:
            await serve(access, mounts, **options)
        except (OSError, FootlightsError) as error:  # raised again outside of the nursery, which would wrap it
            failed = error
        nursery.cancel_scope.cancel()
    if failed is not None:
        raise failed
