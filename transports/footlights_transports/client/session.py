"""A player's session that is elsewhere, as a client holds it. What is a plain call in process is awaited here."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import attrs
from attrs import frozen

from footlights.errors import SessionClosed, UnknownSession
from footlights.events import CommitOutcome
from footlights_transports.client.messages import nonsense, text_in, texts_in
from footlights_transports.client.stream import ClientStream

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import trio

    from footlights.params import SessionParams, TurnParams
    from footlights_transports.client.address import Address
    from footlights_transports.client.calls import Calls
    from footlights_transports.client.retry import Retry

MAX_BEGUN = 1_024
"""Turns that a session remembers to have begun."""


@frozen
class Commit:
    """What the authority decided about a turn. The issues are in its commit_final."""

    commit_digest: str
    commit_outcome: CommitOutcome
    commit_id: str | None


class ClientSession:
    """One player's conversation, on a server. Made by `client.start` and `client.session`."""

    def __init__(
        self,
        session_id: str,
        calls: Calls,
        address: Address,
        retry: Retry,
        nursery: trio.Nursery,
        *,
        remote_models: bool = False,
    ) -> None:
        self.session_id = session_id
        self.remote_models = remote_models
        """What is agreed to if a server that was started again has to open it again."""
        self.address = address
        self.retry = retry
        self.nursery = nursery
        self.is_closed = False
        """Whether it was closed from here."""
        self._calls = calls
        self._known_since = calls.dialled
        self._streams: dict[ClientStream, None] = {}
        self._begun: dict[str, None] = {}

    async def begin_turn(self, said: str, params: TurnParams | None = None) -> str:
        """Have the server accept what the player said, and return the turn's id.

        Raises what `begin_turn` of a session in process raises, and `ConnectionLost` if the connection is lost before
        the reply: then nobody here knows whether the turn began. Its events tell, if there is a subscriber.
        """
        fields: dict[str, Any] = {"input": said}
        if params is not None:
            fields["params"] = write_params(params)
        turn_id = text_in(await self._call("begin_turn", fields, again=False), "turn_id")
        self._begun[turn_id] = None
        if len(self._begun) > MAX_BEGUN:
            del self._begun[next(iter(self._begun))]
        for stream in self._streams:
            stream.expect(turn_id)
        return turn_id

    async def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        """Interrupt one turn, or every open one; return the ids of those that this call interrupted.

        If the connection is lost meanwhile it is asked for again, and then what the first one won is not in the
        answer. The stream tells in any case.
        """
        fields = {} if turn_id is None else {"turn_id": turn_id}
        return texts_in(await self._call("cancel", fields, again=True), "canceled")

    async def finalize(self, turn_id: str) -> Commit:
        """Wait for the turn's commit. Raises `UnknownTurn` for an id never given out."""
        result = await self._call("finalize", {"turn_id": turn_id}, again=True)
        outcome = text_in(result, "commit_outcome")
        if outcome not in set(CommitOutcome):
            raise nonsense()
        return Commit(text_in(result, "commit_digest"), CommitOutcome(outcome), result.get("commit_id"))

    async def heard(self, turn_id: str, seq: int) -> None:
        """Say that the player took the turn in up to this event."""
        await self._call("heard", {"turn_id": turn_id, "seq": seq}, again=True)

    def subscribe(self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()) -> ClientStream:
        """A stream of this session's events, to be entered with `async with`. It means what it means in process."""
        return ClientStream(self, after, terminal_seen)

    async def close(self) -> None:
        """Interrupt what runs, wait until every turn is settled, end every stream. Idempotent."""
        if self.is_closed:
            return
        try:
            await self._calls.call("close", {"session_id": self.session_id}, again=True)
        except UnknownSession:
            # Closed before, and the reply was lost: a stream that came back meanwhile opened it again.
            self.is_closed = True
            for stream in list(self._streams):
                await stream.hang_up()
        self.is_closed = True

    # -- for its streams

    def attach(self, stream: ClientStream) -> None:
        self._streams[stream] = None

    def let_go(self, stream: ClientStream) -> None:
        self._streams.pop(stream, None)

    def has_begun(self, turn_id: str) -> bool:
        return turn_id in self._begun

    # -- inside

    async def _call(self, op: str, fields: dict[str, Any], *, again: bool) -> dict[str, Any]:
        if self.is_closed:
            raise SessionClosed(f"The session {self.session_id} is closed.")
        fields = {"session_id": self.session_id, **fields}
        try:
            result = await self._calls.call(op, fields, again=again)
        except UnknownSession:
            if self._known_since == self._calls.dialled:
                raise
            await self._bring_back()
            result = await self._calls.call(op, fields, again=again)
        self._known_since = self._calls.dialled
        return result

    async def _bring_back(self) -> None:
        """The server may have been started again: then a subscriber that returns opens the session again."""
        async with self.subscribe(after={}):
            pass


def write_params(params: SessionParams | TurnParams) -> dict[str, Any]:
    """What differs from the defaults, as JSON."""
    return attrs.asdict(params, filter=lambda field, value: value != field.default, value_serializer=_plain)


def _plain(_params: object, _field: object, value: Any) -> Any:
    return dict(cast("Mapping[str, bool]", value)) if isinstance(value, MappingProxyType) else value
