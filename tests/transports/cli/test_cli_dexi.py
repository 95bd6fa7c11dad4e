"""Dexi streams on the command line: their schemas and their laws."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import trio

from footlights import open_stage
from footlights.events import TokenDelta, ToolCallResult, ToolCallStarted, TurnFinal
from footlights.modes import ExecutionPolicy, decide
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports.views.dexi.pure.schema import dexi_schema
from tests.kit.command import footlights
from tests.kit.views.dexi_kit import CHAT, OK, run_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


CALL = (ToolCallStarted("call-1", "look"), ToolCallResult("call-1", "look", canceled=False))


def recording(folder: Path, *more: str, cut: int = 0) -> str:
    said = (TokenDelta("Well.", 0), TurnFinal("Well."), OK)
    events = [*run_of(*said), *run_of(*said, decision=CHAT)]
    file = folder / "runs.jsonl"
    lines = [json.dumps(event) for event in events[: len(events) - cut]]
    file.write_text("".join(f"{line}\n" for line in (*lines, *more)))
    return str(file)


def test_a_run_of_the_innkeeper_rents_the_attic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert footlights(monkeypatch, "run", "--agent", "innkeeper", "I want to rent the attic") == 0
    assert "rent_room: the attic, 2 coins" in capsys.readouterr().out


def test_the_schema_is_printed_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert footlights(monkeypatch, "schema", "dexi") == 0
    assert json.loads(capsys.readouterr().out) == dexi_schema()


def test_there_is_no_schema_of_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert footlights(monkeypatch, "schema", "wine") == 2


def test_lawful_runs_are_summed_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert footlights(monkeypatch, "laws", "--dialect", "dexi", recording(tmp_path)) == 0
    assert capsys.readouterr().out == "10 events, 2 runs: lawful\n"


def test_each_violation_of_a_run_has_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert footlights(monkeypatch, "laws", "--dialect", "dexi", recording(tmp_path, "no json", "[]", cut=1)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "json: run r1-000001 event 10: is not valid JSON",
        "schema: run r1-000001 event 11: event: must be an object",
        "done_last: run r1-000001: the run never ends",
        "11 events, 2 runs: broken 3 times",
    ]


def test_a_run_that_was_cut_short_may_be_unfinished(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = recording(tmp_path, cut=1)
    assert footlights(monkeypatch, "laws", "--dialect", "dexi", "--incomplete", file) == 0
    assert capsys.readouterr().out == "9 events, 2 runs: lawful\n"


def test_a_recording_of_what_was_read_later_has_silences(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    events = run_of(*CALL, TurnFinal(""), OK, pauses=[0, 9])
    file = tmp_path / "run.jsonl"
    file.write_text("".join(f"{json.dumps(event)}\n" for event in events if event["type"] != "heartbeat"))
    assert footlights(monkeypatch, "laws", "--dialect", "dexi", str(file)) == 1
    assert "heartbeat_pace: run r1-000001 event 6: " in capsys.readouterr().out
    assert footlights(monkeypatch, "laws", "--dialect", "dexi", "--replayed", str(file)) == 0


# -- the ledger


async def _keep_one(path: Path) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Well.")])), ledger=path) as stage:
        session = stage.start()
        decision = decide("Search the swordfish files.", ExecutionPolicy.DENY)
        await session.finalize(session.begin_turn("Search the swordfish files.", decision=decision)).wait()


def test_the_ledger_shows_why_a_turn_was_in_its_mode(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "kept.ledger"
    trio.run(_keep_one, path)
    assert footlights(monkeypatch, "ledger", "show", str(path), "t1-000001") == 0
    shown = capsys.readouterr().out
    assert "\n  mode      chat, by the policy deny\n" in shown
    assert '"candidate": "execution_candidate"' in shown
    assert "swordfish" not in shown
    assert footlights(monkeypatch, "audit", str(path)) == 0
