"""A server that kills itself once: `python dying_server.py LEDGER PORT POINT` prints its port, and serves.

Each turn pays once: the tool adds the id of its turn as a line to the file LEDGER.paid. In the first epoch the process
ends itself by SIGKILL at `POINT`: when the model is asked ("model"), when the tool has paid ("tool"), or when the
commit is durable and not announced yet ("commit").
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from footlights import SideEffects, Tool, open_stage
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.native.view import NativeView
from footlights_transports.websocket.server import serve_ws

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from footlights import Prompt, ToolContext
    from footlights.authority import CommitRecord, Opening, TurnRequest, World
    from footlights.events import JsonValue
    from footlights_actors import Line


class DyingLedger(SqliteLedger):
    def __init__(self, path: Path, point: str) -> None:
        super().__init__(path)
        self._point = point
        self._epoch = 0

    def die_at(self, point: str) -> None:
        if (self._epoch, self._point) == (1, point):
            os.kill(os.getpid(), signal.SIGKILL)

    async def begin_epoch(self, genesis: World) -> Opening:
        opening = await super().begin_epoch(genesis)
        self._epoch = opening.epoch
        return opening

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        await super().append(records, world, requests)
        self.die_at("commit")


async def main(path: Path, port: int, point: str) -> None:
    ledger = DyingLedger(path, point)

    async def pay(_: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        with Path(f"{path}.paid").open("a") as paid:  # noqa: ASYNC230 - a short write, and nothing else runs
            paid.write(f"{context.turn_id}\n")
        ledger.die_at("tool")
        return True

    def script(prompt: Prompt) -> Sequence[Line]:
        ledger.die_at("model")
        return [Say("Paid.")] if prompt.exchanges else [Call("pay")]

    cast = standard_cast(ScriptedModel(script), tools=[Tool(name="pay", run=pay, side_effects=SideEffects.IMMEDIATE)])
    async with ledger, open_stage(cast, ledger=ledger) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage)
        mounts = [NativeView().mount(access)]
        listening = await nursery.start(partial(serve_ws, access, mounts, host="127.0.0.1", port=port))
        print(listening.port, flush=True)


@asynccontextmanager
async def dying_server(ledger: Path, point: str, port: int = 0) -> AsyncGenerator[tuple[trio.Process, int]]:
    command = [sys.executable, __file__, str(ledger), str(port), point]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        said = b""
        while not said.endswith(b"\n"):
            said += await process.stdout.receive_some()
        yield process, int(said)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
