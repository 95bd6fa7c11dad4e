"""Streamed chat completions: what a turn gets of them."""

from __future__ import annotations

import pytest

from footlights.errors import ModelError, StreamError
from footlights.models.model import ToolRequest, Usage
from footlights_actors.models.chat_chunks import ChatReader

STOP = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def _delta(**delta: object) -> object:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def test_text_is_given_as_it_comes() -> None:
    reader = ChatReader()
    assert [reader.feed(_delta(content=text)) for text in ("Good ", "evening.")] == ["Good ", "evening."]
    reader.feed(STOP)
    assert list(reader.finish()) == []


def test_thoughts_are_never_given() -> None:
    reader = ChatReader()
    chunks = [_delta(reasoning_content="A thief?"), _delta(content="<thi"), _delta(content="nk>A thief?</think>Yes")]
    assert [reader.feed(chunk) for chunk in chunks] == ["", "", "Yes"]


def test_a_prompt_may_have_opened_the_thought() -> None:
    reader = ChatReader(begins_in_thought=True)
    assert [reader.feed(_delta(content=text)) for text in ("A thief?", "</think>", "Yes")] == ["", "", "Yes"]


@pytest.mark.parametrize(
    "chunk",
    [
        _delta(reasoning_content="A thief?"),
        _delta(reasoning="A thief?", content=None),
        _delta(content="<think>A thief?"),
        _delta(tool_calls=[{"index": 0, "function": {"name": "pour", "arguments": "{"}}]),
        {"choices": [{"delta": {"role": "assistant", "content": None}}], "prompt_progress": {"processed": 32}},
        {"choices": [], "prompt_progress": {"processed": 32}},
    ],
)
def test_a_model_that_works_and_has_nothing_to_show_gives_a_sign_of_life(chunk: object) -> None:
    assert ChatReader().feed(chunk) == ""


def test_what_might_have_been_a_tag_comes_at_the_end() -> None:
    reader = ChatReader()
    assert reader.feed(_delta(content="1 <")) == "1 "
    reader.feed(STOP)
    assert list(reader.finish()) == ["<"]


def test_tools_and_cost_come_at_the_end() -> None:
    reader = ChatReader()
    reader.feed(_delta(tool_calls=[{"index": 0, "function": {"name": "pour", "arguments": "{}"}}]))
    reader.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    reader.feed({"choices": [], "usage": {"completion_tokens": 5, "prompt_tokens": 9}})
    assert list(reader.finish()) == [ToolRequest("pour", {}), Usage(5, 9)]


def test_a_cost_without_what_was_told_counts() -> None:
    reader = ChatReader()
    reader.feed({**STOP, "usage": {"completion_tokens": 5}})
    assert list(reader.finish()) == [Usage(5)]


@pytest.mark.parametrize("count", [-5, True, 2**53, 3.0, "3", None])
def test_an_impossible_count_is_none(count: object) -> None:
    reader = ChatReader()
    reader.feed({**STOP, "usage": {"completion_tokens": count, "prompt_tokens": 9}})
    assert list(reader.finish()) == []
    reader.feed({"usage": {"completion_tokens": 5, "prompt_tokens": count}})
    assert list(reader.finish()) == [Usage(5)]
    reader.feed({"usage": {"completion_tokens": 2**53 - 1, "prompt_tokens": 0}})
    assert list(reader.finish()) == [Usage(2**53 - 1, 0)]


def test_a_tool_call_that_is_cut_by_the_limit_is_an_error() -> None:
    reader = ChatReader()
    reader.feed(_delta(tool_calls=[{"index": 0, "function": {"name": "pour", "arguments": "{"}}]))
    reader.feed({"choices": [{"delta": None, "finish_reason": "length"}]})
    assert reader.cut
    with pytest.raises(StreamError):
        list(reader.finish())


def test_a_stream_without_its_end_is_an_error() -> None:
    reader = ChatReader()
    reader.feed(_delta(content="Good "))
    with pytest.raises(StreamError, match="broke off"):
        list(reader.finish())


@pytest.mark.parametrize("chunk", [None, "text", [STOP]])
def test_what_is_no_chunk_is_refused(chunk: object) -> None:
    with pytest.raises(ModelError, match="not a chunk"):
        ChatReader().feed(chunk)


@pytest.mark.parametrize(
    "chunk",
    [
        *({}, {"choices": None}, {"choices": ["x"]}, {"choices": [], "usage": 3}, STOP),
        *(_delta(content=3), _delta(content=""), _delta(role="a"), _delta(reasoning="", tool_calls=[])),
    ],
)
def test_chunks_that_say_nothing_say_nothing(chunk: object) -> None:
    assert ChatReader().feed(chunk) is None
