"""Attacker: a program that runs one flood for some seconds and reports how much it sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from footlights_bench.attack.floods.http import HTTP_FLOODS
from footlights_bench.attack.floods.load import Load, Tally
from footlights_bench.attack.floods.processes import ATTACKER, run_child
from footlights_bench.attack.floods.slow import SLOW_FLOODS
from footlights_bench.attack.floods.websocket import WEBSOCKET_FLOODS
from footlights_bench.attack.target import target_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_bench.attack.floods.load import Flood
    from footlights_bench.lib.processes import JsonLines

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
    async with trio.open_nursery() as nursery:
        for name in _REFUSED:
            nursery.start_soon(FLOODS[name], load)


SOAKS: Mapping[str, Flood] = {
    "memory/refused-large": WEBSOCKET_FLOODS["flood/refused-large"],
    "memory/all-kinds": _all_kinds,
}
"""Floods of refused input that run longer than the others, while the memory of the server must stay flat."""
FLOODS: Mapping[str, Flood] = {**WEBSOCKET_FLOODS, **HTTP_FLOODS, **SLOW_FLOODS, **SOAKS}


async def work(job: Any, lines: JsonLines) -> None:
    flood, tally = FLOODS[job["flood"]], Tally()
    load = Load(target_from_json(job["target"]), tally)
    await lines.send("ready")
    await lines.receive()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, load)
        await trio.sleep(job["seconds"])
        # The connections are closed only when the suite ends this process: closing is not part of the flood.
        await lines.send(tally.summary(job["seconds"]))
        await lines.receive()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    run_child(work, niceness=ATTACKER)
