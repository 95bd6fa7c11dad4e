"""Restart of a killed server: its clients reconnect by themselves, and every turn ends once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import CommitFinal, CommitOutcome, EventType, InterruptReason, TurnInterrupted, laws
from footlights.testing import payloads
from footlights_transports import Commit, ConnectionLost, Retry, connect
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from footlights import StreamEvent
    from footlights_transports import ClientStream

PATIENT = Retry(first=0.01, longest=0.05)
"""A process really needs its time to start."""
TERMINAL = {EventType.TURN_FINAL, EventType.TURN_INTERRUPTED}


class House:
    """A server in a process of its own, on the same ledger and the same port whenever it is started."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._process: trio.Process | None = None
        self.port = 0

    async def start(self) -> None:
        command = [sys.executable, str(ROOT / "tests/kit/peers/ws_house.py"), str(self._ledger), str(self.port)]
        self._process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        async with self._process.stdout as lines:
            said = b""
            while not said.endswith(b"\n"):
                more = await lines.receive_some()
                assert more, "it did not start"
                said += more
        self.port = int(said)

    async def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()


@asynccontextmanager
async def house(folder: Path) -> AsyncGenerator[House, None]:
    with trio.fail_after(100):
        it = House(folder / "house.ledger")
        await it.start()
        try:
            yield it
        finally:
            with trio.CancelScope(shield=True):
                await it.kill()


async def take(stream: ClientStream, turn_id: str, most: int) -> list[StreamEvent]:
    """The first events of a turn: all of it, if deltas were joined and there are no more."""
    events: list[StreamEvent] = []
    async for event in stream.until_commit(turn_id):
        events.append(event)
        if len(events) == most:
            break
    return events


def check_union(events: list[StreamEvent]) -> None:
    assert laws.check(events) == []
    commits = Counter(event.turn_id for event in events if event.event_type is EventType.COMMIT_FINAL)
    ends = Counter(event.turn_id for event in events if event.event_type in TERMINAL)
    assert commits == ends == Counter({event.turn_id for event in events})


async def test_a_stream_outlives_the_process_that_it_came_from(tmp_path: Path) -> None:
    async with house(tmp_path) as server, connect(f"ws://127.0.0.1:{server.port}", retry=PATIENT) as client:
        session = await client.start()
        events: list[StreamEvent] = []
        async with session.subscribe() as stream:
            for most, said in ((1, "Count for ever."), (4, "Count, please."), (9, "Count, please.")):
                turn_id = await session.begin_turn(said)
                events += await take(stream, turn_id, most)
                await server.kill()
                await server.start()
                events += [event async for event in stream.until_commit(turn_id)]
            turn_id = await session.begin_turn("Count, please.")
            events += [event async for event in stream.until_commit(turn_id)]
            assert (await session.finalize(turn_id)).commit_outcome is CommitOutcome.OK
    check_union(events)
    cut_short = [each for each in payloads(events, TurnInterrupted) if each.reason is InterruptReason.RUNTIME_RESTART]
    assert cut_short
    assert isinstance(events[-1].payload, CommitFinal)
    assert events[-1].payload.commit_outcome is CommitOutcome.OK


async def test_a_turn_whose_end_was_seen_is_not_ended_again(tmp_path: Path) -> None:
    async with house(tmp_path) as server, connect(f"ws://127.0.0.1:{server.port}", retry=PATIENT) as client:
        session = await client.start()
        events: list[StreamEvent] = []
        async with session.subscribe() as stream:
            turn_id = await session.begin_turn("Count, please.")
            async for event in stream.until_commit(turn_id):
                events.append(event)
                if event.event_type in TERMINAL:
                    await server.kill()
                    await server.start()
    check_union(events)
    assert sum(event.event_type in TERMINAL for event in events) == 1


async def test_commands_find_their_session_again_without_a_subscriber(tmp_path: Path) -> None:
    async with house(tmp_path) as server, connect(f"ws://127.0.0.1:{server.port}", retry=PATIENT) as client:
        session = await client.start()
        digest = (await session.finalize(await session.begin_turn("Count, please."))).commit_digest
        await server.kill()
        await server.start()
        turn_id = await session.begin_turn("Count, please.")
        assert (await session.finalize(turn_id)).commit_digest != digest


async def test_a_finalize_is_answered_by_the_next_process(tmp_path: Path) -> None:
    async with house(tmp_path) as server, connect(f"ws://127.0.0.1:{server.port}", retry=PATIENT) as client:
        session = await client.start()
        async with session.subscribe() as stream, trio.open_nursery() as nursery:
            turn_id = await session.begin_turn("Count, please.")
            await anext(stream)
            commits: list[Commit] = []

            @nursery.start_soon
            async def _wait() -> None:
                commits.append(await session.finalize(turn_id))

            await server.kill()
            await server.start()
            told = [event async for event in stream.until_commit(turn_id)]
        assert isinstance(told[-1].payload, CommitFinal)
        assert [each.commit_digest for each in commits] == [told[-1].payload.commit_digest]
        assert commits[0].commit_outcome is CommitOutcome.FAIL_CLOSED


async def test_a_client_gives_up_when_its_patience_is_over(tmp_path: Path) -> None:
    hasty = Retry(first=0.001, longest=0.001, patience=0.01)
    async with house(tmp_path) as server, connect(f"ws://127.0.0.1:{server.port}", retry=hasty) as client:
        session = await client.start()
        async with session.subscribe() as stream:
            await server.kill()
            with pytest.raises(ConnectionLost):
                await anext(stream)
            with pytest.raises(ConnectionLost):
                await session.cancel()
