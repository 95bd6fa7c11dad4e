"""Helpers that run a whole turn in a test and pick its payloads.

    events = await take_turn(stage.start(), "A room?")
    assert only(events, TurnFinal).text == "The attic is free."

Payloads are returned with their own type, so that a type checker needs no assertion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from footlights.events import Payload

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.events import StreamEvent
    from footlights.params import TurnParams
    from footlights.session.session import InteractionSession

P = TypeVar("P", bound=Payload)


def payloads(events: Iterable[StreamEvent], kind: type[P]) -> list[P]:
    """Every payload of this kind, in the order of the events."""
    return [event.payload for event in events if isinstance(event.payload, kind)]


def only(events: Iterable[StreamEvent], kind: type[P]) -> P:
    """The only payload of this kind. Raises `AssertionError` if there is not exactly one."""
    found = payloads(events, kind)
    if len(found) != 1:
        raise AssertionError(f"expected one {kind.__name__}, got {len(found)}")
    return found[0]


async def take_turn(session: InteractionSession, said: str, params: TurnParams | None = None) -> list[StreamEvent]:
    """Begin a turn, wait for its commit, and return its events."""
    async with session.subscribe() as stream:
        turn_id = session.begin_turn(said, params)
        return [event async for event in stream.until_commit(turn_id) if event.turn_id == turn_id]
