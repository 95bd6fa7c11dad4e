"""Each law catches a bug that was planted into the runtime: the laws are not decoration.

A plant is one small mistake in one place. `json` is the only law without one: it is about files, and the
runtime writes none here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import trio
import trio.testing
from attrs import evolve, frozen

from footlights import (
    CommitFinal,
    CommitOutcome,
    DeliveryClass,
    EventType,
    Ext,
    InteractionContext,
    Issue,
    Limits,
    ModelLoading,
    ModelReady,
    Persona,
    RateLimitError,
    SeqRange,
    Stage,
    StreamEvent,
    TokenDelta,
    Tool,
    ToolCallResult,
    ToolContext,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    WarmState,
    draft_event,
    laws,
    open_stage,
)
from footlights.failure_texts import known
from footlights.stream import catch_up
from footlights.stream.fast_path import NONE
from footlights.stream.lane import Entry, Lane
from footlights.stream.outbox import Outbox
from footlights.stream.replay import Replay
from footlights.turn import lifecycle
from footlights.turn import turn as turn_module
from footlights.turn.lifecycle import Lifecycle, Step, TurnState
from footlights.turn.turn import Turn
from footlights_actors import Call, Fail, Line, Say, ScriptedModel, standard_cast
from footlights_kit.trio_hooks import scheduled_by

if TYPE_CHECKING:
    from footlights import InteractionSession, Prompt
    from footlights.events import JsonValue
    from footlights.testing.witness import Witness


# -- shows: what is performed while the bug is in


async def rent(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    await trio.sleep(0.1)
    return None


def script(prompt: Prompt) -> list[Line]:
    return [Say("Good evening, traveller."), Call("rent"), Call("rent")] if not prompt.exchanges else [Say(" Done.")]


class Marked:
    async def run(self, context: InteractionContext) -> None:
        ext: JsonValue = {"namespace": "ext.acme.moods", "data": {"mood": "merry"}}
        context.emit_event(draft_event("token_delta", {"delta": "Hm.", "ext": ext}))


async def talk(stage: Stage) -> None:
    session = stage.start()
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("A room?")
        with trio.move_on_after(60):
            async for _ in stream.until_commit(turn_id):
                pass


async def talk_twice(stage: Stage) -> None:
    session = stage.start()
    async with session.subscribe() as stream:
        for said in ("A room?", "And breakfast?"):
            turn_id = session.begin_turn(said)
            with trio.move_on_after(60):
                async for _ in stream.until_commit(turn_id):
                    pass


async def interrupt(stage: Stage) -> None:
    session = stage.start()
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("A room?")
        async for event in stream.until_commit(turn_id):
            if event.event_type is EventType.TOKEN_DELTA and event.seq > 7:
                session.heard(turn_id, event.seq)
                session.cancel(turn_id)


async def interrupt_a_tool(stage: Stage) -> None:
    session = stage.start()
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("A room?")
        async for event in stream.until_commit(turn_id):
            if event.event_type is EventType.TOOL_CALL_STARTED:
                session.cancel(turn_id)


async def read_late(stage: Stage) -> None:
    session = stage.start()
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("A room?")
        await session.finalize(turn_id).wait()
        await session.close()
        async for _ in stream:
            pass


async def come_back(stage: Stage) -> None:
    """To a turn of which only the ledger knows."""
    session = stage.start()
    turn_id = session.begin_turn("A room?")
    await session.finalize(turn_id).wait()
    await ask_until_forgotten(session, turn_id)


async def come_back_after_a_cancel(stage: Stage) -> None:
    session = stage.start()
    turn_id = session.begin_turn("A room?")
    await trio.lowlevel.checkpoint()
    session.cancel(turn_id)
    await session.finalize(turn_id).wait()
    await ask_until_forgotten(session, turn_id)


async def fall_back(stage: Stage) -> None:
    session = stage.start()
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("A room?", TurnParams(persona="unlucky"))
        with trio.move_on_after(60):
            async for _ in stream.until_commit(turn_id):
                pass


async def ask_until_forgotten(session: InteractionSession, turn_id: str) -> None:
    await session.finalize(session.begin_turn("And breakfast?")).wait()
    async with session.subscribe(after={turn_id: -1}) as stream:
        async for _ in stream.until_commit(turn_id):
            pass


async def say_marked(stage: Stage) -> None:
    session = stage.start()
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("A room?", TurnParams(workload="marked"))
        async for _ in stream.until_commit(turn_id):
            pass


Show: TypeAlias = Callable[[Stage], Awaitable[None]]


async def perform(show: Show, *, hot: bool = False) -> None:
    model = ScriptedModel(
        script, pace=0.01, warm_state=WarmState.HOT if hot else WarmState.COLD, load_seconds=0.1, load_steps=2
    )
    limited = ScriptedModel(lambda _: [Fail(RateLimitError())], model_id="limited")
    cast = standard_cast(
        model,
        limited,
        tools=[Tool(name="rent", run=rent)],
        workloads={"marked": Marked()},
        personas={"lucky": Persona(), "unlucky": Persona(models=["limited", "scripted"])},
    )
    limits = Limits(
        best_effort_max_events_per_turn=2, bounded_max_events_per_turn=4, replay_turns=1, shutdown_deadline=1.0
    )
    async with open_stage(cast, limits=limits, wall_clock=trio.current_time) as stage:
        await show(stage)


# -- plants

Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]


def delivering(change: Callable[[StreamEvent], Iterable[StreamEvent]]) -> Plant:
    """A bug between the turn and its subscribers: other events are queued than were emitted."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        put = Outbox.put

        def planted(self: Outbox, entry: Entry, replay: Replay, now: float) -> None:
            for event in change(entry.event):
                put(self, Entry(event, entry.delivery, entry.size), replay, now)

        def planted_delta(self: Outbox, replay: Replay, size: int, now: float) -> None:
            """Whatever it will be: only the turn knows, and it says so when it keeps it."""
            queued.append((self, size, now))
            replay.fast_path.until_seq = NONE

        def planted_append(self: Replay, delta: str, size: int, said_at: float, wall_ts: float) -> None:
            ids = ("1.0", self.session_id, self.turn_id)
            payload = TokenDelta(delta, self.text_length)
            event = StreamEvent(*ids, self.next_seq, int(said_at * 1000), EventType.TOKEN_DELTA, payload, wall_ts)
            while queued:
                outbox, size, now = queued.pop(0)
                planted(outbox, Entry(event, DeliveryClass.BEST_EFFORT, size), self, now)
            append_delta(self, delta, size, said_at, wall_ts)

        queued: list[tuple[Outbox, int, float]] = []
        append_delta = Replay.append_delta
        monkeypatch.setattr(Outbox, "put", planted)
        monkeypatch.setattr(Outbox, "put_delta", planted_delta)
        monkeypatch.setattr(Replay, "append_delta", planted_append)

    return plant


