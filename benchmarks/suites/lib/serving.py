"""Servers of a stage on loopback, for benchmarks that measure through real sockets."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from footlights_transports.access.policy import AccessPolicy
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.native.view import NativeView

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from footlights import Stage
    from footlights_transports.access.policy import WireLimits

HOST = "127.0.0.1"


@asynccontextmanager
async def serving(
    serve: Callable[..., Awaitable[Any]], stage: Stage, limits: WireLimits, *, goodbye: float = 0.1
) -> AsyncGenerator[int]:
    """Run `serve_ws` or `serve_http` with the native view on a free port, which is yielded, until the block is left."""
    access = SessionAccess(stage, AccessPolicy(limits=limits))
    async with trio.open_nursery() as nursery:
        mounts = [NativeView().mount(access)]
        listening = await nursery.start(partial(serve, access, mounts, host=HOST, port=0, goodbye=goodbye))
        yield listening.port
        nursery.cancel_scope.cancel()
