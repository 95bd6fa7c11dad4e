"""Slow clients: connections that send their headers or bodies a byte at a time, or nothing at all."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.raw.http import request
from footlights_bench.attack.raw.sockets import BROKEN
from footlights_bench.attack.raw.websocket import handshake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights_bench.attack.floods.load import Flood, Load
    from footlights_bench.attack.raw.sockets import Connection
    from footlights_bench.attack.target import Address

CONNECTIONS = 300
"""More than the default of `wire.max_handshakes`."""
EACH_AFTER = 0.01
"""Seconds between them: these attacks hold places and are not a storm of connections."""
DRIP = 0.5
_HALF_BODY = b'{"params": {"session_id": "'


async def _drip(load: Load, address: Address, first: bytes, drop: bytes = b"a") -> None:
    async def use(connection: Connection) -> None:
        if first:
            await load.send(connection, first, 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.discard_then_cancel, nursery.cancel_scope)
            with suppress(*BROKEN):
                while True:
                    await trio.sleep(DRIP)
                    if drop:
                        await load.send(connection, drop, 1)
            nursery.cancel_scope.cancel()

    await load.connections_to(CONNECTIONS, address, use, each_after=EACH_AFTER)


async def _slow_bodies(load: Load, *, token: str | None) -> None:
    whole = request(load.target.http, "POST", "/v1/sessions", token=token, body=b" " * 1000)
    await _drip(load, load.target.http, whole[:-1000] + _HALF_BODY)


async def _slow_bodies_of_a_user(load: Load) -> None:
    await _slow_bodies(load, token=load.target.token)


async def _on_both(load: Load, first: Callable[[Address], bytes], drop: bytes) -> None:
    async with trio.open_nursery() as nursery:
        for address in (load.target.websocket, load.target.http):
            nursery.start_soon(_drip, load, address, first(address), drop)


def _open_headers(address: Address) -> bytes:
    return handshake(address, None)[:-2] + b"X-Slow: "


SLOW_FLOODS: Mapping[str, Flood] = {
    "slow/bodies-of-strangers": partial(_slow_bodies, token=None),
    "slow/bodies-of-a-user": _slow_bodies_of_a_user,
    "slow/headers": partial(_on_both, first=_open_headers, drop=b"a"),
    "slow/silence": partial(_on_both, first=lambda _: b"", drop=b""),
}