def saying(event: StreamEvent, **fields: Any) -> StreamEvent:
    return evolve(event, payload=evolve(event.payload, **fields))


def altering(kind: EventType, **fields: Any) -> Plant:
    """A payload that says something else."""
    return delivering(lambda event: [saying(event, **fields) if event.event_type is kind else event])


def twice(kind: EventType) -> Plant:
    def change(event: StreamEvent) -> Iterator[StreamEvent]:
        yield event
        if event.event_type is kind:
            yield evolve(event, seq=event.seq + 1)

    return delivering(change)


def never(kind: EventType) -> Plant:
    """An event that the lifecycle takes and nobody sees: the ones behind it move up."""
    missing: dict[str, int] = {}

    def change(event: StreamEvent) -> Iterator[StreamEvent]:
        if event.event_type is kind:
            missing[event.turn_id] = missing.get(event.turn_id, 0) + 1
        else:
            yield evolve(event, seq=event.seq - missing.get(event.turn_id, 0))

    return delivering(change)


def followed(kind: EventType, by: StreamEvent) -> Plant:
    def change(event: StreamEvent) -> Iterator[StreamEvent]:
        yield event
        if event.event_type is kind:
            yield evolve(by, session_id=event.session_id, turn_id=event.turn_id, seq=event.seq + 1)

    return delivering(change)


