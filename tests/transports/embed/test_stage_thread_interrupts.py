"""Ctrl-C at any line of a host's call leaves nothing locked, and no call waiting.

A real SIGINT is raised at a line on the host's side of a stage thread: one run for each line that a scenario executes,
and several for lines that it executes several times.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest
import trio

import footlights_transports
from footlights import Stage, laws
from footlights_transports import StageThread
from footlights_transports.embed.trio_thread import TrioThread
from tests.kit.threads import LONG, SPEECH, cast, no_thread_is_left, poll_until_commit, text_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from types import FrameType

    from footlights_transports import ThreadSession

pytestmark = pytest.mark.usefixtures("interruptible")

__all__ = ["no_thread_is_left"]  # a fixture for every test here


@pytest.fixture(autouse=True)
def nothing_to_finalize() -> None:
    """Python ignores a Ctrl-C in a finalizer, also in that of a session that an earlier test has left."""
    gc.collect()


OURS = frozenset(map(str, (Path(footlights_transports.__file__).parent / "embed").glob("*.py")))


class Striking:
    """Raises SIGINT at the n-th line that runs in our files on this thread."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, frame: FrameType, event: str, argument: object) -> Striking | None:
        if frame.f_code.co_filename not in OURS:
            return None
        if event == "line":
            self._left -= 1
            if self._left == 0:
                signal.raise_signal(signal.SIGINT)
        return self


def struck(at: int, work: Callable[[], object]) -> bool:
    """Do it with a Ctrl-C at that line; False if it came to its end before."""
    before = sys.gettrace()
    sys.settrace(Striking(at))
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_a_host_that_is_interrupted_anywhere_can_close_its_stage() -> None:
    def host(stage: StageThread) -> None:
        with stage:
            session = stage.start()
            kept.append(session)  # not dropped here: Python ignores a Ctrl-C in a finalizer
            turn_id = session.begin_turn("A room?")
            session.finalize(turn_id).result()

    kept: list[ThreadSession] = []
    at, goes_on = 0, True
    while goes_on:
        at += 1
        stage = StageThread(cast())
        goes_on = struck(at, lambda: host(stage))  # noqa: B023 - it is called in this round
        stage.close()
    assert at > 50


def test_a_host_that_is_interrupted_anywhere_and_goes_on_finds_its_stage_as_it_was() -> None:
    def play(session: ThreadSession) -> None:
        turn_id = session.begin_turn("Wait.")
        session.poll(timeout=LONG)
        assert session.cursor is not None
        session.cancel(turn_id)

    at, goes_on = 0, True
    with StageThread(cast()) as stage:
        while goes_on:
            at += 1
            session = stage.start()
            goes_on = struck(at, lambda: play(session))  # noqa: B023 - it is called in this round
            session.cancel()
            turn_id = session.begin_turn("A room?")
            events = [event for event in poll_until_commit(session, turn_id) if event.turn_id == turn_id]
            assert text_of(events) == SPEECH
            assert laws.check(events) == []
            session.close()
        assert stage.call(Stage.statistics).sessions == 0
    assert at > 50


def test_a_call_that_is_interrupted_before_it_was_handed_over_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, idempotent: bool) -> None:
        raise KeyboardInterrupt

    with StageThread(cast()) as stage:
        session = stage.start()
        with monkeypatch.context() as patched:
            patched.setattr(trio.lowlevel.TrioToken, "run_sync_soon", interrupted)
            with pytest.raises(KeyboardInterrupt):
                session.begin_turn("A room?")
        assert session.begin_turn("A beer?") == "t1-000001"


def test_a_host_that_is_interrupted_while_its_stage_opens_leaves_no_thread() -> None:
    @asynccontextmanager
    async def slow() -> AsyncGenerator[None, None]:
        signal.pthread_kill(this_thread, signal.SIGINT)
        await trio.to_thread.run_sync(go_on.get)
        yield

    this_thread, go_on = threading.get_ident(), SimpleQueue[None]()
    thread = TrioThread(slow(), timeout=LONG, exit_timeout=LONG)
    with pytest.raises(KeyboardInterrupt):
        thread.open()
    go_on.put(None)
    thread.join()
