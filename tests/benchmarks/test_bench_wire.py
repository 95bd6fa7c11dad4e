"""The harness measures what it says it measures. How large the numbers are is a benchmark's matter, never a test's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from footlights_bench.lib.scripts import EVENTS_PER_TURN, whole_turn_yielding
from footlights_bench.wire.sides import Layout, open_bare, open_ours, open_sink, open_staged
from footlights_bench.wire.sse import race_sse
from footlights_bench.wire.throughput import race
from tests.kit.command import footlights

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_quick_run_prints_and_writes_every_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wire.json"
    assert footlights(monkeypatch, "bench", "wire", "--quick", "--json", str(path)) == 0
    written = json.loads(path.read_text())
    assert written["bench"] == "wire"
    assert {figure["subject"] for figure in written["figures"]} == {
        "events, 1 client",
        "events, 3 clients",
        "events, 1 client of 3 sessions",
        "events over SSE, 1 client",
        "events over SSE, 3 clients",
        "seen by a client, 1 session",
        "seen by 3 clients, each with a streaming turn",
    }
    assert all(figure["value"] > 0 for figure in written["figures"])
    assert "turn_accepted after begin_turn" in capsys.readouterr().out


async def test_everybody_sends_what_everybody_else_sends() -> None:
    laps = await race(Layout(clients=2, sessions_each=2), turns=2, laps=1)
    assert {lap.turns for (lap,) in laps.values()} == {8}
    assert laps["bare loop"][0].given % 8 == 0
    for (lap,) in laps.values():
        # Some tokens may come joined, but each turn has its five other events.
        assert 6 * 8 <= lap.given <= EVENTS_PER_TURN * 8


async def test_each_lap_is_counted_by_itself() -> None:
    layout = Layout(1, 1)
    async with (
        open_sink() as sink,
        open_ours(whole_turn_yielding, sink, "ours", layout) as ours,
        open_staged(whole_turn_yielding, sink, "staged", layout) as staged,
        open_bare(whole_turn_yielding, sink, "bare", layout) as bare,
    ):
        for crowd, side in (("bare", bare), ("ours", ours), ("staged", staged), ("bare", bare)):
            await side.play(1)
            assert (await sink.ask(do="take", crowd=crowd, commits=1))["events"] <= EVENTS_PER_TURN


async def test_over_sse_everybody_sends_what_the_other_sends() -> None:
    laps = await race_sse(clients=2, turns=2, laps=1)
    assert {lap.turns for (lap,) in laps.values()} == {4}
    for (lap,) in laps.values():
        assert 6 * 4 <= lap.given <= EVENTS_PER_TURN * 4
    assert laps["bare Hypercorn"][0].given % 4 == 0
