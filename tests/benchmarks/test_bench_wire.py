"""The wire suite measures what it says. Tests check no performance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.lib.scripts import EVENTS_PER_TURN, whole_turn_yielding
from suites.wire.senders import Layout, open_bare, open_clients, open_ours, open_staged
from suites.wire.throughput import SSE, WEBSOCKET, race

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.conftest import QuickRun


def test_a_quick_run_prints_and_writes_every_figure(quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("wire")
    assert run.subjects == {
        "events, 1 client",
        "events, 3 clients",
        "events, 1 client of 3 sessions",
        "events over SSE, 1 client",
        "events over SSE, 3 clients",
        "seen by a client, 1 session",
        "seen by 3 clients, each with a streaming turn",
    }
    assert all(figure["value"] > 0 for figure in run.figures)


async def test_every_sender_sends_the_same_turns() -> None:
    laps = await race(WEBSOCKET, Layout(clients=2, sessions_each=2), turns=2, laps=1)
    assert {lap.turns for (lap,) in laps.values()} == {8}
    assert laps["bare loop"][0].given % 8 == 0
    for (lap,) in laps.values():
        # Some tokens may come joined, but each turn has its five other events.
        assert 6 * 8 <= lap.given <= EVENTS_PER_TURN * 8


async def test_every_lap_is_counted_from_zero() -> None:
    layout = Layout(1, 1)
    async with (
        open_clients() as clients,
        open_ours(whole_turn_yielding, clients, "ours", layout) as ours,
        open_staged(whole_turn_yielding, clients, "staged", layout) as staged,
        open_bare(whole_turn_yielding, clients, "bare", layout) as bare,
    ):
        for crowd, sender in (("bare", bare), ("ours", ours), ("staged", staged), ("bare", bare)):
            await sender.play(1)
            assert (await clients.ask(do="take", crowd=crowd, commits=1))["events"] <= EVENTS_PER_TURN


async def test_over_sse_both_senders_send_the_same_turns() -> None:
    laps = await race(SSE, Layout(clients=2, sessions_each=1), turns=2, laps=1)
    assert {lap.turns for (lap,) in laps.values()} == {4}
    for (lap,) in laps.values():
        assert 6 * 4 <= lap.given <= EVENTS_PER_TURN * 4
    assert laps["bare Hypercorn"][0].given % 4 == 0
