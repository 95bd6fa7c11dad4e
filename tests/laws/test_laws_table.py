"""Each law has examples that break it and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from attrs import evolve, field, frozen

from footlights import laws, wire
from footlights.events import (
    PAYLOAD_TYPES,
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    EventType,
    Heard,
    InterruptReason,
    Issue,
    ModelLoading,
    ModelReady,
    ModelSelected,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    WarmState,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE_OF = {kind: event_type for event_type, kind in PAYLOAD_TYPES.items()}
RESTART_SEQ = 1_000_000_000


def at(seq: int, payload: Payload, *dropped: tuple[int, int], turn_id: str = "t1", mono: int = 0) -> StreamEvent:
    payload = evolve(payload, dropped_seq_ranges=tuple(SeqRange(*each) for each in dropped))
    return StreamEvent(SCHEMA_V, "s1", turn_id, seq, mono, TYPE_OF[type(payload)], payload)


def turn(*payloads: Payload) -> list[StreamEvent]:
    return [at(seq, payload) for seq, payload in enumerate(payloads)]


def raw(event: StreamEvent, **changed: object) -> dict[str, Any]:
    return wire.to_wire(event) | changed


def raw_payload(event: StreamEvent, **changed: object) -> dict[str, Any]:
    fields = wire.to_wire(event)
    return fields | {"payload": fields["payload"] | changed}


def without(event: StreamEvent, *names: str) -> dict[str, Any]:
    """The event without a field; `payload.x` names one of the payload."""
    fields = wire.to_wire(event)
    for name in names:
        holder = fields["payload"] if name.startswith("payload.") else fields
        del holder[name.removeprefix("payload.")]
    return fields


def token(delta: str, offset: int) -> TokenDelta:
    return TokenDelta(delta=delta, offset=offset)


def result(call: str = "c1", tool: str = "dice") -> ToolCallResult:
    return ToolCallResult(call, tool, canceled=False)


def broken_off(heard: Heard | None = None) -> TurnInterrupted:
    return TurnInterrupted(InterruptReason.CANCELED, heard=heard)


DIGEST = "0123456789abcdef" * 4
ACCEPTED = TurnAccepted()
HI = token("hi", 0)
CALL = ToolCallStarted("c1", "dice")
SELECTED = ModelSelected("m1", "default")
LOADING = ModelLoading("m1", cold_start=True)
HOT = ModelReady("m1", WarmState.HOT, 0)
COLD = ModelReady("m1", WarmState.COLD, 900)
REFUSED_KEY = ErrorInfo("model_key_refused", "The model's server refused the key.")
FALLBACK = ModelSelected("m2", "fallback", REFUSED_KEY)
HOT_2 = ModelReady("m2", WarmState.HOT, 0)
FINAL = TurnFinal("")
HI_FINAL = TurnFinal("hi")
FORGOTTEN = TurnFinal("", text_forgotten=True)
INTERRUPTED = broken_off()
INTERRUPTED_LONG_AGO = evolve(INTERRUPTED, text_forgotten=True)
OK = CommitFinal(DIGEST, CommitOutcome.OK)
REFUSED = CommitFinal(DIGEST, CommitOutcome.FAIL_CLOSED, (Issue("rule_broken", "No."),))
DISCARDED = CommitFinal(DIGEST, CommitOutcome.FAIL_CLOSED, (Issue("turn_interrupted", "It was canceled."),))
RESTARTED = CommitFinal(DIGEST, CommitOutcome.FAIL_CLOSED, (Issue("runtime_restart", "It was lost."),))


@frozen
class Case:
    law: str
    name: str
    events: list[Any]
    after: Mapping[str, int] = field(factory=dict[str, int])
    canceled: frozenset[str] = frozenset()


def saying(spoken: object) -> list[Any]:
    """A turn that says `hi`, with this in the place of the event that says it."""
    return [at(0, ACCEPTED), spoken, at(2, HI_FINAL), at(3, OK)]


def ending(commit: object, terminal: Payload = FINAL) -> list[Any]:
    return [at(0, ACCEPTED), at(1, terminal), commit]


def recalled(terminal: Payload, commit: Payload = OK, *, seen: int = -1) -> list[Any]:
    """How a turn ended of which only a ledger knows."""
    return [at(RESTART_SEQ, terminal, (seen + 1, RESTART_SEQ - 1)), at(RESTART_SEQ + 1, commit)]


def loading(*progress: float) -> list[Payload]:
    return [ModelLoading("m1", cold_start=True, progress=each) for each in progress]


BROKEN = [
    Case("envelope", "not an object", [*turn(ACCEPTED, FINAL, OK), "words"]),
    Case("envelope", "a field is missing", saying(without(at(1, HI), "mono_ts_ms"))),
    Case("envelope", "a field has another type", saying(raw(at(1, HI), mono_ts_ms="7"))),
    Case("envelope", "a field that no envelope has", saying(raw(at(1, HI), colour="red"))),
    Case("envelope", "an event type that does not exist", saying(raw(at(1, HI), event_type="shout"))),
    Case("envelope", "another schema", saying(raw(at(1, HI), schema_v="2.0"))),
    Case("envelope", "a seq below 0", [raw(at(0, HI), seq=-1), *turn(ACCEPTED, FINAL, OK)]),
    Case("envelope", "an event whose values have other types", saying(evolve(at(1, HI), mono_ts_ms=cast(int, "7")))),
    Case("payload", "a field is missing", saying(without(at(1, HI), "payload.offset"))),
    Case("payload", "a field has another type", saying(raw_payload(at(1, HI), offset=0.0))),
    Case("payload", "a field that its type does not have", saying(raw_payload(at(1, HI), colour="red"))),
    Case("payload", "an empty delta", saying(raw_payload(at(1, HI), delta=""))),
    Case("payload", "an event with the payload of another type", saying(evolve(at(1, HI), payload=CALL))),
    Case("payload", "a commit without issues", ending(without(at(2, OK), "payload.issues"))),
    Case("payload", "a commit without artifact refs", ending(without(at(2, OK), "payload.artifact_refs"))),
    Case("ext", "a namespace of two parts", saying(raw_payload(at(1, HI), ext={"namespace": "ext.me", "data": 1}))),
    Case("ext", "no data", saying(raw_payload(at(1, HI), ext={"namespace": "ext.me.mood"}))),
    Case("authority_label", "a final that claims authority", [
        at(0, ACCEPTED), raw_payload(at(1, FINAL), authoritative=True), at(2, OK)]),
    Case("authority_label", "a commit that denies it", ending(raw_payload(at(2, OK), authoritative=False))),
    Case("authority_label", "a commit that does not say", ending(without(at(2, OK), "payload.authoritative"))),
    Case("seq_first", "a turn begins at 1", [at(1, ACCEPTED), at(2, FINAL), at(3, OK)]),
    Case("seq_increasing", "an event twice", [*turn(ACCEPTED, HI), at(1, HI), at(2, HI_FINAL), at(3, OK)]),
    Case("seq_increasing", "what the subscriber had seen", [at(1, HI), at(2, HI_FINAL), at(3, OK)], after={"t1": 1}),
    Case("seq_gap", "an event is missing", [at(0, ACCEPTED), at(2, HI), at(3, HI_FINAL), at(4, OK)]),
    Case("seq_gap", "half a gap is declared", [at(0, ACCEPTED), at(3, FINAL, (1, 1)), at(4, OK)]),
    Case("seq_gap", "a gap after resuming", [at(5, FINAL), at(6, OK)], after={"t1": 3}),
    Case("seq_gap", "a commit that does not follow", [*turn(ACCEPTED, FINAL), at(3, OK)]),
    Case("seq_gap", "a restart that declares nothing", [
        *turn(ACCEPTED), at(RESTART_SEQ, INTERRUPTED_LONG_AGO), at(RESTART_SEQ + 1, RESTARTED)]),
    Case("range_form", "a range that ends before it starts", [
        at(0, ACCEPTED), at(2, FINAL, (1, 0)), at(3, OK)]),
    Case("range_form", "ranges that overlap", [at(0, ACCEPTED), at(4, FINAL, (1, 2), (2, 3)), at(5, OK)]),
    Case("range_form", "ranges out of order", [at(0, ACCEPTED), at(4, FINAL, (3, 3), (1, 2)), at(5, OK)]),
    Case("range_exact", "what was delivered", [*turn(ACCEPTED, HI), at(2, HI_FINAL, (1, 1)), at(3, OK)]),
    Case("range_exact", "its own seq", [at(0, ACCEPTED), at(2, FINAL, (1, 2)), at(3, OK)]),
    Case("range_exact", "what is still to come", [at(0, ACCEPTED), at(1, HI, (2, 3)), at(2, HI_FINAL), at(3, OK)]),
    Case("range_exact", "what was declared before", [
        at(0, ACCEPTED), at(2, HI, (1, 1)), at(4, HI_FINAL, (1, 1), (3, 3)), at(5, OK)]),
    Case("range_exact", "what was seen before resuming", [at(3, FINAL, (1, 2)), at(4, OK)], after={"t1": 1}),
    Case("range_must_deliver", "turn_accepted", [at(2, ACCEPTED, (0, 1)), at(3, FINAL), at(4, OK)]),
    Case("range_must_deliver", "something before the commit", [*turn(ACCEPTED, FINAL), at(3, OK, (2, 2))]),
    Case("restart_seq", "a token where only a ledger speaks", [
        at(0, ACCEPTED), at(RESTART_SEQ, HI, (1, RESTART_SEQ - 1)),
        at(RESTART_SEQ + 1, INTERRUPTED_LONG_AGO), at(RESTART_SEQ + 2, RESTARTED)]),
    Case("mono_order", "a clock that runs back", [
        at(0, ACCEPTED, mono=5), at(1, FINAL, mono=4), at(2, OK, mono=5)]),
    Case("mono_order", "a clock that runs back across a restart", [
        at(0, ACCEPTED, mono=99),
        at(RESTART_SEQ, INTERRUPTED_LONG_AGO, (1, RESTART_SEQ - 1), mono=1), at(RESTART_SEQ + 1, RESTARTED, mono=2)]),
    Case("turn_unique", "a turn id again", [*turn(ACCEPTED, FINAL, OK), *turn(ACCEPTED, HI, HI_FINAL, OK)]),
    Case("accepted_first", "a token first", turn(HI, HI_FINAL, OK)),
    Case("accepted_first", "a terminal first", turn(FINAL, OK)),
    Case("accepted_first", "a commit alone", turn(OK)),
    Case("accepted_once", "accepted twice", turn(ACCEPTED, ACCEPTED, FINAL, OK)),
    Case("accepted_once", "accepted after the end", turn(ACCEPTED, FINAL, ACCEPTED, OK)),
    Case("accepted_once", "accepted after resuming", [at(1, ACCEPTED), at(2, FINAL), at(3, OK)], after={"t1": 0}),
    Case("one_terminal", "two finals", turn(ACCEPTED, FINAL, FINAL, OK)),
    Case("one_terminal", "final, then interrupted", turn(ACCEPTED, FINAL, INTERRUPTED, OK)),
    Case("one_terminal", "interrupted, then final", turn(ACCEPTED, INTERRUPTED, FINAL, DISCARDED)),
    Case("one_terminal", "a commit without one", turn(ACCEPTED, HI, OK)),
    Case("one_terminal", "a turn that never ends", turn(ACCEPTED, HI)),
    Case("one_terminal", "a ledger that tells the commit alone", [
        *turn(ACCEPTED, HI), at(RESTART_SEQ + 1, OK, (2, RESTART_SEQ))]),
    Case("one_terminal", "the same, of a turn of which nothing was seen", [at(RESTART_SEQ + 1, OK, (0, RESTART_SEQ))]),
    Case("one_terminal", "the same, of a turn that was resumed", [
        at(2, HI), at(RESTART_SEQ + 1, OK, (3, RESTART_SEQ))], after={"t1": 1}),
    Case("one_terminal", "an end that was seen is told again", [
        *turn(ACCEPTED, FINAL), *recalled(FORGOTTEN, seen=1)]),
    Case("terminal_silence", "a token after the end", turn(ACCEPTED, FINAL, HI, OK)),
    Case("terminal_silence", "a tool result after the end", turn(ACCEPTED, INTERRUPTED, result(), DISCARDED)),
    Case("one_commit", "no commit", turn(ACCEPTED, FINAL)),
    Case("commit_silence", "two commits", turn(ACCEPTED, FINAL, OK, OK)),
    Case("commit_silence", "a token after the commit", turn(ACCEPTED, FINAL, OK, HI)),
    Case("commit_digest", "too short", ending(at(2, evolve(OK, commit_digest=DIGEST[1:])))),
    Case("commit_digest", "upper case", ending(at(2, evolve(OK, commit_digest=DIGEST.upper())))),
    Case("commit_digest", "a line break after it", ending(at(2, evolve(OK, commit_digest=DIGEST + "\n")))),
    Case("commit_issues", "ok with issues", ending(at(2, evolve(REFUSED, commit_outcome=CommitOutcome.OK)))),
    Case("commit_issues", "failed without any", ending(at(2, evolve(OK, commit_outcome=CommitOutcome.FAIL_CLOSED)))),
    Case("commit_interrupted", "ok", ending(at(2, OK), INTERRUPTED)),
    Case("commit_interrupted", "another issue", ending(at(2, REFUSED), INTERRUPTED)),
    Case("commit_interrupted", "a turn that was not", ending(at(2, DISCARDED))),
    Case("commit_interrupted", "a turn of which a ledger says that it was not", recalled(FORGOTTEN, DISCARDED)),
    Case("cancel_wins", "a canceled turn ends as if not", turn(ACCEPTED, FINAL, OK), canceled=frozenset({"t1"})),
    Case("cancel_wins", "a ledger does not know of the cancel", recalled(
        FORGOTTEN, REFUSED), canceled=frozenset({"t1"})),
    Case("cancel_wins", "a canceled turn commits", [at(2, OK)], {"t1": 1}, frozenset({"t1"})),
    Case("token_offset", "a hole", turn(ACCEPTED, HI, token("!", 3), INTERRUPTED, DISCARDED)),
    Case("token_offset", "an overlap", turn(ACCEPTED, HI, token("!", 1), INTERRUPTED, DISCARDED)),
    Case("token_offset", "text does not begin at 0", turn(ACCEPTED, token("hi", 1), TurnFinal(" hi"), OK)),
    Case("token_offset", "counted in bytes", turn(ACCEPTED, token("é", 0), token("!", 2), TurnFinal("é!"), OK)),
    Case("token_offset", "a hole where only another gap is", [
        at(0, ACCEPTED), at(2, HI, (1, 1)), at(3, token("!", 9)), at(4, INTERRUPTED), at(5, DISCARDED)]),
    Case("token_offset", "an overlap is not excused by a gap", [
        *turn(ACCEPTED, HI), at(3, token("!", 1), (2, 2)), at(4, INTERRUPTED), at(5, DISCARDED)]),
    Case("final_text", "other text", turn(ACCEPTED, HI, TurnFinal("ho"), OK)),
    Case("final_text", "less text", turn(ACCEPTED, HI, TurnFinal("h"), OK)),
    Case("final_text", "more text", turn(ACCEPTED, HI, TurnFinal("hi!"), OK)),
    Case("final_text", "more text although only earlier deltas were dropped", [
        at(0, ACCEPTED), at(2, token("i", 1), (1, 1)), at(3, TurnFinal("hi!")), at(4, OK)]),
    Case("final_text", "a delta that was sent, elsewhere", [
        at(0, ACCEPTED), at(2, token("i", 1), (1, 1)), at(3, TurnFinal("hhi")), at(4, OK)]),
    Case("text_forgotten", "by the runtime that sent it", turn(ACCEPTED, HI, FORGOTTEN, OK)),
    Case("text_forgotten", "although nothing was ever said", turn(ACCEPTED, FORGOTTEN, OK)),
    Case("text_forgotten", "it is gone, and nobody says so", [*turn(ACCEPTED, HI), *recalled(FINAL, seen=1)]),
    Case("text_forgotten", "it is there after a restart", [*turn(ACCEPTED, HI), *recalled(HI_FINAL, seen=1)]),
    Case("text_forgotten", "it is gone and there", [
        *turn(ACCEPTED, HI), *recalled(evolve(FORGOTTEN, text="hi"), seen=1)]),
    Case("text_forgotten", "the runtime that cut it off has forgotten its words", turn(
        ACCEPTED, HI, INTERRUPTED_LONG_AGO, DISCARDED)),
    Case("text_forgotten", "words of a turn that was cut off are gone, and nobody says so", [
        *turn(ACCEPTED, HI), *recalled(INTERRUPTED, DISCARDED, seen=1)]),
    Case("text_forgotten", "what was heard is gone and there", [
        *turn(ACCEPTED, HI), *recalled(evolve(INTERRUPTED_LONG_AGO, heard=Heard(1, "hi")), DISCARDED, seen=1)]),
    Case("heard", "words that were not said", turn(ACCEPTED, HI, broken_off(Heard(1, "ho")), DISCARDED)),
    Case("heard", "more than was said", turn(ACCEPTED, HI, broken_off(Heard(1, "hi!")), DISCARDED)),
    Case("heard", "less than was said", turn(ACCEPTED, HI, broken_off(Heard(1, "h")), DISCARDED)),
    Case("heard", "what was said later", turn(ACCEPTED, HI, broken_off(Heard(0, "hi")), DISCARDED)),
    Case("heard", "an event that was not sent", turn(ACCEPTED, HI, broken_off(Heard(3, "hi")), DISCARDED)),
    Case("heard", "more than a joined delta had at that seq", [
        at(0, ACCEPTED), at(2, HI, (1, 1)), at(3, broken_off(Heard(1, "hi"))), at(4, DISCARDED)]),
    Case("tool_unique", "an id while its call is open", turn(ACCEPTED, CALL, CALL, result(), FINAL, OK)),
    Case("tool_unique", "an id after its result", turn(ACCEPTED, CALL, result(), CALL, FINAL, OK)),
    Case("tool_partner", "a result without a call", turn(ACCEPTED, result(), FINAL, OK)),
    Case("tool_partner", "a result of another tool", turn(ACCEPTED, CALL, result(tool="cards"), FINAL, OK)),
    Case("tool_partner", "two results, and room for one call", [
        at(0, ACCEPTED), at(2, result("c1"), (1, 1)), at(3, result("c2")), at(4, FINAL), at(5, OK)]),
    Case("tool_once", "a result twice", turn(ACCEPTED, CALL, result(), result(), FINAL, OK)),
    Case("tool_open", "no result before the final", turn(ACCEPTED, CALL, FINAL, OK)),
    Case("tool_open", "no result before the interruption", turn(ACCEPTED, CALL, INTERRUPTED, DISCARDED)),
    Case("tool_open", "a gap that came before the call", [
        at(0, ACCEPTED), at(2, CALL, (1, 1)), at(3, FINAL), at(4, OK)]),
    Case("tool_canceled", "canceled without a word on side effects", [
        *turn(ACCEPTED, CALL), raw_payload(at(2, result()), canceled=True), at(3, FINAL), at(4, OK)]),
    Case("model_order", "a token before the model is ready", turn(
        ACCEPTED, SELECTED, HI, broken_off(), DISCARDED)),
    Case("model_order", "a tool before the model is ready", turn(
        ACCEPTED, SELECTED, LOADING, CALL, result(), INTERRUPTED, DISCARDED)),
    Case("model_order", "a final before the model is ready", turn(ACCEPTED, SELECTED, FINAL, OK)),
    Case("model_order", "ready, but not selected", turn(ACCEPTED, HOT, FINAL, OK)),
    Case("model_order", "loading, but not selected", turn(ACCEPTED, LOADING, INTERRUPTED, DISCARDED)),
    Case("model_order", "ready twice", turn(ACCEPTED, SELECTED, HOT, HOT, FINAL, OK)),
    Case("model_order", "another one is ready", turn(
        ACCEPTED, SELECTED, evolve(HOT, model_id="m2"), FINAL, OK)),
    Case("model_order", "another one is loading", turn(
        ACCEPTED, SELECTED, evolve(LOADING, model_id="m2"), INTERRUPTED, DISCARDED)),
    Case("model_order", "another one is selected", turn(ACCEPTED, SELECTED, SELECTED, HOT, FINAL, OK)),
    Case("model_fallback", "nothing was wrong", turn(
        ACCEPTED, SELECTED, HOT, evolve(FALLBACK, error=None), HOT_2, FINAL, OK)),
    Case("model_fallback", "something was wrong, and nothing is replaced", turn(
        ACCEPTED, SELECTED, HOT, evolve(FALLBACK, reason="default"), HOT_2, FINAL, OK)),
    Case("model_fallback", "after a token", turn(ACCEPTED, SELECTED, HOT, HI, FALLBACK, HOT_2, HI_FINAL, OK)),
    Case("model_fallback", "after a token without a model", turn(ACCEPTED, HI, FALLBACK, HOT_2, HI_FINAL, OK)),
    Case("model_fallback", "after a tool call", turn(
        ACCEPTED, SELECTED, HOT, CALL, result(), FALLBACK, HOT_2, FINAL, OK)),
    Case("model_fallback", "by itself", turn(ACCEPTED, SELECTED, evolve(FALLBACK, model_id="m1"), HOT, FINAL, OK)),
    Case("model_fallback", "after a token, and only an earlier selection was dropped", [
        at(0, ACCEPTED), at(2, HI, (1, 1)), at(3, FALLBACK), at(4, HOT_2), at(5, HI_FINAL), at(6, OK)]),
    Case("failure_said", "by a turn that was canceled", turn(
        ACCEPTED, TurnInterrupted(InterruptReason.CANCELED, error=REFUSED_KEY), DISCARDED)),
    Case("failure_said", "by a turn that a restart ended", recalled(
        TurnInterrupted(InterruptReason.RUNTIME_RESTART, error=REFUSED_KEY, text_forgotten=True), RESTARTED)),
    Case("model_shown", "cold, and it never showed", turn(ACCEPTED, SELECTED, COLD, FINAL, OK)),
    Case("model_shown", "after resuming, with room for its selection only", [
        at(2, COLD), at(3, FINAL), at(4, OK)], after={"t1": 1}),
    Case("model_hot", "hot after loading", turn(ACCEPTED, SELECTED, LOADING, HOT, FINAL, OK)),
    Case("model_hot", "hot after some time", turn(ACCEPTED, SELECTED, evolve(HOT, load_ms=1), FINAL, OK)),
    Case("model_progress", "back by half", turn(
        ACCEPTED, SELECTED, *loading(0.5, 0.25, 0.3), COLD, FINAL, OK)),
]  # fmt: skip


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{case.law}: {case.name}")
def test_breaking_one_law_is_reported_as_that_law(case: Case) -> None:
    found = laws.check(case.events, after=case.after, canceled=case.canceled)
    assert {violation.law for violation in found} == {case.law}, [str(violation) for violation in found]


def test_every_law_has_an_example_that_breaks_it() -> None:
    told_by_recordings = {"json"}
    assert {case.law for case in BROKEN} | told_by_recordings == set(laws.LAWS)


LAWFUL = [
    Case("failure_said", "by a turn that failed", turn(
        ACCEPTED, TurnInterrupted(InterruptReason.MODEL_ERROR, error=REFUSED_KEY), DISCARDED)),
    Case("failure_said", "by a turn that failed before a restart", recalled(
        TurnInterrupted(InterruptReason.STALLED, error=REFUSED_KEY, text_forgotten=True), DISCARDED)),
    Case("model_fallback", "of a model that was selected", turn(ACCEPTED, SELECTED, FALLBACK, HOT_2, FINAL, OK)),
    Case("model_fallback", "of a model that was loading", turn(
        ACCEPTED, SELECTED, LOADING, *loading(0.9), FALLBACK, HOT_2, FINAL, OK)),
    Case("model_fallback", "of a model that was ready", turn(ACCEPTED, SELECTED, HOT, FALLBACK, HOT_2, FINAL, OK)),
    Case("model_fallback", "of a model that was not allowed", turn(ACCEPTED, FALLBACK, HOT_2, FINAL, OK)),
    Case("model_fallback", "of a second model, after the first has spoken", turn(
        ACCEPTED, SELECTED, HOT, HI, SELECTED, FALLBACK, HOT_2, HI_FINAL, OK)),
    Case("model_fallback", "the selection of the model before was dropped", [
        *turn(ACCEPTED, SELECTED, HOT, HI), at(5, FALLBACK, (4, 4)), at(6, HOT_2), at(7, HI_FINAL), at(8, OK)]),
    Case("model_order", "another one is ready, and a gap has room for the fallback", [
        *turn(ACCEPTED, SELECTED), at(3, HOT_2, (2, 2)), at(4, FINAL), at(5, OK)]),
    Case("accepted_first", "a turn that says nothing", turn(ACCEPTED, FINAL, OK)),
    Case("commit_issues", "a turn that the rules refused", turn(ACCEPTED, FINAL, REFUSED)),
    Case("token_offset", "a token needs no model", turn(ACCEPTED, HI, HI_FINAL, OK)),
    Case("token_offset", "deltas were joined", [at(0, ACCEPTED), at(3, HI, (1, 2)), at(4, HI_FINAL), at(5, OK)]),
    Case("token_offset", "a delta was dropped", [
        *turn(ACCEPTED, HI), at(3, token("!", 4), (2, 2)), at(4, TurnFinal("hiho!")), at(5, OK)]),
    Case("final_text", "the last delta was dropped", [*turn(ACCEPTED, HI), at(3, TurnFinal("hi!"), (2, 2)), at(4, OK)]),
    Case("heard", "a part of a joined delta", [
        at(0, ACCEPTED), at(2, HI, (1, 1)), at(3, broken_off(Heard(1, "h"))), at(4, DISCARDED)]),
    Case("heard", "a delta that was dropped", [
        *turn(ACCEPTED, HI), at(3, broken_off(Heard(2, "hi!")), (2, 2)), at(4, DISCARDED)]),
    Case("heard", "nothing yet", turn(ACCEPTED, HI, broken_off(Heard(0, "")), DISCARDED)),
    Case("tool_partner", "the call was dropped", [at(0, ACCEPTED), at(2, result(), (1, 1)), at(3, FINAL), at(4, OK)]),
    Case("tool_open", "the result was dropped", [*turn(ACCEPTED, CALL), at(3, FINAL, (2, 2)), at(4, OK)]),
    Case("model_order", "the selection was dropped", [
        at(0, ACCEPTED), at(2, HOT, (1, 1)), at(3, FINAL), at(4, OK)]),
    Case("model_order", "readiness was dropped", [
        *turn(ACCEPTED, SELECTED), at(3, HI, (2, 2)), at(4, HI_FINAL), at(5, OK)]),
    Case("model_order", "interrupted while loading", turn(ACCEPTED, SELECTED, LOADING, INTERRUPTED, DISCARDED)),
    Case("model_shown", "loading was dropped", [
        *turn(ACCEPTED, SELECTED), at(3, COLD, (2, 2)), at(4, FINAL), at(5, OK)]),
    Case("model_progress", "another load began meanwhile", [
        *turn(ACCEPTED, SELECTED, *loading(0.9)), at(5, loading(0.1)[0], (3, 4)),
        at(6, INTERRUPTED), at(7, DISCARDED)]),
    Case("seq_first", "resumed before the commit", [at(9, OK)], after={"t1": 8}),
    Case("turn_unique", "one turn id in two sessions", [
        *turn(ACCEPTED, FINAL, OK), *(evolve(event, session_id="s2") for event in turn(ACCEPTED, FINAL, OK))]),
    Case("restart_seq", "a restart ends a turn", [
        *turn(ACCEPTED, HI, CALL),
        at(RESTART_SEQ, INTERRUPTED_LONG_AGO, (3, RESTART_SEQ - 1)), at(RESTART_SEQ + 1, RESTARTED)]),
    Case("restart_seq", "a restart ends a turn of which nothing was seen", [
        at(RESTART_SEQ, INTERRUPTED_LONG_AGO, (0, RESTART_SEQ - 1)), at(RESTART_SEQ + 1, RESTARTED)]),
    Case("restart_seq", "a restart commits a turn whose end was seen", [
        *turn(ACCEPTED, FINAL), at(RESTART_SEQ + 1, RESTARTED, (2, RESTART_SEQ))]),
    Case("restart_seq", "a restart tells of a commit that was durable, to one that may have seen the end", [
        at(RESTART_SEQ + 1, OK, (3, RESTART_SEQ))], after={"t1": 2}),
    Case("text_forgotten", "a ledger ends a turn while it spoke", [
        *turn(ACCEPTED, SELECTED, HOT, HI), *recalled(FORGOTTEN, seen=3)]),
    Case("text_forgotten", "a ledger ends a turn while a model loads and a tool runs", [
        *turn(ACCEPTED, CALL, SELECTED, LOADING), *recalled(FORGOTTEN, REFUSED, seen=3)]),
    Case("text_forgotten", "a ledger ends a turn of which nothing was seen", recalled(FORGOTTEN)),
    Case("text_forgotten", "a ledger ends a turn that was resumed", recalled(FORGOTTEN, seen=7), after={"t1": 7}),
    Case("commit_interrupted", "a ledger knows of the cancel", recalled(
        INTERRUPTED_LONG_AGO, DISCARDED), canceled=frozenset({"t1"})),
    Case("cancel_wins", "a canceled turn is interrupted", turn(
        ACCEPTED, INTERRUPTED, DISCARDED), canceled=frozenset({"t1"})),
]  # fmt: skip


@pytest.mark.parametrize("case", LAWFUL, ids=lambda case: f"{case.law}: {case.name}")
def test_what_only_looks_like_breaking_a_law_is_not_reported(case: Case) -> None:
    assert laws.check(case.events, after=case.after, canceled=case.canceled) == []


def test_a_violation_reads_as_one_line() -> None:
    (found,) = laws.check([evolve(event, session_id="s\n1") for event in turn(ACCEPTED, FINAL)])
    assert str(found) == r"one_commit: 's\n1' t1: the turn has no commit_final"
    (found,) = laws.check(turn(ACCEPTED, FINAL, OK, OK))
    assert str(found) == "commit_silence: s1 t1 seq 3: commit_final came after commit_final"


def test_no_violation_quotes_what_was_said() -> None:
    said = "the duke did it"
    streams: list[list[Any]] = [
        turn(ACCEPTED, token(said, 0), TurnFinal(said + "!"), OK),
        turn(ACCEPTED, token(said, 4), TurnFinal(said), OK),
        turn(ACCEPTED, token(said, 0), broken_off(Heard(1, said[:-1])), DISCARDED),
        saying(raw_payload(at(1, HI), delta=[said])),
        saying(raw_payload(at(1, HI), **{said: 1})),
        saying(raw(at(1, HI), event_type=said)),
    ]
    for stream in streams:
        found = laws.check(stream)
        assert found
        assert not any(said in str(violation) for violation in found)


def test_one_bad_event_is_reported_once_and_the_rest_of_its_turn_is_judged() -> None:
    found = laws.check([at(0, ACCEPTED), raw_payload(at(1, HI), offset=-1), at(2, token("!", 2)), at(3, FINAL)])
    assert [violation.law for violation in found] == ["payload", "final_text", "one_commit"]
    assert found[0].seq == 1


@pytest.mark.parametrize("event_type", EventType)
def test_a_type_that_is_not_that_of_the_payload_is_found(event_type: EventType) -> None:
    event = evolve(at(1, HI), event_type=event_type)
    broken = {violation.law for violation in laws.check(saying(event))}
    assert ("payload" in broken) == (event_type is not EventType.TOKEN_DELTA)
