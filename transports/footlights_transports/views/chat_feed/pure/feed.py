"""Chat feed: the newest messages of a session, made from its events.

Role `system` reports what happened, in fixed sentences made from events. Roles `agent` and `user` quote the agent and
the player. Messages are kept nowhere else, no decision depends on one, and any of them may be lost at any time.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from attrs import asdict, frozen

from footlights.authority.approval_news import ApprovalState, approval_news, news_of
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    InterruptReason,
    ModelLoading,
    ModelReady,
    ModelSelected,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from footlights.authority import Artifact
    from footlights.events import StreamEvent

MAX_MESSAGES = 200
MAX_CHARS = 1_000_000
"""Of all messages of a feed together."""


class ChatRole(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    """The runtime: what happened."""
    AGENT = "agent"
    """The agent, quoted. Its words prove nothing."""
    USER = "user"
    """The player, quoted."""


@frozen
class ChatMessage:
    """One message."""

    timestamp: str
    """ISO 8601."""
    role: ChatRole
    content: str

    @property
    def document(self) -> dict[str, str]:
        """As plain JSON."""
        return asdict(self)


class ChatFeed:
    """The newest messages of one session, in their order. Older ones are dropped silently."""

    __slots__ = ("_chars", "_max_chars", "_max_messages", "_messages", "_paused", "count")

    def __init__(self, max_messages: int = MAX_MESSAGES, max_chars: int = MAX_CHARS) -> None:
        self._max_messages = max_messages
        self._max_chars = max_chars
        self._messages: deque[ChatMessage] = deque()
        self._chars = 0
        self._paused: set[str] = set()
        """Turns that wait for those before them."""
        self.count = 0
        """Messages so far, with those that were dropped."""

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        return tuple(self._messages)

    def after(self, count: int) -> list[ChatMessage]:
        """The kept messages behind the first so many."""
        return list(islice(self._messages, max(count - self.count + len(self._messages), 0), None))

    def take(self, event: StreamEvent, wall_ts: float, artifacts: Sequence[Artifact] = ()) -> None:
        """The messages for an event, and that its turn goes on if it was paused."""
        if isinstance(event.payload, TurnAccepted) and event.payload.turns_ahead:
            self._paused.add(event.turn_id)
        elif event.turn_id in self._paused:
            self._paused.remove(event.turn_id)
            if not isinstance(event.payload, TurnInterrupted):
                self.append([ChatMessage(_time_of(event, wall_ts), ChatRole.SYSTEM, GOES_ON)])
        self.append(messages_of(event, wall_ts, artifacts))

    def append(self, messages: Iterable[ChatMessage]) -> None:
        for message in messages:
            self.count += 1
            self._messages.append(message)
            self._chars += len(message.content)
            while len(self._messages) > self._max_messages or self._chars > self._max_chars:
                self._chars -= len(self._messages.popleft().content)

    def drop(self) -> None:
        """Forget all messages."""
        self._messages.clear()
        self._chars = 0


def player_said(words: str, wall_ts: float) -> ChatMessage:
    """A message with the player's words."""
    return ChatMessage(_iso(wall_ts), ChatRole.USER, words)


def messages_of(event: StreamEvent, wall_ts: float, artifacts: Sequence[Artifact] = ()) -> list[ChatMessage]:
    """The messages for an event. `artifacts` are those of its commit, if they are known.

    `wall_ts` is the time of an event that has none.
    """
    timestamp = _time_of(event, wall_ts)
    return [ChatMessage(timestamp, role, content) for role, content in _contents(event, artifacts)]


def _time_of(event: StreamEvent, wall_ts: float) -> str:
    return _iso(wall_ts if event.wall_ts is None else event.wall_ts)


