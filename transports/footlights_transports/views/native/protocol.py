"""Native protocol, `footlights.v1`: commands from the client; replies, notices and events from the server.

    {"op": "begin_turn", "id": 7, "session_id": "s1-000001", "input": "A room?"}
    {"reply": 7, "ok": true, "result": {"turn_id": "t1-000001"}}
    {"reply": 7, "ok": false, "error": {"code": "busy", "message": "..."}}
    {"notice": "detached", "session_id": "s1-000001", "reason": "stalled"}

A frame with `event_type` is an event. A frame that is a list holds events, for clients that asked for batches.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import orjson
from attrs import frozen

from footlights.authority.intents import Intent, IntentType
from footlights.authority.patch import to_json
from footlights.authority.record import issue_json, record_to_json
from footlights.authority.world import plain_view
from footlights.errors import FootlightsError, InvalidCommand
from footlights.models.budget import BudgetTier
from footlights.models.sampling import Sampling
from footlights.params import BusyRule, Mode, SessionParams, TurnParams
from footlights.speaker import checked_about
from footlights.stream.commit_feed import WorldCommit
from footlights.turn.summary_json import summary_to_json
from footlights.wire import values
from footlights.wire.values import Unfit
from footlights_transports.access.notes import NOTE_ACTS
from footlights_transports.errors import BadFrame, CommandId, error_json
from footlights_transports.json_text import read_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from footlights.authority.record import CommitRecord
    from footlights.events import CommitFinal, JsonValue
    from footlights.turn.summary import TurnSummary
    from footlights_transports.access.followed_commits import FollowedCommits, Told

SUBPROTOCOL = "footlights.v1"
MAX_ID_CHARS = 128
MAX_COMMITS = 200
"""Commits in one answer."""
COMMITS = 50
"""The same, for a client that does not say how many."""
MAX_CURSORS = 4_096
"""Most turns that one `subscribe` may name."""


@frozen
class Start:
    params: SessionParams


@frozen
class Subscribe:
    session_id: str
    after: Mapping[str, int] | None
    terminal_seen: frozenset[str]
    remote_models: bool = False
    """Consent for a session that has to be opened again after a restart, because consent is not kept."""
    about: Mapping[str, JsonValue] | None = None
    """The same for what a game server says about the player."""


@frozen
class BeginTurn:
    session_id: str
    input: str
    params: TurnParams
    request_id: str | None = None


@frozen
class Cancel:
    session_id: str
    turn_id: str | None


@frozen
class Finalize:
    session_id: str
    turn_id: str


@frozen
class HeardUpTo:
    session_id: str
    turn_id: str
    seq: int


@frozen
class ListCommits:
    session_id: str
    limit: int


@frozen
class Summarize:
    session_id: str
    turn_id: str


@frozen
class HostCommit:
    """A commit outside of sessions, for game servers."""

    intents: tuple[Intent, ...]
    why: str


@frozen
class FollowCommits:
    """What changed, as far as the user may know it."""

    after: str | None
    under: str


@frozen
class ShowWorld:
    """The world, or a part of it, as far as the user may see it."""

    path: str = ""
    """A JSON pointer."""


@frozen
class Notes:
    """The notebook of the session's player."""

    session_id: str
    act: str = "list"


@frozen
class Close:
    session_id: str


@frozen
class Ping:
    """Does nothing. The reply is a sign of life for clients that cannot send WebSocket pings, such as browsers."""


Command: TypeAlias = (
    Start
    | Subscribe
    | BeginTurn
    | Cancel
    | Finalize
    | HeardUpTo
    | ListCommits
    | Summarize
    | HostCommit
    | FollowCommits
    | ShowWorld
    | Notes
    | Close
    | Ping
)


def read_command(frame: str | bytes) -> tuple[CommandId, Command]:
    """The command in a frame. Raises `BadFrame`, which does not quote it."""
    fields = read_object(frame)
    command_id = _command_id(fields)
    if "op" not in fields:
        raise BadFrame("op: is missing", command_id)
    try:
        return command_id, read_fields(fields.pop("op"), fields)
    except InvalidCommand as error:
        raise BadFrame(str(error), command_id) from None


def id_in(frame: str | bytes) -> CommandId:
    """The id in a frame that is not parsed otherwise; None if it cannot be read."""
    try:
        return None if isinstance(frame, bytes) else _command_id(read_object(frame))
    except BadFrame:
        return None


def read_fields(op: object, fields: dict[str, Any]) -> Command:
    """The command of that name. It removes its fields. Raises `InvalidCommand`, which does not quote them."""
    try:
        taken = _Fields(fields)
        command = _reader(op)(taken)
        taken.check_nothing_left()
    except KeyError as missing:
        raise InvalidCommand(f"{missing.args[0]}: is missing") from None
    except Unfit as error:
        raise InvalidCommand(f"{error.field or 'op'}: {error}") from None
    return command


