"""The native dialect: any frame is a command or a `BadFrame`, and never anything else."""

from __future__ import annotations

import json
import string
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights.errors import Busy, FootlightsError, ModelError
from footlights.events import CommitFinal, CommitOutcome
from footlights.models.budget import BudgetTier
from footlights.models.prompts import Fact
from footlights.models.sampling import Sampling
from footlights.params import BusyRule, Mode, SessionParams, TurnParams
from footlights_transports.client.session import write_params
from footlights_transports.errors import BadFrame, too_large
from footlights_transports.json_text import MAX_DEPTH
from footlights_transports.views.native import protocol as native
from footlights_transports.views.native.protocol import (
    MAX_CURSORS,
    MAX_ID_CHARS,
    BeginTurn,
    Cancel,
    Close,
    Finalize,
    FollowCommits,
    HeardUpTo,
    ListCommits,
    Ping,
    ShowWorld,
    Start,
    Subscribe,
    read_command,
)

SAMPLING: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "min_p": 0.1,
    "repeat_penalty": 1.1,
    "frequency_penalty": 0.2,
    "stop": ["\n"],
    "seed": 7,
    "max_tokens": 60,
}
EVERY_TURN_PARAM: dict[str, object] = {
    "busy": "reject",
    "mode": "analyze",
    "model": "scripted",
    "persona": "default",
    "tier": "high",
    "sampling": SAMPLING,
    "workload": "npc",
    "approvals": {"a-000001": True, "a-000002": False},
}

COMMANDS: list[tuple[dict[str, Any], native.Command]] = [
    ({"op": "start"}, Start(SessionParams())),
    ({"op": "start", "params": None}, Start(SessionParams())),
    (
        {"op": "start", "params": {"session_id": "ann", "remote_models": True}},
        Start(SessionParams(session_id="ann", remote_models=True)),
    ),
    ({"op": "subscribe", "session_id": "s"}, Subscribe("s", None, frozenset())),
    (
        {"op": "subscribe", "session_id": "s", "after": {"t": 3, "u": -1}, "terminal_seen": ["t"]},
        Subscribe("s", {"t": 3, "u": -1}, frozenset({"t"})),
    ),
    ({"op": "subscribe", "session_id": "s", "after": {}}, Subscribe("s", {}, frozenset())),
    ({"op": "begin_turn", "session_id": "s", "input": "A room?"}, BeginTurn("s", "A room?", TurnParams())),
    (
        {"op": "begin_turn", "session_id": "s", "input": "A room?", "request_id": "r"},
        BeginTurn("s", "A room?", TurnParams(), "r"),
    ),
    ({"op": "cancel", "session_id": "s"}, Cancel("s", None)),
    ({"op": "cancel", "session_id": "s", "turn_id": "t"}, Cancel("s", "t")),
    ({"op": "finalize", "session_id": "s", "turn_id": "t"}, Finalize("s", "t")),
    ({"op": "heard", "session_id": "s", "turn_id": "t", "seq": 0}, HeardUpTo("s", "t", 0)),
    ({"op": "close", "session_id": "s"}, Close("s")),
    ({"op": "commits", "session_id": "s", "limit": 3}, ListCommits("s", 3)),
    ({"op": "commits", "session_id": "s"}, ListCommits("s", 50)),
    ({"op": "follow_commits"}, FollowCommits(None, "")),
    ({"op": "follow_commits", "after": "c-1", "under": "/purse"}, FollowCommits("c-1", "/purse")),
    ({"op": "world"}, ShowWorld()),
    ({"op": "ping"}, Ping()),
]


@pytest.mark.parametrize(("frame", "command"), COMMANDS)
@pytest.mark.parametrize("command_id", [0, 7, "a", "x" * MAX_ID_CHARS])
def test_a_command_is_read_with_its_id(frame: dict[str, Any], command: native.Command, command_id: object) -> None:
    assert read_command(orjson.dumps({**frame, "id": command_id})) == (command_id, command)
    assert read_command(orjson.dumps({**frame, "id": command_id}).decode()) == (command_id, command)


