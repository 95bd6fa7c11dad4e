"""`footlights play --json`: JSON lines in, native events out, and the output is lawful."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
import trio

from footlights import laws, open_stage
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.cli.play.games import LocalGame, open_local_game
from footlights_transports.cli.play.script import play_script
from tests.kit.command import footlights

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from trio.testing import MockClock

    from footlights import StreamEvent
    from footlights_transports.cli.play.games import Events

GREETER = """
from footlights_actors import Say

def greet(prompt):
    return [Say("Grüße")]
"""
PLAY = (sys.executable, "-m", "footlights_transports", "play", "--json")


class Script:
    """Lines of a script, each when `may_go_on` has seen the event that it waits for."""

    def __init__(self, *lines: Any) -> None:
        self._lines = [line if isinstance(line, str) else orjson.dumps(line).decode() for line in lines]

    async def receive(self, _prompt: str) -> str | None:
        await trio.lowlevel.checkpoint()
        return self._lines.pop(0) if self._lines else None


class Reacting:
    """A script that goes on when an event of this type was shown."""

    def __init__(self, event_type: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        self._event_type = event_type
        self._seen = trio.Event()
        self._lines = [before, after]

    def see(self, event: dict[str, Any]) -> None:
        if event["event_type"] == self._event_type:
            self._seen.set()

    async def receive(self, _prompt: str) -> str | None:
        if len(self._lines) == 1:
            await self._seen.wait()
        return orjson.dumps(self._lines.pop(0)).decode() if self._lines else None


async def played(
    lines: Script | Reacting, see: Callable[[dict[str, Any]], None] | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    shown: list[bytes] = []
    complaints: list[bytes] = []

    def show(line: bytes) -> None:
        shown.append(line)
        if see is not None:
            see(orjson.loads(line))

    async with open_stage(tavern_cast()) as stage:
        refused = await play_script(LocalGame(stage, stage.start(), None), lines, show, complaints.append)
    assert laws.check_jsonl(shown, complete=True) == []
    return [orjson.loads(each) for each in shown], [orjson.loads(each)["error"] for each in complaints], refused


def ends(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (each["turn_id"], each["payload"]["commit_outcome"]) for each in events if each["event_type"] == "commit_final"
    ]


async def test_lines_are_said_one_after_the_other_and_every_turn_is_committed(quiet_clock: MockClock) -> None:
    events, complaints, refused = await played(Script({"say": "Hello"}, "", {"say": "I'll take the attic"}))
    assert ends(events) == [("t1-000001", "ok"), ("t1-000002", "ok")]
    assert (complaints, refused) == ([], 0)


@pytest.mark.parametrize("cancel", [True, "t1-000001"])
async def test_a_turn_is_cancelled_while_it_is_followed(quiet_clock: MockClock, cancel: bool | str) -> None:
    lines = Reacting("token_delta", {"say": "Any rumours?"}, {"cancel": cancel})
    events, _, refused = await played(lines, lines.see)
    assert ends(events) == [("t1-000001", "fail_closed")]
    assert [each["payload"]["reason"] for each in events if each["event_type"] == "turn_interrupted"] == ["canceled"]
    assert refused == 0


async def test_params_go_with_what_is_said(quiet_clock: MockClock) -> None:
    answer = {"say": "Yes.", "params": {"approvals": {"a-000001": True}}}
    lines = Reacting("commit_final", {"say": "I want to buy the lantern"}, answer)
    events, _, _ = await played(lines, lines.see)
    assert ends(events) == [("t1-000001", "ok"), ("t1-000002", "ok")]


@pytest.mark.parametrize(("params", "model_id"), [({}, "analyst"), ({"persona": "innkeeper"}, "innkeeper")])
async def test_a_persona_answers_unless_a_line_names_another(
    quiet_clock: MockClock, params: dict[str, str], model_id: str
) -> None:
    shown: list[bytes] = []
    async with open_local_game(tavern_cast()) as game:
        lines = Script({"say": "Hello", "params": params})
        assert await play_script(game, lines, shown.append, shown.append, persona="analyst") == 0
    selected = [event for event in map(orjson.loads, shown) if event["event_type"] == "model_selected"]
    assert [each["payload"]["model_id"] for each in selected] == [model_id]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("no JSON", "invalid_command"),
        ("[]", "invalid_command"),
        ({"say": 1}, "invalid_command"),
        ({"say": "x", "cancel": True}, "invalid_command"),
        ({"cancel": False}, "invalid_command"),
        ({"say": "x", "params": {"mode": "dance"}}, "invalid_command"),
        ({"say": "x", "params": []}, "invalid_command"),
        ({"say": "x" * 70_000}, "too_large"),
        ({"cancel": "t9-000001"}, "unknown_turn"),
    ],
)
async def test_a_line_that_is_refused_is_reported_and_the_script_goes_on(
    quiet_clock: MockClock, line: Any, code: str
) -> None:
    events, complaints, refused = await played(Script(line, {"say": "Hello"}))
    assert [each["code"] for each in complaints] == [code]
    assert "dance" not in complaints[0]["message"]
    assert ends(events) == [("t1-000001", "ok")]
    assert refused == 1


async def test_output_that_fails_ends_the_script(quiet_clock: MockClock) -> None:
    def fail(_: object) -> None:
        raise BrokenPipeError

    lines = Reacting("never", {"say": "Hello"}, {})
    with pytest.raises(BrokenPipeError):
        await played(lines, fail)


def test_the_output_of_the_process_passes_the_laws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = '{"say": "Hello"}\n{"say": "Any rumours?"}\n{"cancel": "nothing"}\n'
    done = subprocess.run(
        PLAY, input=said, capture_output=True, text=True, timeout=60, cwd=tmp_path, env={**os.environ}
    )
    assert done.returncode == 1
    assert orjson.loads(done.stderr)["error"]["code"] == "unknown_turn"
    recording = tmp_path / "recording.jsonl"
    recording.write_text(done.stdout)
    assert footlights(monkeypatch, "laws", str(recording)) == 0


class Ending(LocalGame):
    """A game whose stream ends before the commit."""

    @asynccontextmanager
    async def subscribe(self) -> AsyncGenerator[Events]:
        async with super().subscribe() as stream:
            yield cast("Events", _first_of(stream))


async def _first_of(stream: Events) -> AsyncGenerator[StreamEvent]:
    async for event in stream:
        yield event
        return


async def test_a_stream_that_ends_before_the_commit_fails_the_script(quiet_clock: MockClock) -> None:
    complaints: list[bytes] = []
    async with open_stage(tavern_cast()) as stage:
        game = Ending(stage, stage.start(), None)
        assert await play_script(game, Script({"say": "Hello"}), lambda _: None, complaints.append) == 1
    [complaint] = map(orjson.loads, complaints)
    assert complaint["error"]["message"] == "The stream ended before the commit of a turn."


def test_the_output_is_utf_8_on_any_terminal(tmp_path: Path) -> None:
    (tmp_path / "game.toml").write_text('[models.greeter]\nkind = "scripted"\nscript = "greeter:greet"\n')
    (tmp_path / "greeter.py").write_text(GREETER, encoding="utf-8")
    done = subprocess.run(
        PLAY,
        cwd=tmp_path,
        input=b'{"say": "Hello"}\n',
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert "Grüße" in done.stdout.decode()