def write_reply(command_id: CommandId, result: Mapping[str, JsonValue] | None = None) -> bytes:
    """The reply to a command that was performed."""
    return orjson.dumps({"reply": command_id, "ok": True, "result": dict(result or {})}, default=plain_view)


def write_error(command_id: CommandId, error: FootlightsError) -> bytes:
    """The reply to a command that was not performed."""
    return orjson.dumps({"reply": command_id, "ok": False, "error": error_json(error)})


def write_notice(notice: str, session_id: str, reason: str | None = None) -> bytes:
    """A notice, which is neither a reply nor an event: `detached` or `ended`."""
    told = {"notice": notice, "session_id": session_id}
    return orjson.dumps(told if reason is None else {**told, "reason": reason})


def write_feed_end(error: BaseException) -> bytes:
    """The notice that the feed of commits ends early. It has no session."""
    told = error if isinstance(error, FootlightsError) else FootlightsError()
    return orjson.dumps({"notice": "detached", "reason": error_json(told)["code"]})


def followed_json(followed: FollowedCommits) -> dict[str, JsonValue]:
    """Where a feed of commits begins, with what the user sees there, if it begins now."""
    return {"cursor": followed.cursor, **({"world": followed.shown[0]} if followed.shown else {})}


def told_json(told: Told) -> dict[str, JsonValue]:
    """A commit of the feed."""
    cursor, commit = told
    whole: dict[str, JsonValue] = {}
    if isinstance(commit, WorldCommit):
        whole = {"commit_id": commit.commit_id, "why": commit.why}
    return {
        "cursor": cursor,
        **whole,
        "session_id": commit.session_id,
        "turn_id": commit.turn_id,
        "changes": None if commit.changes is None else [to_json(change) for change in commit.changes],
    }


def commit_json(commit: CommitFinal) -> dict[str, JsonValue]:
    """The result of `finalize`."""
    return {
        "commit_id": commit.commit_id,
        "commit_digest": commit.commit_digest,
        "commit_outcome": commit.commit_outcome.value,
    }


def host_commit_json(commit: CommitFinal) -> dict[str, JsonValue]:
    """The result of `commit`."""
    return {**commit_json(commit), "issues": [issue_json(issue) for issue in commit.issues]}


def summary_result(summary: TurnSummary | None) -> dict[str, JsonValue]:
    """The result of `summary`."""
    return {"summary": None if summary is None else summary_to_json(summary)}


def commits_json(commits: Iterable[CommitRecord]) -> dict[str, JsonValue]:
    """The result of `commits`."""
    return {"commits": [record_to_json(commit) for commit in commits]}


# -- reading


def _reader(op: object) -> Callable[[_Fields], Command]:
    reader = _READERS.get(values.text(op))
    if reader is None:
        raise Unfit(f"must be one of {', '.join(_READERS)}")
    return reader


def _command_id(fields: dict[str, Any]) -> CommandId:
    command_id = fields.pop("id", None)
    match command_id:
        case bool():
            pass
        case int() if 0 <= command_id <= values.MAX_INTEGER:
            return command_id
        case str() if 1 <= len(command_id) <= MAX_ID_CHARS:
            return command_id
        case _:
            pass
    raise BadFrame(f"id: must be a string of up to {MAX_ID_CHARS} characters or an integer from 0")


