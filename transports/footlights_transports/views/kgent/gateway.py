"""The chat gateway: conversations of users with agents, and the rooms in which they are heard.

A conversation is a session of the core and its dialogues are turns of it, so whoever follows the session natively sees
the same. Its dialogues run in tasks of the gateway: who stops listening cancels nothing. When the session has ended,
nothing of it is remembered; what was said is kept longer only with consent, sealed, in a store of its own.
"""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import trio

from footlights.errors import InvalidCommand, SessionClosed, UnknownSession
from footlights.failures import describe
from footlights.params import SessionParams
from footlights.token_bucket import TokenBucket
from footlights_transports.views.kgent.conversation import Conversation, DeskSession, Terms
from footlights_transports.views.kgent.flux import KgentFlux, session_allowance
from footlights_transports.views.kgent.overhearing import Overhearing
from footlights_transports.views.kgent.pure.messages import ErrorCode
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.templates import STANDARD_TEMPLATES
from footlights_transports.views.kgent.room import Room
from footlights_transports.views.kgent.sender import Sender
from footlights_transports.views.kgent.soul import KgentSoul

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession
    from footlights.models.budget import BudgetConfig
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.kgent.pure.messages import ChatMessage
    from footlights_transports.views.kgent.pure.templates import Templates
    from footlights_transports.views.kgent.pure.wire import PerturbWish
    from footlights_transports.views.kgent.room import Dialogue

SWEEP = 5.0
"""How often what belongs to sessions that have ended is let go, in seconds."""

KEEPING = 5.0
"""How long keeping one dialogue may take, in seconds, even if the server is going away."""

log = logging.getLogger("footlights.kgent")


class UnknownAgent(InvalidCommand):
    """The cast has no such persona."""


class Keeper(Protocol):
    """Who keeps what was said, for those who agreed. `footlights_transports.views.kgent.store` has one."""

    async def keep(self, session_id: str, turn_id: str, said: str, answered: str) -> None:
        """Keep one completed dialogue. Raises `FootlightsError`."""
        ...


