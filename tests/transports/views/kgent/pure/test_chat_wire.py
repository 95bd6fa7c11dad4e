"""Frames, paths and queries of the K-gent protocol."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights.errors import InvalidCommand
from footlights_transports.views.kgent.pure.messages import DialogueMode
from footlights_transports.views.kgent.pure.wire import (
    AFTER_DONE,
    AGENTESE_HANDLES,
    PROTOCOL_VERSION,
    ObserveQuery,
    PerturbQuery,
    Unreadable,
    expired,
    read_message,
    read_observe_query,
    read_perturb_query,
)


def frame(**data: Any) -> str:
    return orjson.dumps({"action": "message", "version": "1.0.0", "data": {"content": "Hello?", **data}}).decode()


@pytest.mark.shows("gateway-3", "gateway-53")
def test_the_protocol_is_that_of_the_seed() -> None:
    assert PROTOCOL_VERSION == "1.0.0"
    assert dict(AGENTESE_HANDLES) == {
        "perturb": "self.soul.perturb",
        "observe": "time.soul.witness",
        "stream": "time.chat.stream",
    }


@pytest.mark.shows("gateway-55")
def test_a_message_is_read() -> None:
    message = read_message(frame(mode="challenge", correlation_id="mine"), 5.0)
    assert (message.role, message.content, message.timestamp) == ("user", "Hello?", 5.0)
    assert (message.mode, message.correlation_id) == (DialogueMode.CHALLENGE, "mine")


def test_mode_and_correlation_id_may_be_left_out() -> None:
    message = read_message(frame(), 5.0)
    assert message.mode is DialogueMode.REFLECT
    assert message.correlation_id


@pytest.mark.shows("gateway-82")
@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("no object", "JSON object"),
        (frame().replace("1.0.0", "2.0.0"), "version must be 1.0.0"),
        ('{"action": "message", "data": {"content": "x"}}', "version must be 1.0.0"),
        (frame().replace('"message"', '"shout"'), "action must be message"),
        ('{"action": "message", "version": "1.0.0"}', "data must be"),
        (frame(content=" "), "cannot be empty"),
        (frame(content=5), "content must be"),
        (frame(mode="sing"), "mode must be"),
        (frame(correlation_id="t1-000002"), "the id of a turn"),
    ],
)
def test_a_refusal_names_the_first_mistake(wrong: str, hint: str) -> None:
    with pytest.raises(Unreadable, match=hint):
        read_message(wrong, 5.0)


@pytest.mark.parametrize(
    "wrong",
    [
        b"{}",
        "",
        "[]",
        "null",
        '{"version": "1.0.0"}',
        '{"version": "1.0.0", "action": "message", "data": []}',
        '{"version": "1.0.0", "action": "message", "data": {"content": "secret"}, "more": 1}',
        frame(more=1),
        frame(content=None),
        frame(content=["secret"]),
        frame(mode=None),
        frame(mode={"a": "secret"}),
        frame(correlation_id=7),
        frame(correlation_id=None),
        frame(correlation_id=""),
        frame(correlation_id="secret" * 99),
        frame().replace("1.0.0", "1.0.1"),
        frame().replace('"1.0.0"', "1"),
    ],
)
def test_an_invalid_frame_is_refused_and_not_quoted(wrong: str | bytes) -> None:
    with pytest.raises(Unreadable) as refused:
        read_message(wrong, 5.0)
    assert refused.value.correlation_id is None
    assert "secret" not in str(refused.value)


def test_a_refusal_repeats_the_correlation_id() -> None:
    for wrong in (frame(content=" ", correlation_id="mine"), frame(correlation_id="mine").replace("1.0.0", "9")):
        with pytest.raises(Unreadable) as refused:
            read_message(wrong, 5.0)
        assert refused.value.correlation_id == "mine"


@given(st.text() | st.binary())
def test_any_frame_is_a_message_or_refused(wrong: str | bytes) -> None:
    with pytest.raises(Unreadable):
        read_message(wrong, 5.0)


def test_a_perturb_query() -> None:
    assert read_perturb_query("") == PerturbQuery(None, None, None)
    assert read_perturb_query("session=mine&remote_models=1&keep_content=0") == PerturbQuery("mine", True, False)


def test_an_observe_query() -> None:
    assert read_observe_query("") == ObserveQuery({})
    assert read_observe_query("correlation_id=a&after=3&correlation_id=b&session=s") == ObserveQuery(
        {"a": 3, "b": 0}, "s"
    )
    assert read_observe_query("correlation_id=a&after=done") == ObserveQuery({"a": AFTER_DONE})


@pytest.mark.parametrize(
    "query",
    [
        "after=1",
        "correlation_id=a&after=",
        "correlation_id=a&after=-1",
        "correlation_id=a&after=²",
        "what=1",
        "session",
        "a;b",
        "&".join(f"correlation_id={number}" for number in range(65)),
    ],
)
def test_an_invalid_query_is_refused(query: str) -> None:
    with pytest.raises(InvalidCommand):
        read_observe_query(query)
    with pytest.raises(InvalidCommand):
        read_perturb_query(query)


@pytest.mark.parametrize("query", ["session=a&session=b", "session=a&session=a"])
def test_a_session_is_named_once(query: str) -> None:
    for read in (read_observe_query, read_perturb_query):
        with pytest.raises(InvalidCommand, match="twice"):
            read(query)


@pytest.mark.parametrize("name", ["", "%00", "a%0Ab", "a%1b", "%E2%80%AE", "a" * 129])
def test_an_observe_query_needs_valid_correlation_ids(name: str) -> None:
    with pytest.raises(InvalidCommand, match="printable"):
        read_observe_query(f"correlation_id=good&correlation_id={name}&after=1")


def test_a_forgotten_dialogue_ends_behind_the_last_sequence() -> None:
    for after in (0, 4):
        error, done = expired("mine", after, 5.0)
        assert (error.sequence, done.sequence) == (after + 1, after + 2)
        assert error.payload["code"] == "SESSION_EXPIRED"
        assert done.payload == {"total_chunks": after, "correlation_id": "mine"}
