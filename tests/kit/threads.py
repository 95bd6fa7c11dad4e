"""A cast and the ways to poll it, for the tests of stages on threads of their own."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    BudgetConfig,
    Cast,
    EventType,
    InteractionContext,
    StreamEvent,
    TokenDelta,
    TurnParams,
)
from footlights.testing import payloads
from footlights_actors import Flood, Line, Pause, Say, ScriptedModel, Stall, standard_cast

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from footlights import Prompt
    from footlights_transports import PolledStream, ThreadSession

LONG = 60.0
"""More seconds than anything here takes; a test that needs them has failed."""
SPEECH = "Good evening, my friend."
WORDS = 600
MOOD = ContextVar[str]("MOOD")


def script(prompt: Prompt) -> Iterator[Line]:
    match prompt.user:
        case "Wait.":
            yield Say("Hm.")
            yield Stall()
        case "Talk.":
            for _ in range(WORDS):
                yield Flood(" word", 1)
                yield Pause(0)
        case _:
            yield Say(SPEECH)


class Tells:
    """A workload that says what mood its caller was in."""

    async def run(self, context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()
        told.put(MOOD.get("none"))


class Exits:
    """A workload that takes the stage down."""

    async def run(self, context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()
        raise KeyboardInterrupt


told: SimpleQueue[str] = SimpleQueue()
EXIT = TurnParams(workload="exits")


def cast() -> Cast:
    return standard_cast(
        ScriptedModel(script),
        workloads={"tells": Tells(), "exits": Exits()},
        budget=BudgetConfig(dialogue_max=10_000),
    )


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Generator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "footlights stage"]


def poll_until_commit(stream: ThreadSession | PolledStream, turn_id: str) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    while not is_settled(events, turn_id):
        polled = stream.poll(timeout=LONG)
        assert polled, "nothing came"
        events += polled
    return events


def poll_rest(stream: ThreadSession | PolledStream) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    while stream.is_open:
        events += stream.poll(timeout=LONG)
    return events


def poll_text(session: ThreadSession) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    while not payloads(events, TokenDelta):
        events += session.poll(timeout=LONG)
    return events


def text_of(events: Sequence[StreamEvent]) -> str:
    return "".join(payload.delta for payload in payloads(events, TokenDelta))


def is_settled(events: Sequence[StreamEvent], turn_id: str) -> bool:
    return any(event.turn_id == turn_id and event.event_type is EventType.COMMIT_FINAL for event in events)