class KgentGateway:
    """Every conversation of one access. `keep` is the home of their tasks.

    `budget` should be the cast's own, and the cast should have the `templates`: `with_templates`.
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
        self._templates = templates
        self._budget = budget
        self.keeper = keeper
        """Who keeps what is said, for those who agree. Another may take its place at any time."""
        self._wall_clock = wall_clock
        self._stamp = 0.0
        self._rooms: dict[tuple[User, str], Room] = {}
        self._paces: dict[User, TokenBucket] = {}
        self._conversations: dict[tuple[User, str, str], Conversation] = {}
        self._terms: dict[str, Terms] = {}
        """Of each session."""
        self._at_home: dict[tuple[User, str, bool | None], str] = {}
        """The session of each user with each agent, for those who name none and said the same of remote models."""
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
        if agent not in self.access.stage.personas:
            raise UnknownAgent("There is no agent of that name.")
        return self._rooms.setdefault((user, agent), Room())

    def enter(self, user: User, agent: str, wish: PerturbWish) -> Conversation:
        """The conversation that a client wants to talk in; begun if there is none.

        Raises `UnknownAgent`, `InvalidCommand` if the session agreed to something else or nothing can be kept here, and
        what starting a session raises.
        """
        room = self.room(user, agent)
        if wish.keep_content and self.keeper is None:
            raise InvalidCommand("This server keeps nothing of what is said.")
        conversation = self._open_conversation(user, agent, wish)
        if conversation is None:
            return self._begin(user, agent, self._agreed(user, agent, wish), room)
        _check_agreed(conversation.terms, wish)
        return conversation

    def overhear(self, user: User, agent: str, session: str) -> Overhearing:
        """What others say in a session of this user's. Raises `UnknownSession`."""
        found = self.access.session(user, _id_of(user, session))
        # Not looked up for each turn: who is slow may hear of a turn when its conversation is forgotten.
        told = self._terms_of(found).begun_with(agent)
        return Overhearing(found, told, self.config.buffer_chunks, lambda: self.now)

    def sender(self, conversation: Conversation) -> Sender:
        """One more client that talks: with a token all of its user's are one, without one each is."""
        burst, seconds = self.config.message_burst, self.config.message_burst * 60 / self.config.messages_per_minute
        user, pace = conversation.user, TokenBucket(burst, seconds, trio.current_time())
        return Sender(self.access, conversation, pace if user.name is None else self._paces.setdefault(user, pace))

    def perturb(self, sender: Sender, message: ChatMessage, *, may_be_kept: bool = False) -> Dialogue:
        """Begin a dialogue. A plain call: its events come to the room. It is kept if its session and its sender agreed.

        Raises `SessionClosed`, `TooManyMessages`, and `InvalidMessage` if its correlation id is taken.
        """
        conversation = sender.conversation
        if conversation.has_ended or conversation.flux is None or self._nursery is None:
            raise SessionClosed("The session is over.")
        sender.take_message()
        dialogue = conversation.room.begin(message, lambda: conversation.has_ended)
        is_kept = may_be_kept and conversation.terms.keeps_content
        self._nursery.start_soon(self._perform, sender, conversation.flux, dialogue, is_kept, name="kgent dialogue")
        return dialogue

    # -- inside

    def _open_conversation(self, user: User, agent: str, wish: PerturbWish) -> Conversation | None:
        at_home = self._at_home.get((user, agent, wish.remote_models), "")
        session_id = at_home if wish.session is None else _id_of(user, wish.session)
        found = self._conversations.get((user, agent, session_id))
        return None if found is None or found.has_ended else found

    def _begin(self, user: User, agent: str, terms: Terms, room: Room) -> Conversation:
        at_desk = DeskSession(self.access, user, terms.session, terms.begun_with(agent))
        soul = KgentSoul(at_desk, agent, personas=self.access.stage.personas, templates=self._templates)
        flux = KgentFlux(soul, self.config, budget=self._budget, tokens=terms.tokens, wall_clock=self._wall_clock)
        key = user, agent, terms.session.session_id
        if key in self._conversations:
            self._conversations[key].flux = None  # its session has ended, and it is swept away no more
        conversation = self._conversations[key] = Conversation(user, agent, terms, room, flux)
        return conversation

    def _agreed(self, user: User, agent: str, wish: PerturbWish) -> Terms:
        """The terms of the session that a client wants, which is started if it is not there."""
        session = self._named_session(user, wish)
        if session is not None:
            terms = self._terms_of(session)
            _check_agreed(terms, wish)
            return terms
        # A number would be given again after a restart: what is kept would be found under somebody else's.
        name = f"kept-{uuid.uuid4()}" if wish.session is None and wish.keep_content else wish.session
        session = self.access.start(user, SessionParams(session_id=name, remote_models=wish.remote_models))
        if wish.session is None:
            self._at_home[user, agent, wish.remote_models] = session.session_id
        terms = self._terms_of(session)
        terms.remote_models, terms.keeps_content = wish.remote_models, bool(wish.keep_content)
        return terms

    def _named_session(self, user: User, wish: PerturbWish) -> InteractionSession | None:
        try:
            return None if wish.session is None else self.access.session(user, _id_of(user, wish.session))
        except UnknownSession:
            return None

    def _terms_of(self, session: InteractionSession) -> Terms:
        found = self._terms.get(session.session_id)
        if found is None or found.has_ended:
            found = self._terms[session.session_id] = Terms(session, session_allowance(self.config))
        return found

    async def _perform(self, sender: Sender, flux: KgentFlux, dialogue: Dialogue, is_kept: bool) -> None:
        """The supervision boundary of a dialogue: what fails here ends it, and hurts no other."""
        room, telling = sender.conversation.room, flux.telling(dialogue.message)
        events = flux.converse(dialogue.message, telling, sender_wait=sender.seconds_until_next)
        code = ErrorCode.SESSION_EXPIRED
        try:
            async with aclosing(events):
                async for event in events:
                    room.tell(dialogue, [event])
        except Exception as error:  # noqa: BLE001 - see above
            code = ErrorCode.LLM_UNAVAILABLE
            self.access.incidents.failed("dialogue", error)
        finally:
            room.end(dialogue, code, self.now, telling.rest(self.now))
            if is_kept:
                await self._keep(sender.conversation, dialogue)

    async def _keep(self, conversation: Conversation, dialogue: Dialogue) -> None:
        """Keep it if it was completed, also when the gateway is told to stop meanwhile."""
        assert self.keeper is not None, "nobody may agree where nothing is kept"
        for event in dialogue.events:
            if event.event_type == "message":
                turn_id, answered = str(event.payload["turn_id"]), str(event.payload["content"])
                try:
                    with trio.fail_after(KEEPING, shield=True):
                        await self.keeper.keep(
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
        self._terms = {session_id: terms for session_id, terms in self._terms.items() if not terms.has_ended}
        in_use = {(user, agent) for user, agent, _ in self._conversations}
        self._rooms = {whose: room for whose, room in self._rooms.items() if whose in in_use or not room.is_empty}
        self._at_home = {
            whose: session_id
            for whose, session_id in self._at_home.items()
            if (*whose[:2], session_id) in self._conversations
        }


def _id_of(user: User, session: str) -> str:
    """The id of a user's session that is called by its name, or by its id."""
    mine = "" if user.name is None else f"{user.name}:"
    return session if session.startswith(mine) else f"{mine}{session}"


def _check_agreed(terms: Terms, wish: PerturbWish) -> None:
    """Raises `InvalidCommand` if an open session did not agree to what is wished for."""
    if wish.remote_models not in (None, terms.remote_models) or (wish.keep_content and not terms.keeps_content):
        raise InvalidCommand("The session is open already, and what it agreed to stands.")
