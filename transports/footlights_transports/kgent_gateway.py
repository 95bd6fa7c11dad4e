"""The chat gateway: conversations of users with agents, and the rooms in which they are heard.

A conversation is a session of the core and its dialogues are turns of it, so whoever follows the session natively sees
the same. Its dialogues run in tasks of the gateway: who stops listening cancels nothing. When the session has ended,
nothing of it is remembered; what was said is kept longer only with consent, sealed, in a store of its own.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import define, field, frozen

from footlights.chat import STANDARD_TEMPLATES, Allowance, ChatFluxConfig, ErrorCode
from footlights.errors import InvalidCommand, SessionClosed, UnknownSession
from footlights.failures import describe
from footlights.params import SessionParams, TurnParams
from footlights.session_core import SessionState
from footlights_actors.kgent_flux import KgentFlux
from footlights_actors.kgent_soul import KgentSoul
from footlights_transports.dialects.native import RateLimited
from footlights_transports.kgent_overhearing import Overhearing
from footlights_transports.kgent_room import Room

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from footlights import InteractionSession, Subscription
    from footlights.budget import BudgetConfig
    from footlights.chat import ChatMessage, Templates
    from footlights_transports.desk import FrontDesk
    from footlights_transports.dialects.kgent import PerturbWish
    from footlights_transports.gate import User
    from footlights_transports.kgent_room import Dialogue

MAX_BEGUN = 64
"""Turns of which a conversation knows that it began them: more than can be open."""
SWEEP = 5.0
"""How often what belongs to sessions that have ended is let go, in seconds."""

log = logging.getLogger("footlights.kgent")


class UnknownAgent(InvalidCommand):
    """The cast has no such persona."""


class TooManyMessages(RateLimited):
    """One client sent too much. There is room for one more message after `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("Too many messages.")
        self.retry_after = retry_after


class Keeper(Protocol):
    """Who keeps what was said, for those who agreed. `footlights_actors.kgent_store` has one."""

    async def keep(self, session_id: str, turn_id: str, said: str, answered: str) -> None:
        """Keep one completed dialogue. Raises `FootlightsError`."""
        ...


@frozen
class _DeskSession:
    """A session whose turns begin at the desk, so that they are counted and measured like all others."""

    desk: FrontDesk
    user: User
    session: InteractionSession
    begun: deque[str] = field(factory=lambda: deque[str](maxlen=MAX_BEGUN))

    @property
    def session_id(self) -> str:
        return self.session.session_id

    def begin_turn(self, said: str, params: TurnParams | None = None) -> str:
        turn_id = self.desk.begin_turn(self.user, self.session_id, said, params or TurnParams())
        self.begun.append(turn_id)
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
    session: InteractionSession
    room: Room
    flux: KgentFlux | None
    """None when it has ended: then nothing of it is remembered."""
    keeps_content: bool
    begun: Collection[str]
    """The ids of the turns that it began, the newest."""

    @property
    def has_ended(self) -> bool:
        """Whether its session takes no more turns."""
        return self.session.state is not SessionState.OPEN


class KgentGateway:
    """Every conversation of one desk. `keep` is the home of their tasks.

    `budget` should be the cast's own, and the cast should have the `templates`: `with_templates`.
    """

    def __init__(
        self,
        desk: FrontDesk,
        config: ChatFluxConfig | None = None,
        *,
        templates: Templates = STANDARD_TEMPLATES,
        budget: BudgetConfig | None = None,
        keeper: Keeper | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.desk = desk
        self.config = config or ChatFluxConfig()
        self._templates = templates
        self._budget = budget
        self._keeper = keeper
        self._wall_clock = wall_clock
        self._stamp = 0.0
        self._rooms: dict[tuple[User, str], Room] = {}
        self._paces: dict[User, Allowance] = {}
        self._conversations: dict[tuple[User, str, str], Conversation] = {}
        self._at_home: dict[tuple[User, str], str] = {}
        """The session of each user with each agent, for those who name none."""
        self._nursery: trio.Nursery | None = None

    @property
    def now(self) -> float:
        """Seconds since the epoch, and never less than before."""
        self._stamp = max(self._stamp, self._wall_clock())
        return self._stamp

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run dialogues until cancelled. Those that are open then end with SESSION_EXPIRED."""
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                while True:
                    await trio.sleep(SWEEP)
                    self._sweep()
        finally:
            self._nursery = None

    # -- for connections

    def room(self, user: User, agent: str) -> Room:
        """Where this user's dialogues with this agent are heard. Raises `UnknownAgent`."""
        if agent not in self.desk.stage.personas:
            raise UnknownAgent("There is no agent of that name.")
        return self._rooms.setdefault((user, agent), Room())

    def enter(self, user: User, agent: str, wish: PerturbWish) -> Conversation:
        """The conversation that a client wants to talk in; begun if there is none.

        Raises `UnknownAgent`, `InvalidCommand` if the session agreed to something else or nothing can be kept here, and
        what starting a session raises.
        """
        room = self.room(user, agent)
        if wish.keep_content and self._keeper is None:
            raise InvalidCommand("This server keeps nothing of what is said.")
        conversation = self._open_conversation(user, agent, wish)
        if conversation is None:
            conversation = self._begin(user, agent, wish, room)
        elif wish.remote_models is not None or wish.keep_content not in (None, conversation.keeps_content):
            raise InvalidCommand("The session is open already, and what it agreed to stands.")
        return conversation

    def overhear(self, user: User, agent: str, session: str) -> Overhearing:
        """What others say in a session of this user's. Raises `UnknownSession`."""
        session_id = _id_of(user, session)

        def is_told(turn_id: str) -> bool:
            conversation = self._conversations.get((user, agent, session_id))
            return conversation is not None and turn_id in conversation.begun

        found = self.desk.session(user, session_id)
        return Overhearing(found, is_told, self.config.buffer_chunks, lambda: self.now)

    def perturb(self, conversation: Conversation, message: ChatMessage) -> Dialogue:
        """Begin a dialogue. A plain call: its events come to the room.

        Raises `SessionClosed`, `RateLimited`, and `InvalidMessage` if its correlation id is taken.
        """
        if conversation.has_ended or conversation.flux is None or self._nursery is None:
            raise SessionClosed("The session is over.")
        self._take_message(conversation.user)
        dialogue = conversation.room.begin(message, lambda: conversation.has_ended)
        self._nursery.start_soon(self._perform, conversation, conversation.flux, dialogue, name="kgent dialogue")
        return dialogue

    # -- inside

    def _take_message(self, user: User) -> None:
        self.desk.take_command(user)
        now = trio.current_time()
        burst, seconds = self.config.message_burst, self.config.message_burst * 60 / self.config.messages_per_minute
        pace = self._paces.setdefault(user, Allowance(burst, seconds, now))
        if not pace.take(1, now):
            raise TooManyMessages(pace.seconds_until(1, now))

    def _open_conversation(self, user: User, agent: str, wish: PerturbWish) -> Conversation | None:
        session_id = self._at_home.get((user, agent)) if wish.session is None else _id_of(user, wish.session)
        found = self._conversations.get((user, agent, session_id or ""))
        return None if found is None or found.has_ended else found

    def _begin(self, user: User, agent: str, wish: PerturbWish, room: Room) -> Conversation:
        session = self._session(user, wish)
        if wish.session is None:
            self._at_home[user, agent] = session.session_id
        at_desk = _DeskSession(self.desk, user, session)
        soul = KgentSoul(at_desk, agent, personas=self.desk.stage.personas, templates=self._templates)
        flux = KgentFlux(soul, self.config, budget=self._budget, wall_clock=self._wall_clock)
        conversation = Conversation(user, agent, session, room, flux, bool(wish.keep_content), at_desk.begun)
        self._conversations[user, agent, session.session_id] = conversation
        return conversation

    def _session(self, user: User, wish: PerturbWish) -> InteractionSession:
        try:
            session = None if wish.session is None else self.desk.session(user, _id_of(user, wish.session))
        except UnknownSession:
            session = None
        if session is None:
            return self.desk.start(user, SessionParams(session_id=wish.session, remote_models=wish.remote_models))
        if wish.remote_models is not None:
            raise InvalidCommand("The session is open already, and what it agreed to stands.")
        return session

    async def _perform(self, conversation: Conversation, flux: KgentFlux, dialogue: Dialogue) -> None:
        """The supervision boundary of a dialogue: what fails here ends it, and hurts no other."""
        room = conversation.room
        code = ErrorCode.SESSION_EXPIRED
        try:
            async with aclosing(flux.converse(dialogue.message)) as events:
                async for event in events:
                    room.tell(dialogue, [event])
        except Exception as error:  # noqa: BLE001 - see above
            code = ErrorCode.LLM_UNAVAILABLE
            log.error("a dialogue failed: %s", describe(error))
        finally:
            room.end(dialogue, code, self.now)
        if conversation.keeps_content:
            await self._keep(conversation, dialogue)

    async def _keep(self, conversation: Conversation, dialogue: Dialogue) -> None:
        assert self._keeper is not None, "nobody may agree where nothing is kept"
        for event in dialogue.events:
            if event.event_type == "message":
                turn_id, answered = str(event.payload["turn_id"]), str(event.payload["content"])
                try:
                    await self._keeper.keep(
                        conversation.session.session_id, turn_id, dialogue.message.content, answered
                    )
                except Exception as error:  # noqa: BLE001 - a boundary: the dialogue is over, and was told
                    log.error("%s could not be kept: %s", turn_id, describe(error))

    def _sweep(self) -> None:
        for key, conversation in list(self._conversations.items()):
            if conversation.has_ended:
                del self._conversations[key]
                conversation.flux = None
        for room in self._rooms.values():
            room.forget()
        in_use = {(user, agent) for user, agent, _ in self._conversations}
        self._rooms = {whose: room for whose, room in self._rooms.items() if whose in in_use or not room.is_empty}
        self._at_home = {whose: session_id for whose, session_id in self._at_home.items() if whose in in_use}


def _id_of(user: User, session: str) -> str:
    """The id of a user's session that is called by its name, or by its id."""
    mine = "" if user.name is None else f"{user.name}:"
    return session if session.startswith(mine) else f"{mine}{session}"
