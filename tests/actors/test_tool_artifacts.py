"""Artifact notes of a tool: they are part of its result, are bounded, and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    ArtifactNote,
    CommitFinal,
    CommitOutcome,
    Ext,
    Limits,
    SideEffects,
    StreamEvent,
    Tool,
    ToolCallResult,
    ToolCallStarted,
    ToolContext,
    ToolReturn,
    TurnInterrupted,
    laws,
    open_stage,
    wire,
)
from footlights.testing import only, payloads, take_turn
from footlights.tools.artifact_notes import MAX_NOTES, artifacts_ext, summary_of
from footlights.wire.trace import encode_trace, from_trace, to_trace
from footlights_actors import Call, Line, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio.testing import MockClock

    from footlights import Cast, Prompt
    from footlights.events import JsonValue

READ = ArtifactNote("document", "notes/one.md")
MADE = ArtifactNote("table.v1", "blake3:00", "One table.")


def returning(answer: ToolReturn, seconds: float = 0) -> Cast:
    """A cast whose tool answers so, and whose model then tells whether it was an error."""

    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
        await trio.sleep(seconds)
        return answer

    def script(prompt: Prompt) -> Sequence[Line]:
        return [Say(prompt.exchanges[0].error or "Well.")] if prompt.exchanges else [Call("look")]

    return standard_cast(
        ScriptedModel(script), tools=[Tool(name="look", run=run, cancel_safe=True, side_effects=SideEffects.NONE)]
    )


async def played(answer: ToolReturn, limits: Limits | None = None) -> list[StreamEvent]:
    async with open_stage(returning(answer), limits=limits) as stage:
        return await take_turn(stage.start(), "Look.")


async def refusal(answer: ToolReturn, limits: Limits | None = None) -> str:
    events = await played(answer, limits)
    result = only(events, ToolCallResult)
    assert result.error is not None
    assert (result.error.code, result.ext, result.summary) == ("tool_error", None, None)
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.OK, "the model is told, and the turn goes on"
    return result.error.message


async def test_what_a_tool_read_and_made_stands_with_its_result() -> None:
    events = await played(ToolReturn(1, "Looked.", reads=[READ], generates=[MADE]))
    assert only(events, ToolCallResult).ext == Ext(
        "ext.footlights.artifacts",
        {
            "read": [{"kind": "document", "identifier": "notes/one.md"}],
            "generated": [{"kind": "table.v1", "identifier": "blake3:00", "summary": "One table."}],
        },
    )
    assert only(events, ToolCallResult).summary == "Looked."


async def test_a_tool_that_tells_of_nothing_leaves_nothing() -> None:
    assert only(await played(ToolReturn(1)), ToolCallResult).ext is None


async def test_a_note_makes_no_artifact() -> None:
    assert only(await played(ToolReturn(1, generates=[MADE])), CommitFinal).artifact_refs == ()


async def test_notes_cross_the_wire_and_stay_out_of_traces() -> None:
    events = await played(ToolReturn(1, reads=[READ], generates=[MADE]))
    [event] = [each for each in events if isinstance(each.payload, ToolCallResult)]
    assert wire.decode(wire.encode(event)) == event
    assert b"one.md" not in encode_trace(event)
    assert laws.check([wire.from_wire(from_trace(to_trace(each))) for each in events]) == []


async def test_a_summary_of_a_note_is_cut_and_printable() -> None:
    events = await played(ToolReturn(1, generates=[ArtifactNote("table", "t", "\ud800" + 600 * "é")]))
    assert only(events, ToolCallResult).ext == artifacts_ext([], [ArtifactNote("table", "t", "?" + 498 * "é" + "…")])


@pytest.mark.parametrize(
    ("said", "stands"),
    [
        (500 * "x", 500 * "x"),
        ("It is " + 600 * "x", "It is …"),
        (240 * "a " + 'password="hunter2 and more"', 240 * "a " + 'password="hunter2 …'),
        (600 * "x", "…"),
    ],
)
def test_a_summary_is_cut_between_words_so_that_no_half_of_a_secret_stays(said: str, stands: str) -> None:
    assert summary_of(said) == stands


@pytest.mark.parametrize(
    ("note", "why"),
    [
        (ArtifactNote("Document", "a"), "kind"),
        (ArtifactNote("", "a"), "kind"),
        (ArtifactNote("document", ""), "identifier of 1 to 256"),
        (ArtifactNote("document", 257 * "x"), "identifier of 1 to 256"),
        (ArtifactNote("document", "\ud800"), "surrogates"),
        (ArtifactNote("document", 3), "a string"),  # type: ignore[arg-type]
        (ArtifactNote("document", "\x1b[31m"), "control characters"),
        (ArtifactNote("document", "one.md\n"), "control characters"),
        (ArtifactNote("document", "one.md", None), "a summary that is a string"),  # type: ignore[arg-type]
        ("a.md", "each be an ArtifactNote"),
    ],
)
@pytest.mark.parametrize("side", ["reads", "generates"])
async def test_a_note_that_cannot_stand_in_the_stream_is_an_error_of_the_tool(
    side: str, note: ArtifactNote, why: str
) -> None:
    message = await refusal(ToolReturn(1, "Looked.", **{side: [note]}))
    assert why in message


async def test_there_are_only_so_many_notes() -> None:
    notes = [ArtifactNote("document", str(number)) for number in range(MAX_NOTES)]
    most = only(await played(ToolReturn(1, reads=notes[1:], generates=notes[:1])), ToolCallResult)
    assert most.ext == artifacts_ext(notes[1:], notes[:1])
    assert "no more than 64" in await refusal(ToolReturn(1, reads=notes, generates=notes[:1]))


@pytest.mark.parametrize("notes", [0, 1, 5])
async def test_a_result_with_its_summary_and_its_notes_is_no_larger_than_an_event(notes: int) -> None:
    answer = ToolReturn(1, 100 * "\u20ac", generates=notes * [ArtifactNote("document", "a", 400 * "\u20ac")])
    size = wire.payload_size(only(await played(answer), ToolCallResult))
    assert only(await played(answer, Limits(max_event_bytes=size)), ToolCallResult).error is None
    assert "too large" in await refusal(answer, Limits(max_event_bytes=size - 1))


async def test_a_summary_that_is_no_text_is_an_error_of_the_tool() -> None:
    assert await refusal(ToolReturn(1, 5)) == "The tool's summary is not text."  # type: ignore[arg-type]


async def test_a_call_that_was_canceled_tells_of_nothing(quiet_clock: MockClock) -> None:
    async with (
        open_stage(returning(ToolReturn(1, reads=[READ], generates=[MADE]), seconds=1)) as stage,
        (session := stage.start()).subscribe() as stream,
    ):
        turn_id = session.begin_turn("Look.")
        events: list[StreamEvent] = []
        async for event in stream.until_commit(turn_id):
            events.append(event)
            if isinstance(event.payload, ToolCallStarted):
                session.cancel(turn_id)
    assert payloads(events, TurnInterrupted)
    assert only(events, ToolCallResult).ext is None
