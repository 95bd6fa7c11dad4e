"""The soak: refused input of every kind at once, for longer than each flood, while memory must stay flat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.floods_http import HTTP_FLOODS
from footlights_bench.attack.floods_websocket import WEBSOCKET_FLOODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_bench.attack.load import Flood, Load

SOAK = "memory/soak"
_REFUSED = (
    "flood/refused-large",
    "flood/refused-brackets",
    "flood/refused-nested",
    "flood/refused-small",
    "flood/empty-frames",
    "flood/http-refused-bodies",
    "flood/malformed-handshakes",
)


async def _soak(load: Load) -> None:
    floods = {**WEBSOCKET_FLOODS, **HTTP_FLOODS}
    async with trio.open_nursery() as nursery:
        for name in _REFUSED:
            nursery.start_soon(floods[name], load)


MIXED_FLOODS: Mapping[str, Flood] = {SOAK: _soak}
