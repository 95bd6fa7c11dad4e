"""Tool calls that are held to a JSON Schema while they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights.errors import ModelError, StreamError
from footlights.models.model import Prompt, ToolOffer, ToolRequest
from footlights_actors.models.local.constrained_call import call_schema, read_call, with_tools_told

if TYPE_CHECKING:
    from footlights.events import JsonValue

DRINKS: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"drink": {"enum": ["ale", "mead"]}},
    "required": ["drink"],
}
PROMPT = Prompt("A mead!", tools=(ToolOffer("pour", "Pour a drink.", DRINKS), ToolOffer("bow", "Bow.")))


def test_the_schema_allows_one_call_to_one_of_the_tools() -> None:
    pour, bow = call_schema(PROMPT)["anyOf"]
    assert pour["properties"] == {"name": {"const": "pour"}, "arguments": DRINKS}
    assert bow["properties"] == {"name": {"const": "bow"}, "arguments": {"type": "object"}}
    assert pour["required"] == bow["required"] == ["name", "arguments"]


def test_the_prompt_describes_the_tools_in_words() -> None:
    told = with_tools_told(PROMPT)
    assert told.tools == ()
    assert told.system.startswith("Answer with the name")
    assert '"pour"' in told.system
    assert "Bow." in told.system


def test_the_persona_stays_first() -> None:
    told = with_tools_told(Prompt("A mead!", system="You keep an inn.", tools=PROMPT.tools))
    assert told.system.startswith("You keep an inn.\n\nAnswer")


def test_the_answer_is_the_call() -> None:
    assert read_call('{"name": "pour", "arguments": {"drink": "ale"}}', cut=False) == ToolRequest(
        "pour", {"drink": "ale"}
    )


@pytest.mark.parametrize(
    "answer", ["", "I pour.", "{", '{"name": "pour"}', '{"name": 3, "arguments": {}}', "[" * 100_000]
)
def test_any_other_answer_is_an_error_that_does_not_quote_it(answer: str) -> None:
    with pytest.raises(ModelError, match="is not the required tool call") as caught:
        read_call(answer, cut=False)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    with pytest.raises(StreamError, match="cut off"):
        read_call(answer, cut=True)
