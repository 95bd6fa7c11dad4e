"""Chat gateway: the conversations of users with agents, and the rooms where observers read them.

A conversation is held in a session of the core and its dialogues are turns of it, so a native subscriber of the session
sees the same. Dialogues run in tasks of the gateway: an observer that leaves cancels nothing. When a session has ended,
the gateway forgets it; with consent, a store keeps what was said, encrypted.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import trio
from attrs import Factory, define

from footlights.checks import listed
from footlights.errors import InvalidCommand, UnknownSession
from footlights.failures import contained, report
from footlights.params import SessionParams
from footlights.session.core import SessionState
from footlights.token_bucket import TokenBucket
from footlights_transports.views.kgent.conversation import Conversation, session_tokens
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.templates import STANDARD_TEMPLATES
from footlights_transports.views.kgent.responder import Responder
from footlights_transports.views.kgent.room import Room
from footlights_transports.views.kgent.sender import Sender
from footlights_transports.views.kgent.tap import SessionTap

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession
    from footlights.models.budget import BudgetConfig
    from footlights.params import TurnParams
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.kgent.pure.templates import Templates
    from footlights_transports.views.kgent.pure.wire import PerturbQuery

log = logging.getLogger("footlights.kgent")

SWEEP = 5.0
"""Seconds between two sweeps, which forget what belongs to ended sessions."""
EXPIRY = 3_600.0
"""Seconds between two deletions of stored content that is too old."""
MAX_BEGUN = 1_024
"""Turn ids that a session remembers for each agent: far more than an observer may lag behind."""


class UnknownAgent(InvalidCommand):
    """The cast has no such persona."""


class Keeper(Protocol):
    """Stores what was said, with consent. `footlights_transports.views.kgent.store` implements it."""

    async def keep(self, session_id: str, turn_id: str, said: str, answered: str) -> None:
        """Store one completed dialogue. Raises `FootlightsError`."""
        ...

    async def expire(self) -> None:
        """Delete what is too old. Raises `FootlightsError`."""
        ...


@runtime_checkable
class KeeperOfWorlds(Keeper, Protocol):
    """A keeper that keeps worlds apart, whose sessions may have the same names."""

    def in_world(self, name: str) -> Keeper:
        """The keeper of a world beside the main one."""
        ...


@define(eq=False)
class ChatSession:
    """One session of the core, and what its conversations share."""

    session: InteractionSession
    tokens: TokenBucket
    remote_models: bool | None = None
    """The consent that the gateway began the session with; None if it did not say, or did not begin it."""
    keeps_content: bool = False
    """Whether the session began with consent to store what is said. Each sender must consent too."""
    conversations: dict[str, Conversation] = Factory(dict[str, Conversation])
    """By agent."""
    begun: defaultdict[str, dict[str, None]] = Factory(lambda: defaultdict[str, dict[str, None]](dict))
    """The newest turns that the gateway began, by agent. Session taps skip them."""

    @property
    def is_open(self) -> bool:
        return self.session.state is SessionState.OPEN

    def note_begun(self, agent: str, turn_id: str) -> None:
        turns = self.begun[agent]
        turns[turn_id] = None
        if len(turns) > MAX_BEGUN:
            del turns[next(iter(turns))]


class KgentGateway:
    """All conversations of one access. `keep` must run while it is used.

    `budget` should be the cast's own, and the cast must have the same `templates`: see `with_templates`.
    """

    def __init__(
        self,
        access: SessionAccess,
        config: ChatFluxConfig | None = None,
        *,
        templates: Templates = STANDARD_TEMPLATES,
        budget: BudgetConfig | None = None,
        keeper: Keeper | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.access = access
        self.config = config or ChatFluxConfig()
        self.keeper = keeper
        """May be replaced at any time."""
        self.tasks: trio.Nursery | None = None
        """Where dialogues run, while `keep` does."""
        self._templates = templates
        self._budget = budget
        self._wall_clock = wall_clock
        self._stamp = 0.0
        self._rooms: dict[tuple[User, str], Room] = {}
        self._messages: dict[User, TokenBucket] = {}
        self._sessions: dict[str, ChatSession] = {}
        self._unnamed: dict[tuple[User, str, bool | None], str] = {}
        """The session of each user with each agent and consent to remote models, for clients that name none."""

    @property
    def now(self) -> float:
        """Seconds since the epoch; never less than before."""
        self._stamp = max(self._stamp, self._wall_clock())
        return self._stamp

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run dialogues until cancelled. Open dialogues then end with SESSION_EXPIRED."""
        try:
            async with trio.open_nursery() as self.tasks:
                self.tasks.start_soon(self._expire_content)
                task_status.started()
                while True:
                    await trio.sleep(SWEEP)
                    self._sweep()
        finally:
            self.tasks = None

    def room(self, user: User, agent: str) -> Room:
        """The room of this user's dialogues with this agent. Raises `UnknownAgent`."""
        if agent not in self.access.stage.personas:
            there_are = listed(self.access.stage.personas)
            raise UnknownAgent(f"There is no agent of that name; there are: {there_are}.")
        return self._rooms.setdefault((user, agent), Room())

    def enter(self, user: User, agent: str, query: PerturbQuery) -> Sender:
        """A sender in the conversation that a client asks for, which begins if there is none.

        Raises `UnknownAgent`, `InvalidCommand` if the session began with other consent or the server has no store, and
        what starting a session raises.
        """
        self.room(user, agent)
        if query.keep_content and self.keeper is None:
            raise InvalidCommand("This server keeps nothing of what is said.")
        chat = self._found(user, agent, query) or self._started(user, agent, query)
        if agent not in chat.conversations:
            chat.conversations[agent] = self._conversation(user, agent, chat)
        return Sender(self, user, agent, chat, messages=self._message_limit(user), may_be_kept=bool(query.keep_content))

    def tap(self, user: User, agent: str, session: str) -> SessionTap:
        """A tap of one of this user's sessions. Raises `UnknownSession`."""
        chat = self._chat(self.access.session(user, _id_of(user, session)))
        # The tap holds the turns of this agent itself: it may still read when the gateway has forgotten the session.
        return SessionTap(chat.session, chat.begun[agent], self.config.buffer_chunks, lambda: self.now)

    # -- inside

    def _found(self, user: User, agent: str, query: PerturbQuery) -> ChatSession | None:
        """The session that a client asks for, if there is one and its consent is the same."""
        unnamed = self._unnamed.get((user, agent, query.remote_models))
        session_id = unnamed if query.session is None else _id_of(user, query.session)
        if session_id is None:
            return None
        known = self._sessions.get(session_id)
        if query.session is None and known is not None and known.is_open:
            chat = known  # connecting again without a name is no use of the session: it may still become idle
        else:
            try:
                chat = self._chat(self.access.session(user, session_id))
            except UnknownSession:
                return None
        if query.session is None and not chat.is_open:
            return None
        if query.remote_models not in (None, chat.remote_models) or (query.keep_content and not chat.keeps_content):
            raise InvalidCommand("The session is open already, and what it agreed to stands.")
        return chat

    def _started(self, user: User, agent: str, query: PerturbQuery) -> ChatSession:
        # A numbered id would be used again after a restart, and stored content would be found under it.
        name = f"kept-{uuid.uuid4()}" if query.session is None and query.keep_content else query.session
        session = self.access.start(user, SessionParams(session_id=name, remote_models=query.remote_models))
        if query.session is None:
            self._unnamed[user, agent, query.remote_models] = session.session_id
        chat = self._chat(session)
        chat.remote_models, chat.keeps_content = query.remote_models, bool(query.keep_content)
        return chat

    def _chat(self, session: InteractionSession) -> ChatSession:
        chat = self._sessions.get(session.session_id)
        if chat is None or not chat.is_open:
            if chat is not None:
                chat.conversations.clear()
            chat = self._sessions[session.session_id] = ChatSession(session, session_tokens(self.config))
        return chat

    def _conversation(self, user: User, agent: str, chat: ChatSession) -> Conversation:
        def begin_turn(said: str, params: TurnParams) -> str:
            # Through the access, which counts and measures turns.
            turn_id = self.access.begin_turn(user, chat.session.session_id, said, params)
            chat.note_begun(agent, turn_id)
            return turn_id

        personas = self.access.stage.personas
        responder = Responder(
            chat.session,
            agent,
            personas=personas,
            templates=self._templates,
            tools=self.config.tools,
            begin_turn=begin_turn,
        )
        return Conversation(
            responder,
            self.config,
            budget=self._budget,
            tokens=chat.tokens,
            reflect=lambda turn: self.room(user, agent).reflect(turn),
            wall_clock=self._wall_clock,
        )

    def _message_limit(self, user: User) -> TokenBucket:
        """One for each user with a token, otherwise one for each connection."""
        burst, seconds = self.config.message_burst, self.config.message_burst * 60 / self.config.messages_per_minute
        limit = TokenBucket(burst, seconds, trio.current_time())
        return limit if user.name is None else self._messages.setdefault(user, limit)

    async def _expire_content(self) -> None:
        while self.keeper is not None:
            with contained(partial(report, log, "old content could not be deleted")):
                await self.keeper.expire()
            await trio.sleep(EXPIRY)

    def _sweep(self) -> None:
        for session_id, chat in list(self._sessions.items()):
            if not chat.is_open:
                del self._sessions[session_id]
                chat.conversations.clear()  # senders still hold it
        self._unnamed = {key: session_id for key, session_id in self._unnamed.items() if session_id in self._sessions}
        for key, room in list(self._rooms.items()):
            room.forget()
            if room.is_empty:
                del self._rooms[key]


def _id_of(user: User, session: str) -> str:
    """The id of a user's session, given its name or its id."""
    mine = "" if user.name is None else f"{user.name}:"
    return session if session.startswith(mine) else f"{mine}{session}"