def _iso(wall_ts: float) -> str:
    return datetime.fromtimestamp(wall_ts, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- the sentences

INTERRUPTED: Mapping[InterruptReason, str] = {
    InterruptReason.CANCELED: "The turn was canceled.",
    InterruptReason.BARGE_IN: "The turn was interrupted by the next one.",
    InterruptReason.MODEL_ERROR: "The turn ended early: the model failed.",
    InterruptReason.TOOL_ERROR: "The turn ended early: a tool failed.",
    InterruptReason.WORKLOAD_ERROR: "The turn ended early: something in it failed.",
    InterruptReason.TIMEOUT: "The turn ended early: it took too long.",
    InterruptReason.STALLED: "The turn ended early: nothing happened for too long.",
    InterruptReason.SESSION_CLOSED: "The turn ended early: the session was closed.",
    InterruptReason.SHUTDOWN: "The turn ended early: the server is closing.",
    InterruptReason.RUNTIME_RESTART: "The turn ended early: the server was restarted.",
}
CUT = "The answer was cut at its limit of tokens."
GOES_ON = "The turn goes on."
NOTHING_COMMITTED = "Nothing of the turn was committed."


def _contents(event: StreamEvent, artifacts: Sequence[Artifact]) -> Iterator[tuple[ChatRole, str]]:
    match event.payload:
        case TurnFinal(text=text, cut=cut):
            if text.strip():
                yield ChatRole.AGENT, text
            if cut:
                yield ChatRole.SYSTEM, CUT
        case CommitFinal() as commit:
            for sentence in _of_commit(commit, artifacts):
                yield ChatRole.SYSTEM, sentence
        case TurnAccepted(turns_ahead=0):
            yield ChatRole.SYSTEM, "The turn has begun."
        case TurnAccepted(turns_ahead=ahead):
            yield ChatRole.SYSTEM, f"The turn waits for {ahead} before it."
        case ModelLoading(progress=None):
            yield ChatRole.SYSTEM, "The model is being loaded."
        case ModelReady(load_ms=load_ms):
            if load_ms:
                yield ChatRole.SYSTEM, "The model is ready."
        case ToolCallStarted(tool_name=name):
            yield ChatRole.SYSTEM, f"The tool {name} has begun."
        case ToolCallResult() as result:
            yield ChatRole.SYSTEM, _of_tool(result)
        case ModelSelected(model_id=model_id, error=ErrorInfo(message=why)):
            yield ChatRole.SYSTEM, f"The model {model_id} takes the place of another. {why}"
        case TurnInterrupted(reason=reason, error=None):
            yield ChatRole.SYSTEM, INTERRUPTED[reason]
        case TurnInterrupted(error=ErrorInfo(message=why)):
            yield ChatRole.SYSTEM, f"The turn ended early. {why}"
        case _:
            pass


def _of_tool(result: ToolCallResult) -> str:
    if result.canceled and result.side_effects_may_have_occurred:
        return f"The tool {result.tool_name} was canceled. It may have had an effect."
    if result.canceled:
        return f"The tool {result.tool_name} was canceled."
    if result.error is not None:
        return f"The tool {result.tool_name} failed. {result.error.message}"
    if result.awaits_approval:
        return f"The tool {result.tool_name} waits for approval."
    return f"The tool {result.tool_name} is done."


def _of_commit(commit: CommitFinal, artifacts: Sequence[Artifact]) -> Iterator[str]:
    if commit.commit_outcome is CommitOutcome.OK:
        yield "The turn is committed."
        for news in approval_news(commit):
            yield _OF_APPROVALS[news.state].format(id=news.id, question=news.question)
        for artifact in artifacts:
            if news_of(artifact) is None:
                yield f"An artifact was kept: {artifact.kind}, {artifact.ref}."
    elif any(issue.code == "turn_interrupted" for issue in commit.issues):
        yield NOTHING_COMMITTED
    else:
        reasons = " ".join(issue.message for issue in commit.issues)
        yield f"{NOTHING_COMMITTED} {reasons}"


_OF_APPROVALS = {
    ApprovalState.PENDING: "Approval needed ({id}): {question} Answer it in a new turn.",
    ApprovalState.APPROVED: "Approved ({id}): {question}",
    ApprovalState.DENIED: "Denied ({id}): {question}",
}
