"""One client that talks in one conversation of the chat gateway, and how much it may still send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights_transports.access.policy import RateLimiter
from footlights_transports.errors import RateLimited

if TYPE_CHECKING:
    from footlights.token_bucket import TokenBucket
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.kgent.conversation import Conversation


class TooManyMessages(RateLimited):
    """One client sent too much. `retry_after` is when its conversation would take a message of its, whatever refused
    this one, if nobody says anything meanwhile."""


class Sender:
    """`messages` is what its user may send; if the user has no token, what it may send itself."""

    def __init__(self, access: SessionAccess, conversation: Conversation, messages: TokenBucket) -> None:
        limits = access.policy.limits
        self.conversation = conversation
        self._access = access
        self._messages = messages
        self._frames = RateLimiter(limits.commands_per_second, limits.command_burst, trio.current_time())

    def take_frame(self) -> None:
        """Count whatever it sent. Raises `TooManyMessages`."""
        try:
            self._frames.take(trio.current_time())
            self._access.take_command(self.conversation.user)
        except RateLimited as error:
            raise self._refusal() from error

    def take_message(self) -> None:
        """Count one message. Raises `TooManyMessages`."""
        if not self._messages.take(1, trio.current_time()):
            raise self._refusal()

    def seconds_until_next(self) -> int:
        """In how many whole seconds it may send one more, if it sends nothing meanwhile; at least 1."""
        now = trio.current_time()
        return max(
            self._frames.seconds_until_next(now),
            self._access.seconds_until_command(self.conversation.user),
            self._messages.seconds_until(1, now),
        )

    def _refusal(self) -> TooManyMessages:
        flux = self.conversation.flux
        room = 0 if flux is None else flux.seconds_until_room()
        return TooManyMessages("Too many messages.", max(self.seconds_until_next(), room))
