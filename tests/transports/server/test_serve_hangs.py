"""`footlights serve` ends on a signal, even if something in it hangs.

The processes are real, and the tests wait for what they do: there is no other way to see them end.
"""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest
import trio

from tests.kit.served import Served, open_server, request, write_game

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

GAME = """
import os
import time
import trio
from footlights import tool
from footlights.authority import every_turn
from footlights_actors import Call, ScriptedModel, standard_cast
from footlights_transports.server import serve

serve.SPARE = float(os.environ["SPARE"])

class Hanging(ScriptedModel):
    def __init__(self):
        super().__init__(lambda _: [Call("sleep")], model_id="odo")

    def generate(self, prompt):
        return super().generate(prompt) if prompt.user == "tool" else self.hang(prompt)

    async def hang(self, prompt):
        yield "Well,"
        print(prompt.user, end="", flush=True)
        if prompt.user == "block":
            time.sleep(3600)
        if prompt.user == "rule":
            return
        await trio.to_thread.run_sync(time.sleep, 3600)

@tool
def sleep() -> None:
    print("tool", end="", flush=True)
    time.sleep(3600)

@every_turn
def ponder(world, intents):
    while True:
        pass

def make():
    return standard_cast(Hanging(), tools=[sleep], rules={"ponder": ponder})
"""


@asynccontextmanager
async def open_hanging(folder: Path, what: str, spare: float) -> AsyncGenerator[Served]:
    """A server in which something hangs."""
    settings = write_game(folder, "grace = 0\n[limits]\nshutdown_deadline = 0.5\n")
    (folder / "served_game.py").write_text(GAME)
    async with (
        open_server(folder, "--config", str(settings), environ={"SPARE": str(spare)}) as server,
        trio.open_nursery() as nursery,
    ):
        _, started = await request(server.http_port, "POST", "/v1/sessions")
        path = f"/v1/sessions/{started['session_id']}/turns"
        nursery.start_soon(begin_and_forget, server.http_port, path, what)
        assert server.process.stdout is not None
        with trio.fail_after(60):
            assert await server.process.stdout.receive_some() == what.encode()
        yield server
        nursery.cancel_scope.cancel()


async def begin_and_forget(port: int, path: str, what: str) -> None:
    with suppress(OSError, trio.BrokenResourceError, IndexError):  # a server that is gone answers nothing
        await request(port, "POST", path, {"input": what})


async def test_a_tool_in_a_thread_that_hangs_does_not_keep_it_from_ending_in_order(tmp_path: Path) -> None:
    async with open_hanging(tmp_path, "tool", spare=3600.0) as server:
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
        assert server.complaints.read_text() == ""


async def test_a_rule_that_computes_for_ever_is_named_and_does_not_keep_it_from_ending_in_order(tmp_path: Path) -> None:
    async with open_hanging(tmp_path, "rule", spare=3600.0) as server:
        with trio.fail_after(60):
            status, answer = 200, dict[str, object]()
            while status == 200:
                status, answer = await request(server.http_port, "GET", "/readyz")
        assert answer == {"status": "not_ready", "reasons": ["rule"], "rule": "ponder"}
        _, started = await request(server.http_port, "POST", "/v1/sessions")
        assert started["session_id"] == "s1-000002"
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 1
        assert "ponder has not returned" in server.complaints.read_text()
        assert server.complaints.read_text().endswith("what became of the last turns. The ledger has it.\n")


@pytest.mark.parametrize(
    ("what", "code", "fate"),
    [("thread", 0, "every turn is settled"), ("block", 1, "turns are left unsettled")],
)
async def test_what_never_lets_go_is_ended_with_the_process(tmp_path: Path, what: str, code: int, fate: str) -> None:
    async with open_hanging(tmp_path, what, spare=1.5) as server:
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == code
        (line,) = server.complaints.read_text().splitlines()
        assert line.endswith(
            f" error footlights.serve: The server did not shut down in 2 seconds and is ended: {fate}."
        )


async def test_a_second_signal_ends_it_at_once_also_while_its_loop_is_blocked(tmp_path: Path) -> None:
    async with open_hanging(tmp_path, "block", spare=3600.0) as server:
        with trio.fail_after(60):
            while server.process.poll() is None:  # two that come together are one
                server.process.send_signal(signal.SIGTERM)
                await trio.lowlevel.checkpoint()
        assert await server.ended() == -signal.SIGTERM
