"""Command line: the output and the exit code of each command."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest
import trio
import typer

from footlights import open_stage, wire
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.cli.exit_codes import exit_on_refusal
from footlights_transports.cli.main import main
from footlights_transports.client.protocol import MAX_REASON_CHARS, refusal
from tests.kit.command import footlights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def _record() -> list[bytes]:
    async with open_stage(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            session.begin_turn("Hello")
            last = session.begin_turn("rent the attic")
            return [wire.encode(event) + b"\n" async for event in stream.until_commit(last)]


@pytest.fixture
def recording() -> list[bytes]:
    return trio.run(_record)


def test_without_arguments_it_shows_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert footlights(monkeypatch) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: footlights ")
    for command in ("play", "laws", "bench"):
        assert f"\n  {command} " in shown


def test_it_knows_its_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert footlights(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"footlights {version('footlights')}\n"


def test_python_dash_m_is_the_same_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["footlights", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("footlights_transports", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"footlights {version('footlights')}\n"


# -- play


def test_play_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "script.txt"
    script.write_text("Hello\n")
    with script.open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        assert footlights(monkeypatch, "play") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "> Hello"
    assert shown[-1].startswith("  ✓ committed c-")


def _read_to_the_end(terminal: int) -> str:
    shown = b""
    # Nobody holds its other side any more; when all is read, that is an error.
    with suppress(OSError):
        while data := os.read(terminal, 65_536):
            shown += data
    return shown.decode()


def test_play_at_a_terminal_welcomes_and_sees_off(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = os.openpty()
    os.write(master, b"\x04")
    with os.fdopen(slave, "r", closefd=False) as keyboard, os.fdopen(slave, "w") as screen:
        monkeypatch.setattr(sys, "stdin", keyboard)
        monkeypatch.setattr(sys, "stdout", screen)
        assert footlights(monkeypatch, "play") == 0
    shown = _read_to_the_end(master)
    os.close(master)
    assert "You enter the Mended Lantern." in shown
    assert "Ctrl-C interrupts" in shown
    assert "The door closes behind you." in shown


# -- laws


def test_a_lawful_recording_is_summed_up(
    recording: list[bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_bytes(b"".join(recording))
    assert footlights(monkeypatch, "laws", str(file)) == 0
    assert capsys.readouterr().out == f"{len(recording)} events, 2 turns: lawful\n"


def test_each_violation_has_a_line_with_its_law_turn_and_seq(
    recording: list[bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_bytes(b"".join([*recording[:-1], b"no json\n", b"[]\n"]))
    assert footlights(monkeypatch, "laws", str(file)) == 1
    *violations, summary = capsys.readouterr().out.splitlines()
    assert any(line.startswith("json: ") for line in violations)
    assert any(line.startswith("one_commit: s1-000001 t1-000002") for line in violations)
    assert summary == f"{len(recording) + 1} events, 2 turns: broken {len(violations)} times"


def test_a_recording_that_was_cut_short_is_lawful_if_that_is_said(
    recording: list[bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_bytes(recording[0])
    assert footlights(monkeypatch, "laws", str(file)) == 1
    assert footlights(monkeypatch, "laws", "--incomplete", str(file)) == 0
    assert capsys.readouterr().out.endswith("\n1 event, 1 turn: lawful\n")


def test_a_file_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert footlights(monkeypatch, "laws", str(tmp_path / "nothing.jsonl")) == 2
    shown = capsys.readouterr().err
    assert "nothing.jsonl" in shown
    assert "No such file" in shown


@pytest.mark.parametrize(("kept", "code"), [(None, 0), (-1, 1)])
def test_a_recording_may_come_from_standard_input(recording: list[bytes], kept: int | None, code: int) -> None:
    command = [sys.executable, "-m", "footlights_transports", "laws", "-"]
    done = subprocess.run(command, input=b"".join(recording[:kept]), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, b"")
    assert done.stdout.endswith(b": lawful\n") is (code == 0)


# -- bench


def test_an_unknown_suite_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert footlights(monkeypatch, "bench", "everything") == 2
    assert "everything" in capsys.readouterr().err


# -- the extra


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "footlights_transports.cli.commands", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)
    assert footlights(monkeypatch, "play") == 2
    assert (
        capsys.readouterr().err
        == "This needs typer: install the extra server (from a checkout: pip install '.[server]')\n"
    )


def _without_rich(*arguments: str) -> subprocess.CompletedProcess[str]:
    # In a process of its own, where nothing of it was imported yet.
    program = "import sys; sys.modules['rich'] = None; from footlights_transports.cli.main import main; main()"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)


def test_half_an_extra_is_named_too() -> None:
    done = _without_rich("audit", "some.ledger")
    assert done.returncode == 2
    assert done.stderr.startswith("This needs rich.")
    assert done.stderr.count("\n") == 1


def test_a_command_that_does_without_the_extra_works_without_it() -> None:
    done = _without_rich("schema", "dexi")
    assert (done.returncode, done.stderr) == (0, "")


def test_another_missing_module_is_not_taken_for_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["footlights", "play"])
    monkeypatch.setitem(sys.modules, "footlights_transports.cli.play.standard_io", None)
    with pytest.raises(ModuleNotFoundError, match=r"footlights_transports\.cli\.play\.standard_io"):
        main()


# -- Ctrl-C


def raising(error: BaseException) -> Callable[..., None]:
    def run(**_: object) -> None:
        raise error

    return run


def test_an_interrupt_that_comes_in_groups_ends_a_command_like_a_bare_one(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = BaseExceptionGroup("", [KeyboardInterrupt()])
    monkeypatch.setattr(
        "footlights_transports.cli.commands.app", raising(BaseExceptionGroup("", [inner, KeyboardInterrupt()]))
    )
    assert footlights(monkeypatch, "play") == 130


def test_an_error_that_comes_with_an_interrupt_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "footlights_transports.cli.commands.app",
        raising(BaseExceptionGroup("", [ValueError("x"), KeyboardInterrupt()])),
    )
    with pytest.RaisesGroup(ValueError, KeyboardInterrupt):
        main()


def test_a_refusal_of_a_server_is_one_printable_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), exit_on_refusal():
        raise refusal({"code": "busy", "message": "\x1b]0;mine\x07\x1b[2J\nwait" + "!" * 10_000})
    shown = capsys.readouterr().err
    assert shown.startswith("\ufffd]0;mine\ufffd\ufffd[2J wait!")
    assert len(shown) == MAX_REASON_CHARS + 1
