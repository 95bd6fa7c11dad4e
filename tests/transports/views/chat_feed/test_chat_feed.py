"""The chat feed as a pure projection: the message and the role of each event, and the limits."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from footlights import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    Heard,
    InterruptReason,
    Issue,
    ModelLoading,
    ModelReady,
    ModelSelected,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    WarmState,
)
from footlights.authority import Artifact
from footlights.authority.artifacts import news_ext
from footlights.events import EVENT_TYPES, PAYLOAD_TYPES
from footlights_transports.views.chat_feed.pure.feed import (
    CUT,
    INTERRUPTED,
    MAX_CHARS,
    MAX_MESSAGES,
    ChatFeed,
    ChatMessage,
    ChatRole,
    messages_of,
    player_said,
)

if TYPE_CHECKING:
    from footlights import Payload

QUESTION = {"id": "a-000001", "question": "Sell the horse?"}


def event(payload: Payload, wall_ts: float | None = 0.0) -> StreamEvent:
    return StreamEvent("1.0", "s1-000001", "t1-000001", 0, 0, EVENT_TYPES[type(payload)], payload, wall_ts)


def ok(*artifacts: Artifact) -> CommitFinal:
    refs = tuple(each.ref for each in artifacts)
    return CommitFinal("d", CommitOutcome.OK, artifact_refs=refs, ext=news_ext(artifacts))


def closed(*issues: Issue) -> CommitFinal:
    return CommitFinal("d", CommitOutcome.FAIL_CLOSED, issues)


SYSTEM: list[tuple[Payload, str]] = [
    (TurnAccepted(), "The turn has begun."),
    (TurnAccepted(1), "The turn waits for 1 before it."),
    (TurnAccepted(3), "The turn waits for 3 before it."),
    (ModelLoading("m", cold_start=True), "The model is being loaded."),
    (ToolCallStarted("call-1", "rent_room"), "The tool rent_room has begun."),
    (ToolCallResult("call-1", "rent_room", canceled=False), "The tool rent_room is done."),
    (
        ToolCallResult("call-1", "rent_room", canceled=False, error=ErrorInfo("tool_error", "No room.")),
        "The tool rent_room failed: tool_error.",
    ),
    (
        ToolCallResult("call-1", "rent_room", canceled=True, side_effects_may_have_occurred=False),
        "The tool rent_room was canceled.",
    ),
    (
        ToolCallResult("call-1", "rent_room", canceled=True, side_effects_may_have_occurred=True),
        "The tool rent_room was canceled. It may have had an effect.",
    ),
    (ok(), "The turn is committed."),
    (closed(Issue("turn_interrupted", "The turn was interrupted: canceled.")), "Nothing of the turn was committed."),
    (
        closed(Issue("purse_short", "The purse is empty."), Issue("room_taken", "Somebody has it.")),
        "Nothing of the turn was committed. The purse is empty. Somebody has it.",
    ),
]


@pytest.mark.shows("feed-3", "feed-4", "feed-6", "feed-15", "feed-18", "feed-20")
@pytest.mark.shows("feed-21", "feed-41")
@pytest.mark.parametrize(("payload", "sentence"), SYSTEM, ids=lambda it: it if isinstance(it, str) else "")
def test_events_become_fixed_sentences_of_the_role_system(payload: Payload, sentence: str) -> None:
    assert [(each.role, each.content) for each in messages_of(event(payload), 0.0)] == [(ChatRole.SYSTEM, sentence)]


@pytest.mark.shows("feed-23", "feed-43")
def test_every_reason_for_an_interruption_has_its_sentence() -> None:
    assert INTERRUPTED.keys() == set(InterruptReason)
    for reason in InterruptReason:
        (message,) = messages_of(event(TurnInterrupted(reason, "ValueError", Heard(3, "words of the agent"))), 0.0)
        assert (message.role, message.content) == (ChatRole.SYSTEM, INTERRUPTED[reason])


@pytest.mark.shows("feed-7")
def test_a_turn_that_failed_says_why() -> None:
    why = ErrorInfo("model_unreachable", "127.0.0.1:9 cannot be reached (ConnectError).")
    (message,) = messages_of(event(TurnInterrupted(InterruptReason.MODEL_ERROR, "model_unreachable", error=why)), 0.0)
    assert (message.role, message.content) == (ChatRole.SYSTEM, f"The turn ended early. {why.message}")
    (message,) = messages_of(event(ModelSelected("script", "fallback", why)), 0.0)
    assert message.content == f"The model script takes the place of another. {why.message}"


@pytest.mark.shows("feed-17", "feed-24")
def test_the_agents_words_have_the_role_agent() -> None:
    (message,) = messages_of(event(TurnFinal("I rented you a room. All is committed!")), 0.0)
    assert (message.role, message.content) == (ChatRole.AGENT, "I rented you a room. All is committed!")


@pytest.mark.parametrize(
    "payload",
    [
        TurnFinal(" \n"),
        TurnFinal("", text_forgotten=True),
        TokenDelta("Hello", 0),
        ModelSelected("m", "default"),
        ModelLoading("m", cold_start=True, progress=0.5),
        ModelReady("m", WarmState.HOT, 0),
    ],
)
def test_some_events_are_no_message(payload: Payload) -> None:
    assert messages_of(event(payload), 0.0) == []


@pytest.mark.shows("feed-19")
def test_every_kind_of_event_is_a_message_or_left_out_on_purpose() -> None:
    left_out = {TokenDelta, ModelSelected, ModelReady}
    known = {type(payload) for payload, _ in SYSTEM} | {TurnInterrupted, TurnFinal}
    assert known | left_out == set(PAYLOAD_TYPES.values())


@pytest.mark.shows("feed-5")
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("approval.pending", "Approval needed (a-000001): Sell the horse? Answer it in a new turn."),
        ("approval.approved", "Approved (a-000001): Sell the horse?"),
        ("approval.denied", "Denied (a-000001): Sell the horse?"),
    ],
)
def test_an_approval_is_a_message_of_the_role_system(kind: str, sentence: str) -> None:
    artifact = Artifact(kind, dict(QUESTION))
    messages = messages_of(event(ok(artifact)), 0.0, [artifact])
    assert [(each.role, each.content) for each in messages] == [
        (ChatRole.SYSTEM, "The turn is committed."),
        (ChatRole.SYSTEM, sentence),
    ]


@pytest.mark.parametrize("artifact", [Artifact("deed", {"room": 3}), Artifact("approval.pending", {"id": 7})])
def test_another_artifact_is_named_without_its_data(artifact: Artifact) -> None:
    _, message = messages_of(event(ok(artifact)), 0.0, [artifact])
    assert message.content == f"An artifact was kept: {artifact.kind}, {artifact.ref}."


@pytest.mark.shows("feed-26")
def test_a_message_has_three_fields_and_its_time_is_iso() -> None:
    (message,) = messages_of(event(TurnAccepted(), wall_ts=1_700_000_000.5), 0.0)
    assert message.document == {
        "timestamp": "2023-11-14T22:13:20.500Z",
        "role": "system",
        "content": "The turn has begun.",
    }
    assert datetime.fromisoformat(message.timestamp).timestamp() == 1_700_000_000.5


def test_an_event_without_a_time_gets_the_current_one() -> None:
    (message,) = messages_of(event(TurnAccepted(), wall_ts=None), 60.0)
    assert message.timestamp == "1970-01-01T00:01:00.000Z"


def test_the_players_words_have_the_role_user() -> None:
    message = player_said("A room?", 1.0)
    assert (message.role, message.content) == (ChatRole.USER, "A room?")


@pytest.mark.shows("feed-27")
def test_there_are_exactly_three_roles() -> None:
    assert [role.value for role in ChatRole] == ["system", "agent", "user"]


# -- what is kept


def messages(*contents: str) -> list[ChatMessage]:
    return [ChatMessage("", ChatRole.USER, content) for content in contents]


@pytest.mark.shows("feed-33", "feed-34", "feed-35")
def test_a_feed_keeps_the_newest_messages() -> None:
    feed = ChatFeed()
    feed.append(messages(*(str(number) for number in range(MAX_MESSAGES + 7))))
    assert [each.content for each in feed.messages] == [str(number) for number in range(7, MAX_MESSAGES + 7)]


def contents(feed: ChatFeed) -> list[str]:
    return [each.content for each in feed.messages]


@pytest.mark.shows("feed-33")
def test_a_feed_keeps_a_limited_number_of_characters() -> None:
    feed = ChatFeed(max_chars=10)
    feed.append(messages("12345", "678", "90"))
    assert contents(feed) == ["12345", "678", "90"]
    feed.append(messages("1"))
    assert contents(feed) == ["678", "90", "1"]
    feed.append(messages("x" * 11))
    assert contents(feed) == []
    feed.append(messages("1234567890"))
    assert contents(feed) == ["1234567890"]
    assert MAX_CHARS > 500_000, "the longest text of a turn has room"


@pytest.mark.shows("feed-35")
def test_a_feed_that_is_dropped_begins_again() -> None:
    feed = ChatFeed(max_chars=10)
    feed.append(messages("1234567890"))
    feed.drop()
    assert feed.messages == ()
    feed.append(messages("1234567890"))
    assert len(feed.messages) == 1


def test_an_answer_that_was_cut_is_followed_by_a_message_that_says_so() -> None:
    quoted, told = messages_of(event(TurnFinal("Once upon a", cut=True)), 0.0)
    assert (quoted.role, quoted.content) == (ChatRole.AGENT, "Once upon a")
    assert (told.role, told.content) == (ChatRole.SYSTEM, CUT)