class _Fields:
    """The fields of a command, taken one by one."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def take(self, name: str, read: Callable[[object], Any]) -> Any:
        return self._read(name, read, self._fields.pop(name))

    def take_if_there(self, name: str, read: Callable[[object], Any]) -> Any:
        value = self._fields.pop(name, None)
        return None if value is None else self._read(name, read, value)

    def check_nothing_left(self) -> None:
        for name in self._fields:
            raise Unfit("is not a field of this command", name if name.isidentifier() and len(name) < 40 else "?")

    @staticmethod
    def _read(name: str, read: Callable[[object], Any], value: object) -> Any:
        try:
            return read(value)
        except Unfit as error:
            raise Unfit(str(error), f"{name}.{error.field}" if error.field else name) from None


def _params(known: Mapping[str, Callable[[object], Any]], make: Callable[..., Any]) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        if not isinstance(value, dict):
            raise Unfit("must be an object")
        fields = _Fields(dict(cast("dict[str, Any]", value)))
        given = {name: fields.take_if_there(name, reader) for name, reader in known.items()}
        fields.check_nothing_left()
        return make(**{name: each for name, each in given.items() if each is not None})

    return read


def _cursors(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        raise Unfit("must be an object of seqs by turn_id")
    cursors = cast("dict[str, object]", value)
    if len(cursors) > MAX_CURSORS:
        raise Unfit(f"must name no more than {MAX_CURSORS} turns")
    return {turn_id: _seq(seq) for turn_id, seq in cursors.items()}


def _seq(value: object) -> int:
    return -1 if value == -1 and type(value) is int else values.natural(value)


def _limit(value: object) -> int:
    if not 1 <= values.natural(value) <= MAX_COMMITS:
        raise Unfit(f"must be between 1 and {MAX_COMMITS}")
    return cast(int, value)


def _note_act(value: object) -> str:
    if not isinstance(value, str) or value not in NOTE_ACTS:
        raise Unfit(f"must be one of {', '.join(NOTE_ACTS)}")
    return value


def _intents(value: object) -> tuple[Intent, ...]:
    if not isinstance(value, list):
        raise Unfit("must be a list of intents")
    return tuple(map(_read_intent, cast("list[object]", value)))


def _json(value: object) -> Any:
    return value


def _names(value: object) -> frozenset[str]:
    if not isinstance(value, list):
        raise Unfit("must be a list")
    names = cast("list[object]", value)
    if len(names) > MAX_CURSORS:
        raise Unfit(f"must name no more than {MAX_CURSORS} turns")
    return frozenset(map(values.text, names))


def _answers(value: object) -> dict[str, bool]:
    if not isinstance(value, dict):
        raise Unfit("must be an object of true or false by id")
    return {id_: values.flag(yes) for id_, yes in cast("dict[str, object]", value).items()}


def _stops(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit("must be a list of texts")
    return tuple(map(values.text, cast("list[object]", value)))


def _member(kind: type[Any]) -> Callable[[object], Any]:
    read = values.member_of(kind)
    return lambda value: read(value, None)


read_session_params = _params({"session_id": values.text, "remote_models": values.flag, "about": _json}, SessionParams)
"""`params` of `start`, from JSON. Raises `Unfit` or `InvalidCommand`."""
read_sampling = _params(
    {
        "temperature": values.number,
        "top_p": values.number,
        "min_p": values.number,
        "repeat_penalty": values.number,
        "frequency_penalty": values.number,
        "stop": _stops,
        "seed": values.natural,
        "max_tokens": values.natural,
    },
    Sampling,
)
"""`sampling` of `params`, from JSON. Raises `Unfit` or `InvalidCommand`."""
read_turn_params = _params(
    {
        "busy": _member(BusyRule),
        "mode": _member(Mode),
        "model": values.name,
        "persona": values.name,
        "tier": _member(BudgetTier),
        "sampling": read_sampling,
        "workload": values.name,
        "approvals": _answers,
    },
    TurnParams,
)
"""`params` of `begin_turn`, from JSON. Raises `Unfit` or `InvalidCommand`."""

_read_intent = _params({"ref": values.text, "payload": _json}, partial(Intent, IntentType.DECISION))

_READERS: Mapping[str, Callable[[_Fields], Command]] = {
    "start": lambda it: Start(it.take_if_there("params", read_session_params) or SessionParams()),
    "subscribe": lambda it: Subscribe(
        it.take("session_id", values.text),
        it.take_if_there("after", _cursors),
        it.take_if_there("terminal_seen", _names) or frozenset(),
        it.take_if_there("remote_models", values.flag) or False,
        it.take_if_there("about", checked_about),
    ),
    "begin_turn": lambda it: BeginTurn(
        it.take("session_id", values.text),
        it.take("input", values.text),
        it.take_if_there("params", read_turn_params) or TurnParams(),
        it.take_if_there("request_id", values.text),
    ),
    "cancel": lambda it: Cancel(it.take("session_id", values.text), it.take_if_there("turn_id", values.text)),
    "finalize": lambda it: Finalize(it.take("session_id", values.text), it.take("turn_id", values.text)),
    "heard": lambda it: HeardUpTo(
        it.take("session_id", values.text), it.take("turn_id", values.text), it.take("seq", values.natural)
    ),
    "commits": lambda it: ListCommits(it.take("session_id", values.text), it.take_if_there("limit", _limit) or COMMITS),
    "summary": lambda it: Summarize(it.take("session_id", values.text), it.take("turn_id", values.text)),
    "commit": lambda it: HostCommit(it.take("intents", _intents), it.take("why", values.text)),
    "follow_commits": lambda it: FollowCommits(
        it.take_if_there("after", values.text), it.take_if_there("under", values.text) or ""
    ),
    "world": lambda it: ShowWorld(it.take_if_there("path", values.text) or ""),
    "notes": lambda it: Notes(it.take("session_id", values.text), it.take_if_there("act", _note_act) or "list"),
    "close": lambda it: Close(it.take("session_id", values.text)),
    "ping": lambda _: Ping(),
}
