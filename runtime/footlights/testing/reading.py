"""Reading turns in a test: take a whole one, and look at what is in it.

    events = await take_turn(stage.start(), "A room?")
    assert only(events, TurnFinal).text == "The attic is free."

The payloads come back with their own type, so that neither a test nor its type checker has to ask again.
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
    """The one payload of this kind. Raises `AssertionError` if there is none, or another one."""
    found = payloads(events, kind)
    if len(found) != 1:
        raise AssertionError(f"expected one {kind.__name__}, got {len(found)}")
    return found[0]


async def take_turn(session: InteractionSession, said: str, params: TurnParams | None = None) -> list[StreamEvent]:
    """Begin a turn and wait for its commit. Returns the events of that turn, and of no other."""
    async with session.subscribe() as stream:
        turn_id = session.begin_turn(said, params)
        return [event async for event in stream.until_commit(turn_id) if event.turn_id == turn_id]
