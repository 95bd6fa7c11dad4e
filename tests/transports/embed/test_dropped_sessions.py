"""Sessions whose handle was dropped are closed after the idle time, and no others.

These wait in real time for what other threads do. An idle time is a fraction of a second.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from footlights import RegistrationError, SessionParams, SessionState, Stage
from footlights.errors import UnknownSession
from footlights_transports import StageThread
from tests.kit.threads import LONG, cast, no_thread_is_left, poll_until_commit

if TYPE_CHECKING:
    from footlights_transports import ThreadSession

__all__ = ["no_thread_is_left"]

IDLE = 0.02


def wait_until_closed(stage: StageThread, session_id: str) -> None:
    async def wait(inside: Stage) -> None:
        with suppress(UnknownSession):  # it was closed and forgotten before this thread asked
            await inside.session(session_id)._core.closed.wait()

    stage.call_soon(wait).result(LONG)


def is_open(stage: StageThread, session_id: str) -> bool:
    return session_id in stage.call(lambda inside: list(inside._registry.sessions))


def outlive(stage: StageThread, *, times: int) -> None:
    """Let so many other sessions be dropped and closed, one after the other: each takes an idle time."""
    for number in range(times):
        stage.start(SessionParams(session_id=f"other{number}"))
        gc.collect()
        wait_until_closed(stage, f"other{number}")


def test_a_session_whose_handle_was_dropped_is_closed_after_the_idle_time() -> None:
    with StageThread(cast(), session_idle_seconds=IDLE) as stage:
        kept = stage.start(SessionParams(session_id="kept"))
        session: ThreadSession | None = stage.start(SessionParams(session_id="edda"))
        assert session is not None
        poll_until_commit(session, session.begin_turn("A room?"))
        session = None
        gc.collect()
        wait_until_closed(stage, "edda")
        assert is_open(stage, "kept")
        poll_until_commit(kept, kept.begin_turn("A room?"))


def test_a_dropped_session_is_not_closed_during_a_turn() -> None:
    with StageThread(cast(), session_idle_seconds=IDLE) as stage:
        stage.start(SessionParams(session_id="edda")).begin_turn("Wait.")
        gc.collect()
        outlive(stage, times=3)
        assert stage.call(lambda inside: inside.session("edda").cancel()) == ("t1-000001",)
        wait_until_closed(stage, "edda")


def test_a_session_that_was_resumed_after_a_drop_stays_open() -> None:
    with StageThread(cast(), session_idle_seconds=IDLE) as stage:
        session = stage.start(SessionParams(session_id="edda"))
        for _ in range(3):
            session = stage.resume("edda")  # and the handle before is dropped
        gc.collect()
        outlive(stage, times=3)
        assert is_open(stage, "edda")
        poll_until_commit(session, session.begin_turn("A room?"))


def test_a_session_that_calls_its_host_is_not_dropped() -> None:
    woken: list[ThreadSession] = []
    with StageThread(cast(), session_idle_seconds=IDLE) as stage:
        session: ThreadSession | None = stage.start(SessionParams(session_id="edda"))
        assert session is not None
        session.on_ready(lambda session=session: woken.append(session))  # type: ignore[misc]
        session = None
        gc.collect()
        outlive(stage, times=3)
        assert is_open(stage, "edda")


def test_a_server_that_subscribes_keeps_a_dropped_session_open() -> None:
    with StageThread(cast(), session_idle_seconds=IDLE) as stage:

        async def subscribe(inside: Stage) -> None:
            await inside.session("edda").subscribe().__aenter__()

        stage.start(SessionParams(session_id="edda"))
        stage.call(subscribe)
        gc.collect()
        outlive(stage, times=3)
        assert is_open(stage, "edda")


@pytest.mark.parametrize("idle", [0, 3_600])
def test_a_dropped_session_stays_open_for_the_idle_time_and_ends_with_its_stage(idle: float) -> None:
    with StageThread(cast(), session_idle_seconds=idle) as stage:
        stage.start(SessionParams(session_id="edda"))
        gc.collect()
        assert stage.call(lambda inside: inside.session("edda").state) is SessionState.OPEN


def test_a_closed_session_leaves_nothing_on_the_thread() -> None:
    with StageThread(cast(), session_idle_seconds=IDLE) as stage:
        for _ in range(50):
            session = stage.start()
            poll_until_commit(session, session.begin_turn("A room?"))
            session.close()
            session.close()
        del session
        gc.collect()
        assert stage.call(lambda _: len(stage._dropped._handles)) == 0
        assert stage.call(lambda _: len(stage._thread.at_end)) == 0


def test_a_handle_that_is_dropped_after_the_stage_harms_nobody() -> None:
    with StageThread(cast()) as stage:
        session: ThreadSession | None = stage.start()
    assert session is not None
    session.close()
    session = None
    gc.collect()
    stage.close()


def test_an_idle_time_below_zero_is_refused() -> None:
    with pytest.raises(RegistrationError, match="session_idle_seconds is -1"):
        StageThread(cast(), session_idle_seconds=-1)
