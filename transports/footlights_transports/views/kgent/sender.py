"""Sender: one client that talks in one conversation, with its rate limits and its consent."""

from __future__ import annotations

import logging
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights.errors import SessionClosed
from footlights.failures import contained, report
from footlights.token_bucket import TokenBucket
from footlights_transports.errors import RateLimited
from footlights_transports.views.kgent.pure.messages import ErrorCode

if TYPE_CHECKING:
    from footlights_transports.access.policy import User
    from footlights_transports.views.kgent.conversation import Conversation
    from footlights_transports.views.kgent.gateway import ChatSession, KgentGateway
    from footlights_transports.views.kgent.pure.messages import ChatMessage
    from footlights_transports.views.kgent.room import Dialogue, Room

KEEPING = 5.0
"""Seconds that storing one dialogue may take, also while the server shuts down."""

log = logging.getLogger("footlights.kgent")


class Sender:
    """Made by `KgentGateway.enter`. `messages` is the message limit of its user, or its own without tokens.

    What it says is stored only with consent: its own, `may_be_kept`, and that of its session.
    """

    def __init__(
        self,
        gateway: KgentGateway,
        user: User,
        agent: str,
        chat: ChatSession,
        *,
        messages: TokenBucket,
        may_be_kept: bool,
    ) -> None:
        limits = gateway.access.policy.limits
        self.chat = chat
        self._gateway = gateway
        self._user = user
        self._agent = agent
        self._messages = messages
        self._may_be_kept = may_be_kept
        seconds = limits.command_burst / limits.commands_per_second
        self._frames = TokenBucket(limits.command_burst, seconds, trio.current_time())

    @property
    def session_id(self) -> str:
        return self.chat.session.session_id

    @property
    def room(self) -> Room:
        return self._gateway.room(self._user, self._agent)

    @property
    def conversation(self) -> Conversation | None:
        """None when the session has ended: then nothing of it is kept in memory."""
        return self.chat.conversations.get(self._agent)

    def take_frame(self) -> None:
        """Count one frame, valid or not. Raises `RateLimited`."""
        if not self._frames.take(1, trio.current_time()):
            raise self._too_many()
        try:
            self._gateway.access.admission.take_command(self._user)
        except RateLimited as error:
            raise self._too_many() from error

    def perturb(self, message: ChatMessage) -> Dialogue:
        """Begin a dialogue, whose events go to the room. A plain call: the dialogue runs in a task of the gateway.

        Raises `SessionClosed`, `RateLimited`, and `InvalidMessage` if its correlation id is taken.
        """
        conversation, tasks = self.conversation, self._gateway.tasks
        if not self.chat.is_open or conversation is None or tasks is None:
            raise SessionClosed("The session is over.")
        if not self._messages.take(1, trio.current_time()):
            raise self._too_many()
        room = self.room
        dialogue = room.begin(message, lambda: not self.chat.is_open)
        tasks.start_soon(self._run, conversation, room, dialogue, name="kgent dialogue")
        return dialogue

    def seconds_until_next(self) -> int:
        """Whole seconds until it may send one more message if it sends none meanwhile; at least 1."""
        now = trio.current_time()
        return max(
            self._frames.seconds_until(1, now),
            self._gateway.access.admission.seconds_until_command(self._user),
            self._messages.seconds_until(1, now),
        )

    def _too_many(self) -> RateLimited:
        """Its `retry_after` covers every limit, and not only the one that was exceeded."""
        room = 0 if self.conversation is None else self.conversation.seconds_until_room()
        return RateLimited("Too many messages.", max(self.seconds_until_next(), room))

    async def _run(self, conversation: Conversation, room: Room, dialogue: Dialogue) -> None:
        """The supervision boundary of a dialogue: a failure ends this dialogue and no other."""
        writer = conversation.writer(dialogue.message)
        code = ErrorCode.SESSION_EXPIRED

        def fail(error: BaseException) -> None:
            nonlocal code
            code = ErrorCode.LLM_UNAVAILABLE
            self._gateway.access.incidents.failed("dialogue", error)

        try:
            with contained(fail):
                stream = conversation.converse(dialogue.message, writer, sender_wait=self.seconds_until_next)
                async with aclosing(stream) as events:
                    async for event in events:
                        room.add(dialogue, event)
        finally:
            room.end(dialogue, writer.abort(code, self._gateway.now))
            if self._may_be_kept and self.chat.keeps_content:
                await self._keep(dialogue)

    async def _keep(self, dialogue: Dialogue) -> None:
        """Store it if it was completed, also if the gateway is canceled meanwhile."""
        message = next((each.payload for each in dialogue.events if each.event_type == "message"), None)
        if message is None:
            return
        keeper, turn_id = self._gateway.keeper, str(message["turn_id"])
        assert keeper is not None, "a session begins with consent to keep only where there is a keeper"
        with (
            contained(partial(report, log, f"{turn_id} could not be kept")),
            trio.fail_after(KEEPING, shield=True),
        ):
            await keeper.keep(self.session_id, turn_id, dialogue.message.content, str(message["content"]))
