"""The harness tells the truth about real servers, in real time: `make test-harness`, on a quiet machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
import trio
from attrs import asdict

from footlights_bench.scenario.definition import SystemKind
from footlights_bench.scenario.files import read_scenario
from footlights_bench.scenario.plan import plan
from tests.kit.served import FOOTLIGHTS, open_server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.harness

GAME = """
import os, time, trio
from footlights import Intent, IntentType, SideEffects, Tool
from footlights.authority import accept
from footlights_actors import Call, Flood, Pause, ScriptedModel, standard_cast

def seconds(name):
    return float(os.environ.get(name, "0"))

def script(prompt):
    if seconds("PAYS") and not prompt.rounds:
        return [Call("pay")]
    return [Pause(0.02), *[each for _ in range(5) for each in (Flood(" word", 1), Pause(0.005))]]

async def pay(arguments, context):
    time.sleep(seconds("BLOCKS"))
    await trio.sleep(seconds("WORKS"))
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, {"till": 1}))
    return True

def till(world, intents):
    time.sleep(seconds("RULES"))
    return accept()

def make():
    tools = [Tool(name="pay", run=pay, side_effects=SideEffects.NONE, cancel_safe=True)]
    return standard_cast(ScriptedModel(script, model_id="odo"), tools=tools, world={"till": 0}, rules={"till": till})
"""
SCENARIO = """
[load]
sessions = {sessions}
turns_per_second = {rate}
duration = {duration}
warm_up = 1
seed = {seed}

[trouble]
cancel_share = 0.2
cancel_after = 0.03

[targets.accepted]
metric = "accept"
percentile = 50
at_most_ms = {bound}
"""
LAPS = 5


def scenario(
    folder: Path, *, rate: int = 20, sessions: int = 40, duration: int = 6, seed: int = 1, bound: int = 500
) -> Path:
    file = folder / "load.toml"
    file.write_text(
        SCENARIO.format(rate=rate, sessions=sessions, duration=duration, seed=seed, bound=bound), encoding="utf-8"
    )
    return file


@asynccontextmanager
async def serving(folder: Path, **environ: str) -> AsyncGenerator[str]:
    """A server of the game; its address."""
    (folder / "timed_game.py").write_text(GAME)
    (folder / "game.toml").write_text('[cast]\nmake = "timed_game:make"\n[server]\nws_port = 0\nhttp_port = 0\n')
    async with open_server(folder, "--config", "game.toml", "--ledger", "timed.ledger", environ=environ) as served:
        yield f"ws://127.0.0.1:{served.ws_port}"


async def measured(folder: Path, url: str, file: Path, name: str = "result") -> tuple[int, dict[str, Any]]:
    """The exit code and the result of the command."""
    result = folder / f"{name}.json"
    command = [*FOOTLIGHTS, "bench", "scenario", str(file), "--url", url, "--json", str(result)]
    done = await trio.run_process(command, check=False, capture_stdout=True, capture_stderr=True)
    assert result.exists(), done.stderr.decode()
    return done.returncode, json.loads(result.read_text())


def second_opinion(url: str, file: Path) -> dict[str, list[float]]:
    """What an independent client finds, of the same plan."""
    read = read_scenario(file, SystemKind.NATIVE)
    arrivals = [asdict(each) for each in plan(read)]
    load = {"players": read.load.sessions, "warm_up": read.load.warm_up}
    order = {"url": f"{url}/v1", **load, "plan": arrivals}
    program = Path(__file__).with_name("second_opinion.py")
    done = subprocess.run(
        [sys.executable, str(program)], input=json.dumps(order), capture_output=True, text=True, check=True
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def percentile(samples: list[float], percent: float) -> float:
    return sorted(samples)[max(0, ceil(len(samples) * percent / 100) - 1)]


@pytest.mark.parametrize("rate", [20, 200])
async def test_the_figures_are_those_of_an_independent_client(tmp_path: Path, rate: int) -> None:
    ours: dict[str, list[float]] = {}
    theirs: dict[str, list[float]] = {}
    async with serving(tmp_path) as url:
        for lap in range(LAPS):
            file = scenario(tmp_path, rate=rate, sessions=max(40, rate // 2), seed=lap + 1)
            _, result = await measured(tmp_path, url, file)
            other = await trio.to_thread.run_sync(second_opinion, url, file)
            for metric in ("accept", "first_token", "cancel"):
                for name, percent in (("p50", 50), ("p99", 99)):
                    ours.setdefault(f"{metric} {name}", []).append(result["latencies"][metric]["ms"][name])
                    theirs.setdefault(f"{metric} {name}", []).append(percentile(other[metric], percent))
    for name in ours:
        print(f"{rate}/s {name:16} harness {median(ours[name]):7.2f} ms   second {median(theirs[name]):7.2f} ms")
    far = {
        name: (median(ours[name]), median(theirs[name]))
        for name in ours
        if abs(median(ours[name]) - median(theirs[name])) > 1.0 + 0.1 * median(theirs[name])
    }
    assert far == {}


async def test_a_harness_that_is_stopped_says_that_its_figures_are_invalid(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    async with serving(tmp_path) as url:
        command = [
            *FOOTLIGHTS,
            "bench",
            "scenario",
            str(scenario(tmp_path, bound=50)),
            "--url",
            url,
            "--json",
            str(result),
        ]
        process = await trio.lowlevel.open_process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await trio.sleep(4)  # in the middle of the measurement, which is in real time
        os.kill(process.pid, signal.SIGSTOP)
        await trio.sleep(3.5)
        os.kill(process.pid, signal.SIGCONT)
        assert await process.wait() == 3
    found = json.loads(result.read_text())
    assert found["failed"] == 0
    assert found["harness"]["laps"][0]["pauses"]["ms"]["max"] > 3_000


FLOOD = """
import sys, trio
from footlights import BudgetConfig
from footlights_actors import Flood, Pause, ScriptedModel, standard_cast

