"""Measured server: `footlights serve` with worlds, under load from this process, and the CPU time of its processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_bench.lib.processes import clean_environment
from footlights_transports import connect

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

WORLDS = ("w1", "w2", "w3", "w4")
TOKENS = 100
"""Of a turn."""
_GAME = f"""
from footlights_actors import Flood, ScriptedModel, standard_cast

def make():
    return standard_cast(ScriptedModel(lambda _: [Flood("word ", {TOKENS})]))
"""
_SETTINGS = """
[cast]
make = "measured_game:make"
[server]
ws_port = 0
http_port = 0
[worlds]
names = ["w1", "w2", "w3", "w4"]
"""
_PORT = re.compile(rb" ws://127\.0\.0\.1:([0-9]+)/v1")


@frozen
class Measured:
    """A server, and how to ask the system about it. Linux only."""

    pid: int
    port: int

    def cpu_seconds(self) -> Mapping[int, float]:
        """The CPU time of each of its processes."""
        found: dict[int, float] = {}
        for place in Path("/proc").glob("[0-9]*"):
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            if int(place.name) == self.pid or int(fields[1]) == self.pid:
                found[int(place.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return found


@asynccontextmanager
async def measured(folder: Path, workers: int) -> AsyncGenerator[Measured]:
    """A server with so many workers, until the block is left."""
    (folder / "measured_game.py").write_text(_GAME)
    (folder / "game.toml").write_text(_SETTINGS)
    command = [sys.executable, "-m", "footlights_transports", "serve", "--workers", str(workers)]
    process = await trio.lowlevel.open_process(command, cwd=folder, env=clean_environment(), stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        shown = b""
        while not (port := _PORT.search(shown)):
            more = await process.stdout.receive_some()
            if not more:
                raise AssertionError("The measured server ended without output.")
            shown += more
        yield Measured(process.pid, int(port[1]))
    finally:
        with trio.CancelScope(shield=True):
            process.terminate()
            await process.wait()
            await process.stdout.aclose()


async def play(server: Measured, world: str, turns: int) -> None:
    """A player of a world, who waits for each turn."""
    async with connect(f"ws://127.0.0.1:{server.port}/w/{world}/v1") as client:
        session = await client.start()
        async with session.subscribe() as stream:
            for _ in range(turns):
                turn_id = await session.begin_turn("Go on.")
                async for _event in stream.until_commit(turn_id):
                    pass
