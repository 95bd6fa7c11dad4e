"""Targets: other people's servers, and one's own, as systems of a scenario."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from attrs import evolve

from footlights.errors import InvalidCommand
from footlights_bench import Moment
from footlights_bench.lib.progress import ignore_progress
from footlights_bench.scenario.definition import Load, Metric, Scenario, SystemKind, Trouble, TurnShape
from footlights_bench.scenario.suite import TooFewFiles, allow_open_files, measure
from footlights_bench.scenario.systems.asked import Asked
from footlights_bench.scenario.systems.choice import choose
from footlights_bench.scenario.systems.frames import FrameReader, Opcode
from footlights_bench.scenario.systems.http_stream import server_sent
from footlights_transports.client.protocol import ConnectionLost
from tests.kit.served import open_server, write_game

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from footlights_bench.scenario.result import Result

LOAD = Load(sessions=2, turns_per_second=40.0, duration=0.2, patience=5.0)
SCENARIO = Scenario(name="other", load=LOAD, turn=TurnShape(), trouble=Trouble(), targets=())


@asynccontextmanager
async def answering(*events: object, status: str = "200 OK") -> AsyncGenerator[tuple[str, list[dict[str, Any]]]]:
    """A server that answers every request with these server-sent events; its address, and the bodies that it got."""
    asked: list[dict[str, Any]] = []

    async def handle(stream: trio.SocketStream) -> None:
        got = b""
        async with stream:
            while b"\r\n\r\n" not in got or not got.endswith(b"}"):
                got += bytes(await stream.receive_some())
            asked.append(json.loads(got.partition(b"\r\n\r\n")[2]))
            await stream.send_all(f"HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\n\r\n".encode())
            for event in events:
                data = event if isinstance(event, str) else json.dumps(event)
                await stream.send_all(f"data: {data}\n\n".encode())

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}/v1", asked
        nursery.cancel_scope.cancel()


async def played(target: str, scenario: Scenario = SCENARIO) -> Result:
    return await measure(scenario, choose(None, target, "a-token"), False, ignore_progress)


def word(text: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}}]}


async def test_a_model_server_is_measured_through_openais_interface() -> None:
    turn = TurnShape(model="tiny", says=["A room?"])
    async with answering({"choices": [{"delta": {"role": "assistant"}}]}, word("One"), word("."), "[DONE]") as (
        url,
        asked,
    ):
        result = await played(f"openai:{url}", evolve(SCENARIO, turn=turn))
    assert result.failed == 0
    assert result.latencies[Metric.INTER_TOKEN].count == result.turns > 2
    assert asked[0]["messages"] == [{"role": "user", "content": "A room?"}]
    assert (asked[0]["model"], asked[0]["stream"]) == ("tiny", True)


async def test_an_agent_is_measured_through_ag_ui() -> None:
    text = {"type": "TEXT_MESSAGE_CONTENT", "delta": "x"}
    async with answering({"type": "RUN_STARTED"}, text, text, {"type": "RUN_FINISHED"}) as (url, asked):
        result = await played(f"agui:{url}")
    assert result.failed == 0
    assert len({each["threadId"] for each in asked}) == 2
    assert len({each["runId"] for each in asked}) == len(asked)


async def test_a_failed_run_and_a_refusal_are_failed_turns_that_say_why() -> None:
    async with answering({"type": "RUN_STARTED"}, {"type": "RUN_ERROR"}) as (url, _):
        result = await played(f"agui:{url}")
    assert result.failed == result.turns > 2
    assert result.troubles == ["model_error: The run ended with RUN_ERROR."]
    async with answering(status="429 Too Many") as (url, _):
        assert (await played(f"openai:{url}")).troubles == ["refused: The server answered with 429."]


async def test_every_server_sent_event_is_a_piece_of_the_answer() -> None:
    async with answering("a", "b", "c") as (url, asked):
        result = await played(f"sse:{url}")
    assert result.failed == 0
    assert result.latencies[Metric.INTER_TOKEN].count == 2 * result.turns
    assert asked[0] == {"input": "Go on."}


async def test_a_server_that_is_not_there_is_a_failed_turn() -> None:
    result = await played("sse:http://127.0.0.1:9/")
    assert result.failed == result.turns
    assert result.troubles == ["connection_lost: No server answers at that address."]


async def test_a_footlights_server_is_measured_over_http(tmp_path: Path) -> None:
    game = write_game(tmp_path)
    trouble = Trouble(cancel_share=0.5, cancel_after=0.02)
    stay = evolve(SCENARIO, turn=TurnShape(says=["Please stay."]), trouble=evolve(trouble, cancel_share=1.0))
    async with open_server(tmp_path, "--config", str(game)) as served:
        url = f"http:http://127.0.0.1:{served.http_port}"
        assert (await played(url)).failed == 0
        canceled = await played(url, stay)
    assert canceled.outcomes == {"canceled": canceled.turns}
    assert canceled.kind is SystemKind.HTTP


class Slow:
    """A conversation whose turns take a second."""

    async def ask(self, said: str) -> AsyncGenerator[Moment]:
        yield Moment.ACCEPTED
        await trio.sleep(0.5)
        yield Moment.TEXT
        await trio.sleep(0.5)
        yield Moment.END
        await trio.sleep(0.25)
        yield Moment.COMMITTED


async def test_a_target_of_ones_own_is_measured_by_its_moments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet_clock: object
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_target.py").write_text("from tests.benchmarks.test_bench_scenario_targets import Slow\n")
    monkeypatch.delitem(sys.modules, "my_target", raising=False)
    slow = evolve(SCENARIO, load=evolve(LOAD, turns_per_second=1.0, duration=10.0, arrivals="constant"))
    result = await played("my_target:Slow", slow)
    assert result.failed == 0
    found = {metric.value: each.percentile(50) for metric, each in result.latencies.items() if each.count}
    assert found == {
        "accept": pytest.approx(0.0, abs=1e-3),
        "first_token": pytest.approx(0.5, rel=2e-3),
        "final": pytest.approx(1.0, rel=2e-3),
        "commit": pytest.approx(1.25, rel=2e-3),
    }


async def test_a_cancel_closes_the_turn(quiet_clock: object) -> None:
    async with Asked("slow", Slow).open_player() as player:
        turn_id = await player.begin_turn("Well?")
        await trio.sleep(0.1)
        await player.cancel(turn_id)
        seen = [event.event_type.value for _ in range(3) for event in await player.receive_batch()]
    assert seen == ["turn_accepted", "turn_interrupted", "commit_final"]


@pytest.mark.parametrize("target", ["", "tea:pot", "openai:nowhere", "footlights:nothing", "http:ws://x"])
def test_what_is_no_target_is_an_error(target: str) -> None:
    with pytest.raises(InvalidCommand):
        choose(None, target, None)


def test_two_systems_are_an_error() -> None:
    with pytest.raises(InvalidCommand, match="use one of them"):
        choose("ws://x", "sse:http://x", None)


# -- files, frames and streams


def test_too_few_files_are_said_before_the_load() -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        pytest.skip("this system sets no limit")
    with pytest.raises(TooFewFiles, match="raise the limit"):
        allow_open_files(hard + 1)


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
@pytest.mark.parametrize("step", [1, 7, 1_000_000])
def test_frames_are_read_however_they_are_cut(size: int, step: int) -> None:
    payload = bytes(size)
    length = bytes([size]) if size < 126 else bytes([126]) + size.to_bytes(2) if size < 65_536 else b""
    length = length or bytes([127]) + size.to_bytes(8)
    sent = bytes([0x01]) + length + payload + b"\x89\x01!" + bytes([0x80, 3]) + b"end"
    step = max(step, len(sent) // 500)
    reader = FrameReader()
    got = [each for at in range(0, len(sent), step) for each in reader.feed(sent[at : at + step])]
    assert got == [(Opcode.PING, b"!"), (Opcode.TEXT, payload + b"end")]


@pytest.mark.parametrize("size", [0x80, 0xFE, 0xFF])
def test_a_masked_frame_is_refused(size: int) -> None:
    with pytest.raises(ConnectionLost):
        list(FrameReader().feed(bytes([0x81, size, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])))


async def test_server_sent_events_are_read_however_they_are_cut() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for byte in b": hello\r\n\r\ndata: a\r\ndata: b\r\nid: 3\r\n\r\ndata:c\n\n":
            yield bytes([byte])
            await trio.lowlevel.checkpoint()

    assert [data async for data in server_sent(pieces())] == ["a\nb", "c"]
