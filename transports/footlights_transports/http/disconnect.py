"""Disconnect watch: work for a request that is cancelled when the client disconnects."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Receive

_T = TypeVar("_T")


async def while_connected(receive: Receive, work: Callable[[], Awaitable[_T]]) -> _T | None:
    """Return what the work returns, or raise what it raises; None if the client disconnects before."""
    result: _T | None = None
    refused: FootlightsError | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_at_disconnect, receive, nursery.cancel_scope)
        try:
            result = await work()
        except FootlightsError as error:  # carried around the nursery, which would wrap it in a group
            refused = error
        nursery.cancel_scope.cancel(reason="the request is answered")
    if refused is not None:
        raise refused
    return result


async def _cancel_at_disconnect(receive: Receive, scope: trio.CancelScope) -> None:
    await receive()  # the guard has read the whole body, so the next message is the disconnect
    scope.cancel(reason="the client disconnected")