def replacing(owner: object, name: str, replacement: object) -> Plant:
    return lambda monkeypatch: monkeypatch.setattr(owner, name, replacement)


def declaring(missing: Callable[[SeqRange], tuple[SeqRange, ...]]) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        take = Lane.take

        def planted(self: Lane) -> StreamEvent:
            event = take(self)
            declared = event.payload.dropped_seq_ranges
            return saying(event, dropped_seq_ranges=missing(declared[0])) if declared else event

        monkeypatch.setattr(Lane, "take", planted)

    return plant


def settling(change: Callable[[CommitFinal], CommitFinal]) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        settle = Turn.settle
        monkeypatch.setattr(Turn, "settle", lambda self, commit, times: settle(self, change(commit), times))

    return plant


def telling_the_commit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rebuilt_events = catch_up.rebuilt_events

    def planted(session_id: str, turn_id: str, commit: CommitFinal | None, **rest: Any) -> list[StreamEvent]:
        return rebuilt_events(session_id, turn_id, commit, **{**rest, "terminal_seen": True})

    monkeypatch.setattr(catch_up, "rebuilt_events", planted)


def seqs_from(first: int) -> Plant:
    return delivering(lambda event: [evolve(event, seq=event.seq + first)])


def misplacing_deltas(event: StreamEvent) -> Iterator[StreamEvent]:
    payload = event.payload
    yield saying(event, offset=payload.offset + 1) if isinstance(payload, TokenDelta) else event


def losing_the_acceptance(monkeypatch: pytest.MonkeyPatch) -> None:
    put = Lane.put
    monkeypatch.setattr(
        Lane, "put", lambda self, entry: entry.event.event_type is not EventType.TURN_ACCEPTED and put(self, entry)
    )


def reusing_call_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(event: StreamEvent) -> Iterator[StreamEvent]:
        if event.event_type in (EventType.TOOL_CALL_STARTED, EventType.TOOL_CALL_RESULT):
            event = saying(event, tool_call_id="call-1")
        yield event

    delivering(change)(monkeypatch)


def all_turns_named_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Outbox.take

    def planted(self: Outbox) -> StreamEvent | None:
        event = take(self)
        return event and evolve(event, turn_id="t1-000001")

    monkeypatch.setattr(Outbox, "take", planted)


def forgetting_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(self: Turn, payload: ToolCallResult, staged: object = ()) -> None:
        self.lifecycle.end_tool(payload.tool_call_id, payload.tool_name)

    monkeypatch.setattr(Turn, "end_tool", planted)


def finishing_instead_of_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turn, "stop", lambda self, reason, detail=None, error=None: self.finish())


