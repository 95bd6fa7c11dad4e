"""The attacker: a process that runs one flood for some seconds and then says how much it sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from footlights_bench.attack.children import ATTACKER, run_child
from footlights_bench.attack.floods_http import HTTP_FLOODS
from footlights_bench.attack.floods_slow import SLOW_FLOODS
from footlights_bench.attack.floods_websocket import WEBSOCKET_FLOODS
from footlights_bench.attack.load import Load, Tally
from footlights_bench.attack.soaks import SOAKS
from footlights_bench.attack.target import target_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_bench.attack.children import Lines
    from footlights_bench.attack.load import Flood

FLOODS: Mapping[str, Flood] = {**WEBSOCKET_FLOODS, **HTTP_FLOODS, **SLOW_FLOODS, **SOAKS}


async def work(job: Any, lines: Lines) -> None:
    flood, tally = FLOODS[job["flood"]], Tally()
    load = Load(target_from_json(job["target"]), tally)
    await lines.send("ready")
    await lines.receive()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, load)
        await trio.sleep(job["seconds"])
        # Its connections are closed only when the suite ends this process: that is no part of the flood.
        await lines.send(tally.told(job["seconds"]))
        await lines.receive()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    run_child(work, niceness=ATTACKER)
