"""ClientSession: a session on a server. Methods that are plain calls in process are awaited here."""

from __future__ import annotations

from secrets import token_urlsafe
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import attrs
from attrs import frozen

from footlights.authority.record import InvalidRecord, record_from_json
from footlights.errors import SessionClosed, UnknownSession
from footlights.events import CommitOutcome
from footlights.turn.summary_json import summary_from_json
from footlights.wire.values import Unfit
from footlights_transports.client.protocol import protocol_error, text_in, texts_in
from footlights_transports.client.stream import ClientStream

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from footlights.authority import CommitRecord
    from footlights.events import JsonValue
    from footlights.params import SessionParams, TurnParams
    from footlights.turn.summary import TurnSummary
    from footlights_transports.client.commands import Commands

MAX_BEGUN = 1_024
"""The number of its own turns that a session remembers."""


@frozen
class Commit:
    """The authority's decision about a turn. The issues are in the commit_final."""

    commit_digest: str
    commit_outcome: CommitOutcome
    commit_id: str | None


class ClientSession:
    """One player's conversation, on a server. Made by `client.start` and `client.session`."""

    def __init__(
        self, session_id: str, commands: Commands, *, remote_models: bool, about: Mapping[str, JsonValue]
    ) -> None:
        self.session_id = session_id
        self.remote_models = remote_models
        """The consent that is given again if a restarted server has to reopen the session."""
        self.about = about
        """The same for what a game server says about the player."""
        self.persona: str | None = None
        """The persona that speaks in turns that name none, if this client started the session."""
        self.commands = commands
        self.is_closed = False
        """Whether this client closed it."""
        self._known_since = commands.dialled
        self._streams: dict[ClientStream, None] = {}
        self._begun: dict[str, None] = {}

    async def begin_turn(self, said: str, params: TurnParams | None = None, *, request_id: str | None = None) -> str:
        """Have the server accept what the player said, and return the turn's id.

        If the connection is lost before the reply, the command is sent again with the same `request_id`, which begins
        one turn only. It is random unless you give one, as in `begin_turn_once` of a local session: then you can also
        repeat the call yourself, in another process too.

        Raises what `begin_turn_once` of a local session raises, and `ConnectionLost`: if its `maybe_done` is true, the
        turn may have begun, and the server could not be reached again in time.
        """
        fields: dict[str, Any] = {"input": said, "request_id": token_urlsafe(16) if request_id is None else request_id}
        if params is not None:
            fields["params"] = write_params(params)
        dialled = self.commands.dialled
        turn_id = text_in(await self._call("begin_turn", fields, again=True), "turn_id")
        self._begun[turn_id] = None
        if len(self._begun) > MAX_BEGUN:
            del self._begun[next(iter(self._begun))]
        missing = [stream for stream in self._streams if stream.expect(turn_id)]
        if self.commands.dialled != dialled:
            # Sent again, it may have found a turn from before a restart, for which a stream has to ask by its id.
            for stream in missing:
                await stream.resubscribe()
        return turn_id

    async def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        """Interrupt one turn, or every open one; return the ids of those that this call interrupted.

        If the connection is lost meanwhile, the command is repeated, and the ids of the first attempt are missing from
        the result. The stream has them in any case.
        """
        fields = {} if turn_id is None else {"turn_id": turn_id}
        return texts_in(await self._call("cancel", fields, again=True), "canceled")

    async def finalize(self, turn_id: str) -> Commit:
        """Wait for the turn's commit. Raises `UnknownTurn` for an id that was never assigned."""
        result = await self._call("finalize", {"turn_id": turn_id}, again=True)
        outcome = text_in(result, "commit_outcome")
        if outcome not in set(CommitOutcome):
            raise protocol_error()
        return Commit(text_in(result, "commit_digest"), CommitOutcome(outcome), result.get("commit_id"))

    async def commits(self, limit: int = 50) -> tuple[CommitRecord, ...]:
        """The newest commits of the session, in their order: what each turn asked for, the verdicts, the changes."""
        result = await self._call("commits", {"limit": limit}, again=True)
        try:
            return tuple(record_from_json(each) for each in result["commits"])
        except (InvalidRecord, KeyError, TypeError):
            raise protocol_error() from None

    async def notes(self, act: str = "list") -> dict[str, Any]:
        """What is remembered of the player: `agreed`, and `notes` with their words.

        `act` is `list`; `erase` for all of them; `agree` to notes without being asked, or `withdraw` that.
        """
        return await self._call("notes", {"act": act}, again=True)

    async def summary(self, turn_id: str) -> TurnSummary | None:
        """How a turn ended, and where its time went; None if it is not settled, or not retained any more."""
        result = await self._call("summary", {"turn_id": turn_id}, again=True)
        try:
            return None if result["summary"] is None else summary_from_json(result["summary"])
        except (Unfit, KeyError):
            raise protocol_error() from None

    async def heard(self, turn_id: str, seq: int) -> None:
        """Report that the player has heard the turn up to this event."""
        await self._call("heard", {"turn_id": turn_id, "seq": seq}, again=True)

    def subscribe(self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()) -> ClientStream:
        """A stream of this session's events, to be entered with `async with`. The arguments are as in process."""
        return ClientStream(self, after, terminal_seen)

    async def close(self) -> None:
        """Interrupt open turns, wait until every turn is settled, end every stream. Idempotent."""
        if self.is_closed:
            return
        try:
            await self.commands.call("close", {"session_id": self.session_id}, again=True)
        except UnknownSession:
            # An earlier attempt closed it and its reply was lost; a stream that came back since has reopened it.
            self.is_closed = True
            for stream in list(self._streams):
                await stream.drop_connection()
        self.is_closed = True

    # -- for its streams

    def attach(self, stream: ClientStream) -> None:
        self._streams[stream] = None

    def detach(self, stream: ClientStream) -> None:
        self._streams.pop(stream, None)

    def has_begun(self, turn_id: str) -> bool:
        return turn_id in self._begun

    # -- inside

    async def _call(self, op: str, fields: dict[str, Any], *, again: bool) -> dict[str, Any]:
        if self.is_closed:
            raise SessionClosed(f"The session {self.session_id} is closed.")
        fields = {"session_id": self.session_id, **fields}
        try:
            result = await self.commands.call(op, fields, again=again)
        except UnknownSession:
            if self._known_since == self.commands.dialled:
                raise
            # The server may have been restarted: a returning subscriber makes it reopen the session.
            async with self.subscribe(after={}):
                pass
            result = await self.commands.call(op, fields, again=again)
        self._known_since = self.commands.dialled
        return result


def write_params(params: SessionParams | TurnParams) -> dict[str, Any]:
    """What differs from the defaults, as JSON."""
    return attrs.asdict(params, filter=lambda field, value: value != field.default, value_serializer=_plain)


def _plain(_params: object, _field: object, value: Any) -> Any:
    return dict(cast("Mapping[str, bool]", value)) if isinstance(value, MappingProxyType) else value
