"""Conversations of the chat gateway, and what all conversations in one session have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field, frozen

from footlights.params import TurnParams
from footlights.session.core import SessionState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from footlights import InteractionSession, Subscription
    from footlights.token_bucket import TokenBucket
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.kgent.flux import KgentFlux
    from footlights_transports.views.kgent.room import Room

MAX_BEGUN = 1_024
"""Turns of which a conversation knows that it began them: far more than an observer may lag behind."""


class Begun:
    """The turns that a conversation began, the newest."""

    def __init__(self) -> None:
        self._turn_ids: dict[str, None] = {}

    def __contains__(self, turn_id: object) -> bool:
        return turn_id in self._turn_ids

    def add(self, turn_id: str) -> None:
        self._turn_ids[turn_id] = None
        if len(self._turn_ids) > MAX_BEGUN:
            del self._turn_ids[next(iter(self._turn_ids))]


@define(eq=False)
class Terms:
    """What counts for one session, whichever agent is talked to in it."""

    session: InteractionSession
    tokens: TokenBucket
    """What may be said to it."""
    remote_models: bool | None = None
    """What was said of it when the session was begun here; None if nothing was, or it was begun elsewhere."""
    keeps_content: bool = False
    """Whether it was begun with consent to keep what is said. Then each client that talks still has to agree."""
    _begun: dict[str, Begun] = field(factory=dict[str, Begun], init=False)

    @property
    def has_ended(self) -> bool:
        """Whether the session takes no more turns."""
        return self.session.state is not SessionState.OPEN

    def begun_with(self, agent: str) -> Begun:
        """The turns that the conversation with this agent began; always the same object."""
        return self._begun.setdefault(agent, Begun())


@frozen
class DeskSession:
    """A session whose turns begin at the access, so that they are counted and measured like all others."""

    access: SessionAccess
    user: User
    session: InteractionSession
    begun: Begun

    @property
    def session_id(self) -> str:
        return self.session.session_id

    def begin_turn(self, said: str, params: TurnParams | None = None) -> str:
        turn_id = self.access.begin_turn(self.user, self.session_id, said, params or TurnParams())
        self.begun.add(turn_id)
        return turn_id

    def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        return self.session.cancel(turn_id)

    def subscribe(self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()) -> Subscription:
        return self.session.subscribe(after, terminal_seen)


@define(eq=False)
class Conversation:
    """One user with one agent in one session."""

    user: User
    agent: str
    terms: Terms
    room: Room
    flux: KgentFlux | None
    """None when it has ended: then nothing of it is remembered."""

    @property
    def session(self) -> InteractionSession:
        return self.terms.session

    @property
    def has_ended(self) -> bool:
        """Whether its session takes no more turns."""
        return self.terms.has_ended
