"""A server with AG-UI runs, to be killed: `python ag_ui_server.py LEDGER PORT` prints its port, and serves.

In the first epoch its model says the first words and then nothing. In later ones it says all.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from footlights import open_stage
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.http.server import serve_http
from footlights_transports.views.ag_ui.view import AgUiView
from footlights_transports.views.base.view import run_views

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from footlights import Prompt, Stage
    from footlights_actors import Line

FIRST, REST = "Well, ", "good evening to you."


async def main(ledger: Path, port: int) -> None:
    stages: list[Stage] = []

    def script(_: Prompt) -> Sequence[Line]:
        return [Say(FIRST), Stall()] if stages[0].epoch == 1 else [Say(FIRST + REST)]

    async with open_stage(standard_cast(ScriptedModel(script)), ledger=ledger) as stage, trio.open_nursery() as nursery:
        stages.append(stage)
        access = SessionAccess(stage)
        mounts = await nursery.start(run_views, access, [AgUiView()])
        listening = await nursery.start(partial(serve_http, access, mounts, host="127.0.0.1", port=port))
        print(listening.port, flush=True)


@asynccontextmanager
async def ag_ui_server(ledger: Path, port: int = 0) -> AsyncGenerator[tuple[int, Callable[[], None]]]:
    """The server in a process of its own: its port, and how to kill it."""
    process = await trio.lowlevel.open_process(
        [sys.executable, __file__, str(ledger), str(port)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        said = b""
        while not said.endswith(b"\n"):
            said += await process.stdout.receive_some()
        yield int(said), process.kill
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            await process.stdout.aclose()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