def falling_back_in_mid_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table lets a model be replaced whenever it fails."""
    failing = ScriptedModel(lambda _: [Say("Hm."), Fail(RateLimitError())], model_id="limited")
    monkeypatch.setattr(ScriptedModel, "generate", _generating(failing))
    monkeypatch.setitem(lifecycle._TABLE[TurnState.PERFORMING], Step.MODEL_FALLBACK, TurnState.SELECTED)


def _generating(failing: ScriptedModel) -> Callable[[ScriptedModel, Prompt], Any]:
    generate = ScriptedModel.generate

    def planted(self: ScriptedModel, prompt: Prompt) -> Any:
        return generate(failing if self.model_id == "limited" else self, prompt)

    return planted


def reasons_for_cancels(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Turn.stop
    monkeypatch.setattr(Turn, "stop", lambda self, reason, *_: stop(self, reason, None, known("model_error")))


def clock_runs_back(event: StreamEvent) -> Iterator[StreamEvent]:
    yield evolve(event, mono_ts_ms=1_000_000 - event.mono_ts_ms)


def progress_runs_back(event: StreamEvent) -> Iterator[StreamEvent]:
    payload = event.payload
    if isinstance(payload, ModelLoading) and payload.progress is not None:
        event = evolve(event, payload=evolve(payload, progress=1.0 - payload.progress / 2))
    yield event


def load_of_a_hot_model(event: StreamEvent) -> Iterator[StreamEvent]:
    if isinstance(event.payload, ModelReady):
        event = evolve(event, payload=evolve(event.payload, load_ms=7))
    yield event


A_DELTA = StreamEvent("1.0", "", "", 0, 10**9, EventType.TOKEN_DELTA, TokenDelta("x", 0))


@frozen
class Case:
    law: str
    show: Show
    plant: Plant
    hot: bool = False


CASES = [
    Case("envelope", talk, replacing(turn_module, "SCHEMA_V", "0.9")),
    Case("payload", talk, altering(EventType.MODEL_LOADING, progress=1.5)),
    Case("ext", say_marked, altering(EventType.TOKEN_DELTA, ext=Ext("acme.moods", None))),
    Case("authority_label", talk, altering(EventType.TURN_FINAL, authoritative=True)),
    Case("seq_first", talk, seqs_from(1)),
    Case("seq_increasing", talk, delivering(lambda event: [event, event])),
    Case("seq_gap", read_late, declaring(lambda gap: ())),
    Case("range_form", read_late, declaring(lambda gap: (SeqRange(gap.end_seq, gap.start_seq - 1),))),
    Case("range_exact", read_late, declaring(lambda gap: (SeqRange(gap.start_seq, gap.end_seq + 1),))),
    Case("range_must_deliver", talk, losing_the_acceptance),
    Case("restart_seq", talk, seqs_from(1_000_000_000)),
    Case("mono_order", talk, delivering(clock_runs_back)),
    Case("turn_unique", talk_twice, all_turns_named_alike),
    Case("accepted_first", talk, never(EventType.TURN_ACCEPTED)),
    Case("accepted_once", talk, twice(EventType.TURN_ACCEPTED)),
    Case("one_terminal", talk, twice(EventType.TURN_FINAL)),
    Case("one_terminal", come_back, telling_the_commit_alone),
    Case("terminal_silence", talk, followed(EventType.TURN_FINAL, A_DELTA)),
    Case("one_commit", read_late, never(EventType.COMMIT_FINAL)),
    Case("commit_silence", read_late, followed(EventType.COMMIT_FINAL, A_DELTA)),
    Case("commit_digest", talk, settling(lambda commit: evolve(commit, commit_digest="0xBEEF"))),
    Case("commit_issues", talk, settling(lambda commit: evolve(commit, issues=(Issue("why", "Because."),)))),
    Case(
        "commit_interrupted",
        interrupt,
        settling(lambda commit: evolve(commit, commit_outcome=CommitOutcome.OK, issues=())),
    ),
    Case("commit_interrupted", come_back_after_a_cancel, replacing(catch_up, "interrupted_by", lambda issues: None)),
    Case("cancel_wins", interrupt, finishing_instead_of_stopping),
    Case("token_offset", talk, delivering(misplacing_deltas)),
    Case("final_text", talk, replacing(turn_module, "TurnFinal", lambda text, *_, **__: TurnFinal(text[:-1]))),
    Case("text_forgotten", talk, altering(EventType.TURN_FINAL, text="", text_forgotten=True)),
    Case("text_forgotten", come_back, replacing(catch_up, "TurnFinal", lambda text, **_: TurnFinal(text))),
    Case(
        "text_forgotten",
        come_back_after_a_cancel,
        replacing(catch_up, "TurnInterrupted", lambda reason, **_: TurnInterrupted(reason)),
    ),
    Case("text_forgotten", interrupt, altering(EventType.TURN_INTERRUPTED, text_forgotten=True)),
    Case("heard", interrupt, replacing(Replay, "text_until", lambda self, seq: self.text[::-1])),
    Case("tool_unique", talk, reusing_call_ids),
    Case("tool_partner", talk, altering(EventType.TOOL_CALL_RESULT, tool_name="sell")),
    Case("tool_once", talk, twice(EventType.TOOL_CALL_RESULT)),
    Case("tool_open", talk, forgetting_results),
    Case(
        "tool_canceled",
        interrupt_a_tool,
        altering(EventType.TOOL_CALL_RESULT, side_effects_may_have_occurred=None),
    ),
    Case("model_order", talk, never(EventType.MODEL_SELECTED)),
    Case("model_shown", talk, never(EventType.MODEL_LOADING)),
    Case("model_hot", talk, delivering(load_of_a_hot_model), hot=True),
    Case("model_progress", talk, delivering(progress_runs_back)),
    Case("model_fallback", fall_back, altering(EventType.MODEL_SELECTED, reason="fallback", error=None)),
    Case("model_fallback", fall_back, altering(EventType.MODEL_SELECTED, model_id="limited")),
    Case("model_fallback", fall_back, falling_back_in_mid_sentence),
    Case("failure_said", interrupt, reasons_for_cancels),
]


@pytest.mark.shows("core-7", "core-19", "core-40", "core-43")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.law)
def test_the_law_catches_the_bug(case: Case, monkeypatch: pytest.MonkeyPatch, footlights_witness: Witness) -> None:
    footlights_witness.tolerated = True
    case.plant(monkeypatch)
    with scheduled_by(0):
        trio.run(perform_case, case, clock=trio.testing.MockClock(autojump_threshold=0))
    footlights_witness.close()
    assert case.law in {violation.law for violation in footlights_witness.violations}


async def perform_case(case: Case) -> None:
    await perform(case.show, hot=case.hot)


SHOWS = [
    talk,
    talk_twice,
    interrupt,
    interrupt_a_tool,
    read_late,
    come_back,
    come_back_after_a_cancel,
    say_marked,
    fall_back,
]


@pytest.mark.parametrize("show", SHOWS)
def test_without_a_bug_every_show_is_lawful(show: Show, footlights_witness: Witness) -> None:
    trio.run(perform, show, clock=trio.testing.MockClock(autojump_threshold=0))
    assert footlights_witness.judged >= 1
    assert footlights_witness.violations == []


def test_every_law_has_a_plant() -> None:
    assert {case.law for case in CASES} == set(laws.LAWS) - {"json"}


def test_a_lifecycle_that_lets_everything_through_is_caught(
    monkeypatch: pytest.MonkeyPatch, footlights_witness: Witness
) -> None:
    """The laws do not lean on the lifecycle table: with the table gone they still see what it would forbid."""
    footlights_witness.tolerated = True
    monkeypatch.setattr(Lifecycle, "advance", lambda self, step: None)
    monkeypatch.setattr(Lifecycle, "may", lambda self, step: True)
    turn = TurnFinal("")

    class Forging:
        async def run(self, context: InteractionContext) -> None:
            context._turn._step(Step.TURN_FINAL, turn)
            context._turn.say("More.")

    async def forge() -> None:
        cast = standard_cast(workloads={"forging": Forging()})
        with trio.move_on_after(5):
            async with open_stage(cast, limits=Limits(shutdown_deadline=0.5)) as stage:
                session = stage.start()
                async with session.subscribe() as stream:
                    session.begin_turn("A room?", TurnParams(workload="forging"))
                    with trio.move_on_after(1):
                        async for _ in stream:
                            pass

    trio.run(forge, clock=trio.testing.MockClock(autojump_threshold=0))
    footlights_witness.close()
    assert "terminal_silence" in {violation.law for violation in footlights_witness.violations}