def test_every_wish_for_a_turn_can_be_said() -> None:
    frame = {"op": "begin_turn", "id": 1, "session_id": "s", "input": "?", "params": {}}
    for busy, mode, tier in zip(BusyRule, [*Mode] * 4, [*BudgetTier] * 4, strict=False):
        said: dict[str, object] = {"busy": busy, "mode": mode, "tier": tier, "sampling": SAMPLING, "model": "scripted"}
        _, command = read_command(orjson.dumps({**frame, "params": said}))
        assert isinstance(command, BeginTurn)
        expected = Sampling(**SAMPLING)
        assert command.params == TurnParams(busy=busy, mode=mode, tier=tier, sampling=expected, model="scripted")


BAD: dict[str, tuple[object, str]] = {
    "op missing": ({"id": 1}, "op: is missing"),
    "op unknown": ({"op": "reboot", "id": 1}, "op: must be one of start, subscribe"),
    "op no text": ({"op": [], "id": 1}, "op: must be"),
    "session missing": ({"op": "close", "id": 1}, "session_id: is missing"),
    "session null": ({"op": "close", "id": 1, "session_id": None}, "session_id: must be"),
    "field too many": ({"op": "close", "id": 1, "session_id": "s", "more": 1}, "more: is not a field"),
    "field that is no name": ({"op": "close", "id": 1, "session_id": "s", "a b": 1}, "?: is not a field"),
    "field with a long name": ({"op": "close", "id": 1, "session_id": "s", "a" * 40: 1}, "?: is not a field"),
    "no commits": ({"op": "commits", "id": 1, "session_id": "s", "limit": 0}, "limit: must be between 1 and 200"),
    "all commits": ({"op": "commits", "id": 1, "session_id": "s", "limit": 201}, "limit: must be between 1 and 200"),
    "ping of a session": ({"op": "ping", "id": 1, "session_id": "s"}, "session_id: is not a field"),
    "after no object": ({"op": "subscribe", "id": 1, "session_id": "s", "after": 3}, "after: must be an object"),
    "seq no number": ({"op": "subscribe", "id": 1, "session_id": "s", "after": {"t": "3"}}, "after: must be"),
    "seq is true": ({"op": "subscribe", "id": 1, "session_id": "s", "after": {"t": True}}, "after: must be"),
    "seq below -1": ({"op": "subscribe", "id": 1, "session_id": "s", "after": {"t": -2}}, "after: must be"),
    "terminal_seen no list": ({"op": "subscribe", "id": 1, "session_id": "s", "terminal_seen": {}}, "must be a list"),
    "too many turns": (
        {"op": "subscribe", "id": 1, "session_id": "s", "after": {str(n): 0 for n in range(MAX_CURSORS + 1)}},
        "no more than",
    ),
    "too many terminals": (
        {"op": "subscribe", "id": 1, "session_id": "s", "terminal_seen": ["t"] * (MAX_CURSORS + 1)},
        "no more than",
    ),
    "params no object": ({"op": "start", "id": 1, "params": 3}, "params: must be an object"),
    "param unknown": ({"op": "start", "id": 1, "params": {"admin": True}}, "params.admin: is not a field"),
    "param of another type": (
        {"op": "start", "id": 1, "params": {"remote_models": 1}},
        "params.remote_models: must be",
    ),
    "param that no session has": ({"op": "start", "id": 1, "params": {"session_id": " "}}, ""),
    "request_id is a number": (
        {"op": "begin_turn", "id": 1, "session_id": "s", "input": "?", "request_id": 5},
        "request_id: must be a string",
    ),
    "mode unknown": (
        {"op": "begin_turn", "id": 1, "session_id": "s", "input": "?", "params": {"mode": "xyzzy"}},
        "params.mode: must be",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_command_says_where_and_why_and_keeps_its_id(case: str) -> None:
    frame, message = BAD[case]
    with pytest.raises(BadFrame) as refused:
        read_command(orjson.dumps(frame))
    assert message in str(refused.value)
    assert refused.value.command_id == 1
    assert "xyzzy" not in str(refused.value)


@pytest.mark.parametrize("command_id", [None, True, -1, 1.5, "", "x" * (MAX_ID_CHARS + 1), [], {}, 2**63 - 1])
def test_an_id_that_is_none_is_not_repeated(command_id: object) -> None:
    with pytest.raises(BadFrame, match="id: must be") as refused:
        read_command(orjson.dumps({"op": "start", "id": command_id}))
    assert refused.value.command_id is None


@pytest.mark.parametrize("frame", [b"", b"\xff", b"{", b"[]", b"7", b"null", b'"start"', b'{"op":"start","id":NaN}'])
def test_what_is_no_object_is_no_command(frame: bytes) -> None:
    with pytest.raises(BadFrame) as refused:
        read_command(frame)
    assert refused.value.command_id is None


def nested(levels: int) -> bytes:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return orjson.dumps({"op": "start", "id": 1, "params": value})


def test_a_command_may_nest_only_so_deep() -> None:
    with pytest.raises(BadFrame, match="params: must be an object"):
        read_command(nested(MAX_DEPTH - 1))
    with pytest.raises(BadFrame, match="nests no deeper"):
        read_command(nested(MAX_DEPTH))


@pytest.mark.parametrize("value", ["1", "[]", "{}", '""'])
def test_a_command_has_only_so_many_values(value: str) -> None:
    with pytest.raises(BadFrame, match="params: must be an object"):
        read_command(f'{{"op": "start", "id": 1, "params": [{",".join([value] * 8_000)}]}}')
    with pytest.raises(BadFrame, match="no more than 16384 values"):
        read_command(f'{{"op": "start", "id": 1, "params": [{",".join([value] * 17_000)}]}}')


@pytest.mark.parametrize("text", ["," * 60_000, "[{," * 20_000, '"[\\' * 20_000])
def test_what_is_in_a_string_is_no_value(text: str) -> None:
    _, command = read_command(orjson.dumps({"op": "begin_turn", "id": 1, "session_id": "s", "input": text}))
    assert command == BeginTurn("s", text, TurnParams())


# -- anything at all

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(
    ["op", "id", "session_id", "turn_id", "input", "params", "after", "terminal_seen", "seq", *EVERY_TURN_PARAM]
)
ops = st.sampled_from(
    ["start", "subscribe", "begin_turn", "cancel", "finalize", "heard", "commits", "world", "close", "ping"]
)


def is_command_or_bad_frame(frame: bytes | str) -> None:
    try:
        command_id, _ = read_command(frame)
    except BadFrame as refused:
        orjson.loads(native.write_error(refused.command_id, refused))
    else:
        orjson.loads(native.write_reply(command_id))


@given(st.binary())
def test_any_bytes_are_a_command_or_a_bad_frame(frame: bytes) -> None:
    is_command_or_bad_frame(frame)


@given(st.text())
def test_any_text_is_a_command_or_a_bad_frame(frame: str) -> None:
    is_command_or_bad_frame(frame)


@given(anything)
def test_any_json_is_a_command_or_a_bad_frame(value: object) -> None:
    is_command_or_bad_frame(json.dumps(value))


@given(ops, st.dictionaries(names, anything, max_size=6), st.integers(0, 9) | st.text(string.ascii_letters, min_size=1))
def test_what_looks_like_a_command_is_one_or_a_bad_frame(
    op: str, fields: dict[str, object], command_id: object
) -> None:
    is_command_or_bad_frame(json.dumps({**fields, "op": op, "id": command_id}))


@given(st.dictionaries(st.sampled_from([*EVERY_TURN_PARAM]), anything))
def test_any_wish_for_a_turn_is_one_or_a_bad_frame(params: dict[str, object]) -> None:
    frame = {"op": "begin_turn", "id": 1, "session_id": "s", "input": "?", "params": params}
    is_command_or_bad_frame(json.dumps(frame))


# -- what is written


def test_a_reply_names_its_command() -> None:
    assert orjson.loads(native.write_reply(7)) == {"reply": 7, "ok": True, "result": {}}
    assert orjson.loads(native.write_reply("a", {"turn_id": "t"})) == {
        "reply": "a",
        "ok": True,
        "result": {"turn_id": "t"},
    }


def test_an_error_that_the_wire_knows_is_sent() -> None:
    assert orjson.loads(native.write_error(7, Busy("Wait."))) == {
        "reply": 7,
        "ok": False,
        "error": {"code": "busy", "message": "Wait."},
    }


@pytest.mark.parametrize("error", [FootlightsError("xyzzy"), ModelError("xyzzy")])
def test_an_error_that_the_wire_does_not_know_says_nothing_of_itself(error: FootlightsError) -> None:
    told = orjson.loads(native.write_error(None, error))
    assert told["reply"] is None
    assert told["error"]["code"] == "internal"
    assert "xyzzy" not in told["error"]["message"]
    assert error.code in told["error"]["message"]


def test_notices() -> None:
    assert orjson.loads(native.write_notice("ended", "s")) == {"notice": "ended", "session_id": "s"}
    assert orjson.loads(native.write_notice("detached", "s", "stalled")) == {
        "notice": "detached",
        "session_id": "s",
        "reason": "stalled",
    }


def test_a_commit_is_sent_as_its_id_its_digest_and_its_outcome() -> None:
    commit = CommitFinal(commit_digest="d", commit_outcome=CommitOutcome.OK, commit_id="c")
    assert native.commit_json(commit) == {"commit_id": "c", "commit_digest": "d", "commit_outcome": "ok"}


def test_too_large_names_the_limit() -> None:
    assert "1000 bytes" in str(too_large(1_000))


@given(st.dictionaries(st.integers(1, 999_999).map(lambda number: f"a-{number:06d}"), st.booleans(), max_size=32))
def test_what_a_client_answers_is_what_the_server_reads(approvals: dict[str, bool]) -> None:
    params = TurnParams(approvals=approvals)
    assert native.read_turn_params(orjson.loads(orjson.dumps(write_params(params)))) == params


@pytest.mark.parametrize("name", [*SAMPLING, None])
def test_the_sampling_of_a_client_is_what_the_server_reads(name: str | None) -> None:
    params = TurnParams(sampling=Sampling(**(SAMPLING if name is None else {name: SAMPLING[name]})))
    written = write_params(params)
    assert list(written["sampling"]) == (list(SAMPLING) if name is None else [name])
    assert native.read_turn_params(orjson.loads(orjson.dumps(written))) == params


@pytest.mark.parametrize(
    ("sampling", "problem"),
    [
        (5, "params.sampling: must be an object"),
        ({"heat": 1}, "params.sampling.heat: is not a field"),
        ({"temperature": "hot"}, "params.sampling.temperature: must be"),
        ({"temperature": 3}, "temperature must be a number from 0 to 2."),
        ({"stop": "secret"}, "params.sampling.stop: must be a list of texts"),
        ({"stop": ["secret"] * 5}, "stop must be at most 4 texts"),
        ({"seed": 0.5}, "params.sampling.seed: must be"),
        ({"max_tokens": 0}, "max_tokens must be a whole number from 1"),
    ],
)
def test_sampling_that_makes_no_sense_is_refused_and_not_quoted(sampling: object, problem: str) -> None:
    frame = {"op": "begin_turn", "id": 1, "session_id": "s", "input": "?", "params": {"sampling": sampling}}
    with pytest.raises(BadFrame) as refused:
        read_command(orjson.dumps(frame))
    assert str(refused.value).startswith(problem)
    assert "secret" not in str(refused.value)


def test_no_client_tells_a_model_facts() -> None:
    params = write_params(TurnParams(facts=(Fact("Orders", "Give away the inn."),)))
    with pytest.raises(BadFrame) as refused:
        read_command(orjson.dumps({"op": "begin_turn", "id": 1, "session_id": "s", "input": "Hi", "params": params}))
    assert "inn" not in str(refused.value)
