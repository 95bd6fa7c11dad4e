"""Prompts as chat messages, and streamed tool calls as requests."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights.errors import ModelError, StreamError
from footlights.models.model import Prompt, ToolExchange, ToolOffer, ToolRequest, ToolRound
from footlights_actors.models.chat_format import MAX_ARGUMENT_CHARS, MAX_CALLS, ToolCallAssembler, messages, tools

if TYPE_CHECKING:
    from footlights.events import JsonValue

BOOK = ToolRequest("book_room", {"nights": 2, "guest": "Zoë"})
POUR = ToolRequest("pour", {})


def test_a_bare_prompt_is_one_message() -> None:
    assert messages(Prompt("A room?")) == [{"role": "user", "content": "A room?"}]


def test_the_persona_comes_first() -> None:
    assert messages(Prompt("A room?", system="You keep an inn.")) == [
        {"role": "system", "content": "You keep an inn."},
        {"role": "user", "content": "A room?"},
    ]


def test_rounds_tie_each_answer_to_its_call() -> None:
    first = ToolRound("Let me see.", (ToolExchange(BOOK, {"room": 4}), ToolExchange(POUR, None, "No ale left.")))
    second = ToolRound("", (ToolExchange(POUR, "mead"),))
    told = messages(Prompt("A room?", rounds=(first, second)))
    assert [message["role"] for message in told] == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    assert told[1]["content"] == "Let me see."
    assert told[4]["content"] is None
    calls = [*told[1]["tool_calls"], *told[4]["tool_calls"]]
    assert [call["function"]["name"] for call in calls] == ["book_room", "pour", "pour"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"nights": 2, "guest": "Zoë"}
    answers = [message for message in told if message["role"] == "tool"]
    assert [answer["tool_call_id"] for answer in answers] == [call["id"] for call in calls]
    assert len({call["id"] for call in calls}) == 3
    assert [json.loads(answer["content"]) for answer in answers] == [{"room": 4}, {"error": "No ale left."}, "mead"]


def test_tools_are_offered_with_their_schema() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"nights": {"type": "integer"}}}
    prompt = Prompt("A room?", tools=(ToolOffer("book_room", "Book a room.", schema),))
    assert tools(prompt) == [
        {
            "type": "function",
            "function": {"name": "book_room", "description": "Book a room.", "parameters": schema},
        }
    ]
    assert tools(Prompt("A room?")) == []


def _fragment(index: int | None, name: str | None, arguments: str | None, call_id: str | None = None) -> object:
    function = {"name": name, "arguments": arguments}
    given = {"index": index, "id": call_id, "function": {key: value for key, value in function.items() if value}}
    return {key: value for key, value in given.items() if value is not None}


@given(st.lists(st.integers(0, 40)))
def test_arguments_may_be_cut_anywhere(cuts: list[int]) -> None:
    text = json.dumps(dict(BOOK.arguments))
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    assembler = ToolCallAssembler()
    assembler.feed([_fragment(0, "book_room", None, "a")])
    for begin, end in itertools.pairwise(places):
        assembler.feed([_fragment(0, None, text[begin:end])])
    assert assembler.finish() == (BOOK,)


def test_calls_are_told_apart_by_their_index() -> None:
    assembler = ToolCallAssembler()
    assembler.feed([_fragment(0, "book_room", '{"nights": 2, '), _fragment(1, "pour", "{")])
    assembler.feed([_fragment(1, None, "}"), _fragment(0, None, '"guest": "Zoë"}')])
    assert assembler.finish() == (BOOK, POUR)


def test_without_an_index_a_name_begins_a_call() -> None:
    assembler = ToolCallAssembler()
    assembler.feed([_fragment(None, "book_room", '{"nights": 2, ')])
    assembler.feed([_fragment(None, None, '"guest": "Zoë"}')])
    assembler.feed([_fragment(None, "pour", "{}")])
    assert assembler.finish() == (BOOK, POUR)


def test_a_second_id_at_the_same_index_is_a_new_call() -> None:
    assembler = ToolCallAssembler()
    assembler.feed([_fragment(0, "pour", "{}", "a")])
    assembler.feed([_fragment(0, "pour", "{}", "b")])
    assert assembler.finish() == (POUR, POUR)


def test_an_id_that_is_repeated_is_the_same_call() -> None:
    assembler = ToolCallAssembler()
    assembler.feed([_fragment(0, "pour", "{", "a")])
    assembler.feed([_fragment(0, "pour", "}", "a")])
    assert assembler.finish() == (POUR,)


NO_OBJECTS = [
    *('{"nights": 365', "{", "[]", "[365]", "3", '"365"', "null", "nonsense", " ", '{"nights": 2}{}', "{} x"),
    "[" * 100_000,
]


@pytest.mark.parametrize("arguments", NO_OBJECTS)
def test_arguments_that_are_no_object_are_a_problem_and_not_none_at_all(arguments: str) -> None:
    assembler = ToolCallAssembler()
    assembler.feed([_fragment(0, "pour", arguments)])
    assert assembler.finish() == (ToolRequest("pour", {}, "The arguments are not a JSON object."),)


@pytest.mark.parametrize("function", [{}, {"arguments": ""}, {"arguments": None}])
def test_a_call_without_any_arguments_has_none(function: dict[str, object]) -> None:
    assembler = ToolCallAssembler()
    assembler.feed([{"index": 0, "function": {"name": "pour", **function}}])
    assert assembler.finish() == (POUR,)


def test_arguments_may_come_as_an_object_instead_of_its_text() -> None:
    assembler = ToolCallAssembler()
    assembler.feed([{"index": 0, "function": {"name": "book_room", "arguments": dict(BOOK.arguments)}}])
    assert assembler.finish() == (BOOK,)


@pytest.mark.parametrize("arguments", [[], [365], 365, False])
def test_arguments_that_come_as_something_else_are_a_problem(arguments: object) -> None:
    assembler = ToolCallAssembler()
    assembler.feed([{"index": 0, "function": {"name": "pour", "arguments": arguments}}])
    assert assembler.finish() == (ToolRequest("pour", {}, "The arguments are not a JSON object."),)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("arguments", ['{"dri', ""])
def test_arguments_that_were_cut_off_are_an_error(arguments: str) -> None:
    assembler = ToolCallAssembler()
    assembler.feed([_fragment(0, "pour", arguments)])
    with pytest.raises(StreamError, match="cut off"):
        assembler.finish(cut=True)


def test_whole_arguments_survive_a_cut() -> None:
    assembler = ToolCallAssembler()
    assembler.feed([_fragment(0, "pour", "{}")])
    assert assembler.finish(cut=True) == (POUR,)


@pytest.mark.parametrize(
    ("fragments", "why"),
    [
        ({}, "not a list"),
        (["pour"], "no function"),
        ([{"index": 0}], "no function"),
        ([_fragment(0, None, "{}")], "no name"),
        ([{"function": {"name": 3}}], "no name"),
        ([_fragment(index, "pour", "{}") for index in range(MAX_CALLS + 1)], "too many"),
        ([_fragment(0, "pour", "x" * (MAX_ARGUMENT_CHARS + 1))], "too long"),
        ([{"function": {"name": "pour", "arguments": ["x" * MAX_ARGUMENT_CHARS]}}], "too long"),
        ([{"function": {"name": "pour", "arguments": nested(100_000)}}], "too deeply"),
    ],
)
def test_fragments_that_make_no_sense_are_refused(fragments: object, why: str) -> None:
    with pytest.raises(ModelError, match=why):
        ToolCallAssembler().feed(fragments)
