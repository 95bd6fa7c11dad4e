"""A program that embeds a stage ends when it should, also if it forgot to close it.

These wait in real time for what they expect, because processes and signals are the system's.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sqlite.reader import SqliteReader

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("interruptible")

LONG = 60.0
"""More seconds than anything here takes."""

BEGINNING = """
import signal, sys, threading
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_transports import StageThread

cast = standard_cast(ScriptedModel(lambda prompt: [Say("Hm."), Stall()]))
stage = StageThread(cast, ledger=sys.argv[1])

def open_in_a_daemon():
    other = []
    daemon = threading.Thread(target=lambda: other.append(StageThread(cast).__enter__()), daemon=True)
    daemon.start()
    daemon.join()
    other[0].start().begin_turn("Wait.")
    assert len([thread for thread in threading.enumerate() if not thread.daemon]) == 3, threading.enumerate()
"""
FORGETFUL = """
stage.__enter__()
session = stage.start()
turn_id = session.begin_turn("Wait.")
"""


def command(program: str, ledger: Path) -> list[str]:
    return [sys.executable, "-c", BEGINNING + dedent(program), str(ledger)]


def commits(ledger: Path) -> int:
    with SqliteReader(ledger) as reader:
        report = audit(reader)
    assert report.ok
    return report.commits


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise ZeroDivisionError", 1),
        ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
        ("other = StageThread(cast); other.__enter__()", 0),
        ("open_in_a_daemon()", 0),
    ],
)
def test_a_program_that_forgot_to_close_its_stage_ends_and_what_ran_is_settled(
    tmp_path: Path, ending: str, code: int
) -> None:
    ledger = tmp_path / "inn.ledger"
    done = subprocess.run(command(FORGETFUL + ending, ledger), capture_output=True, text=True, timeout=LONG)
    assert done.returncode == code, done.stderr
    assert commits(ledger) == 1


def test_a_stage_lives_as_long_as_some_thread_could_use_it(tmp_path: Path) -> None:
    ledger = tmp_path / "inn.ledger"
    program = """
        def play():
            threading.main_thread().join()
            while session.poll(timeout=0.6):  # silence for longer than a stage needs to notice that it is alone
                pass
            print(session.is_open, session.cancel() == (turn_id,))

        threading.Thread(target=play).start()
    """
    done = subprocess.run(command(FORGETFUL + dedent(program), ledger), capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True True\n", "")
    assert commits(ledger) == 1


def test_a_program_that_is_interrupted_while_it_waits_closes_its_stage_in_order(tmp_path: Path) -> None:
    ledger = tmp_path / "inn.ledger"
    program = """
        with stage:
            session = stage.start()
            turn = session.finalize(session.begin_turn("Wait."))
            print("ready", flush=True)
            turn.result()
    """
    process = subprocess.Popen(command(program, ledger), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=LONG) == -signal.SIGINT
    finally:
        process.kill()
        _, complaints = process.communicate()
    assert complaints.rstrip().endswith(b"KeyboardInterrupt")
    assert commits(ledger) == 1


def test_a_forgotten_stage_whose_tool_never_ends_does_not_keep_the_program_from_exiting(tmp_path: Path) -> None:
    program = """
        import trio
        from footlights import EventType, Limits, Tool
        from footlights_actors import Call

        async def hang(arguments, context):
            with trio.CancelScope(shield=True):
                await trio.sleep_forever()

        cast = standard_cast(ScriptedModel(lambda prompt: [Call("hang")]), tools=[Tool(name="hang", run=hang)])
        limits = Limits(shutdown_deadline=0.05, tool_cancel_grace=0.05)
        stage = StageThread(cast, ledger=sys.argv[1], limits=limits, answer_timeout=0.5).open()
        session = stage.start()
        session.begin_turn("Wait.")
        while not any(each.event_type is EventType.TOOL_CALL_STARTED for each in session.poll(timeout=60)):
            pass
    """
    ledger = tmp_path / "inn.ledger"
    done = subprocess.run(command(program, ledger), capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stderr) == (0, "")
    assert commits(ledger) == 1