def script(prompt):
    for _ in range(400):
        yield Flood(" word", 1)
        yield Pause(0)

def make():
    return standard_cast(ScriptedModel(script), budget=BudgetConfig(dialogue_max=1000))
"""


async def test_a_harness_that_has_too_much_to_do_says_that_its_figures_are_invalid(tmp_path: Path) -> None:
    (tmp_path / "flooding_game.py").write_text(FLOOD)
    (tmp_path / "game.toml").write_text('[cast]\nmake = "flooding_game:make"\n[server]\nws_port = 0\nhttp_port = 0\n')
    load = scenario(tmp_path, rate=100, sessions=50, bound=20)
    async with open_server(tmp_path, "--config", "game.toml", "--ledger", "flood.ledger") as served:
        code, found = await measured(tmp_path, f"ws://127.0.0.1:{served.ws_port}", load)
    assert code == 3, found["harness"]["warnings"]


@pytest.mark.parametrize(
    ("slow", "part"),
    [
        ({"PAYS": "1", "WORKS": "0.1"}, "tool"),
        ({"PAYS": "1", "RULES": "0.1"}, "commit"),
        ({"PAYS": "1", "BLOCKS": "0.1"}, "loop"),
        ({"PAYS": "1", "NETWORK": "0.02"}, "network"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_the_part_that_became_slow_is_named(tmp_path: Path, slow: dict[str, str], part: str) -> None:
    file = scenario(tmp_path, rate=4, sessions=20, duration=10)
    for name, environ in (("before", {"PAYS": "1"}), ("after", slow)):
        folder = tmp_path / name
        folder.mkdir()
        async with serving(folder, **environ) as url, delayed(url, float(environ.get("NETWORK", "0"))) as address:
            await measured(tmp_path, address, file, name)
    command = [*FOOTLIGHTS, "bench", "compare", str(tmp_path / "before.json"), str(tmp_path / "after.json")]
    done = await trio.run_process(command, capture_stdout=True)
    assert f"the part that grew the most: {part}," in done.stdout.decode()


@asynccontextmanager
async def delayed(url: str, seconds: float) -> AsyncGenerator[str]:
    """The address of a proxy that passes everything on so much later, in both directions."""
    port = int(url.rpartition(":")[2])

    async def carry(source: trio.SocketStream, sink: trio.SocketStream) -> None:
        send, receive = trio.open_memory_channel[tuple[float, bytes]](1_000)

        async def deliver() -> None:
            async for due, data in receive:
                await trio.sleep_until(due)
                await sink.send_all(data)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(deliver)
            async for data in source:
                await send.send((trio.current_time() + seconds, bytes(data)))
            nursery.cancel_scope.cancel()

    async def handle(client: trio.SocketStream) -> None:
        try:
            async with await trio.open_tcp_stream("127.0.0.1", port) as server, trio.open_nursery() as nursery:
                nursery.start_soon(carry, server, client)
                await carry(client, server)
                nursery.cancel_scope.cancel()
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        yield f"ws://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


def test_an_event_costs_the_harness_little() -> None:
    """Its processor time, from the bytes of its frame to the marks of its turn."""
    import orjson

    from footlights_bench.scenario.systems.frames import FrameReader
    from footlights_bench.scenario.systems.native import Asks, NativePlayer
    from footlights_bench.scenario.tally import Marks
    from footlights_transports.client.address import Address

    player, reader, marks = NativePlayer(Address("ws://127.0.0.1:1"), Asks()), FrameReader(), Marks()
    player.session_id = "s1-000001"
    frames = list(_frames(10_000))
    began = time.process_time()
    for frame in frames:
        for _, payload in reader.feed(frame):
            for event in player._take([orjson.loads(payload)]):
                marks.see(event, 0.0)
    each = 1e6 * (time.process_time() - began) / len(frames)
    print(f"{each:.1f} µs an event")
    assert each <= 25


def _frames(number: int) -> list[bytes]:
    heads: list[tuple[str, dict[str, object]]] = [
        ("turn_accepted", {}),
        ("model_selected", {"model_id": "m", "reason": "default"}),
        ("model_ready", {"model_id": "m", "warm_state": "hot", "load_ms": 0}),
    ]
    deltas: list[tuple[str, dict[str, object]]] = [
        ("token_delta", {"delta": " word", "offset": 5 * place}) for place in range(number - len(heads))
    ]
    return [_frame(seq, kind, payload) for seq, (kind, payload) in enumerate([*heads, *deltas])]


def _frame(seq: int, kind: str, payload: dict[str, object]) -> bytes:
    event = {
        "schema_v": "1.0",
        "session_id": "s1-000001",
        "turn_id": "t1-000001",
        "seq": seq,
        "mono_ts_ms": seq,
        "event_type": kind,
        "payload": payload,
    }
    text = json.dumps(event).encode()
    return bytes([0x81, 126]) + len(text).to_bytes(2) + text
