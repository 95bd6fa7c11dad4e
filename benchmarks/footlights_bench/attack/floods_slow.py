"""Slow clients: connections that send their headers or bodies a byte at a time, or say nothing at all."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.exchange import request
from footlights_bench.attack.frames import handshake
from footlights_bench.attack.sockets import BROKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights_bench.attack.load import Flood, Load
    from footlights_bench.attack.sockets import Wire
    from footlights_bench.attack.target import Address

CONNECTIONS = 300
"""More than the default of `wire.max_handshakes`."""
EACH_AFTER = 0.01
"""Seconds between them: what is measured is places that are held, and not a storm of connections."""
DRIP = 0.5
_HALF_BODY = b'{"params": {"session_id": "'


async def _drip(load: Load, address: Address, first: bytes, drop: bytes = b"a") -> None:
    async def use(wire: Wire) -> None:
        if first:
            await load.send(wire, first, 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_leave_when_closed, wire, nursery.cancel_scope)
            with suppress(*BROKEN):
                while True:
                    await trio.sleep(DRIP)
                    if drop:
                        await load.send(wire, drop, 1)
            nursery.cancel_scope.cancel()

    await load.wires(CONNECTIONS, address, use, each_after=EACH_AFTER)


async def _leave_when_closed(wire: Wire, scope: trio.CancelScope) -> None:
    await wire.discard()
    scope.cancel()


def _slow_body(load: Load, *, token: bool) -> bytes:
    whole = request(
        load.target.http, "POST", "/v1/sessions", token=load.target.token if token else None, body=b" " * 1000
    )
    return whole[:-1000] + _HALF_BODY


async def _slow_bodies(load: Load, *, token: bool) -> None:
    await _drip(load, load.target.http, _slow_body(load, token=token))


async def _on_both(load: Load, first: Callable[[Address], bytes], drop: bytes) -> None:
    async with trio.open_nursery() as nursery:
        for address in (load.target.websocket, load.target.http):
            nursery.start_soon(_drip, load, address, first(address), drop)


def _open_headers(address: Address) -> bytes:
    return handshake(address, None)[:-2] + b"X-Slow: "


SLOW_FLOODS: Mapping[str, Flood] = {
    "slow/bodies-of-strangers": partial(_slow_bodies, token=False),
    "slow/bodies-of-a-user": partial(_slow_bodies, token=True),
    "slow/headers": partial(_on_both, first=_open_headers, drop=b"a"),
    "slow/silence": partial(_on_both, first=lambda _: b"", drop=b""),
}
