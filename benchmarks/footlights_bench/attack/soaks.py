"""Soaks: refused input for longer than any flood, while the server's memory must stay flat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.floods_http import HTTP_FLOODS
from footlights_bench.attack.floods_websocket import WEBSOCKET_FLOODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_bench.attack.load import Flood, Load

_REFUSED = (
    "flood/refused-large",
    "flood/refused-brackets",
    "flood/refused-nested",
    "flood/refused-small",
    "flood/empty-frames",
    "flood/http-refused-bodies",
    "flood/malformed-handshakes",
)


async def _all_kinds(load: Load) -> None:
    floods = {**WEBSOCKET_FLOODS, **HTTP_FLOODS}
    async with trio.open_nursery() as nursery:
        for name in _REFUSED:
            nursery.start_soon(floods[name], load)


SOAKS: Mapping[str, Flood] = {
    "memory/refused-large": WEBSOCKET_FLOODS["flood/refused-large"],
    "memory/all-kinds": _all_kinds,
}
