"""Hypothesis strategies of lawful streams, to test consumers of a stream. Needs Hypothesis.

`turns` makes all events of a turn. `recordings` makes the events that one subscriber gets of several turns:
interleaved, with joined deltas and dropped events, with resumed turns, and with turns that a restart ended. All are
built directly, without any code of the runtime or the law checker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, field, frozen
from hypothesis import strategies as st

from footlights.events import (
    PAYLOAD_TYPES,
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    EventType,
    Ext,
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
from footlights.failure_texts import UNSPECIFIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn, SearchStrategy

Events: TypeAlias = tuple[StreamEvent, ...]

_TYPE_OF: Mapping[type[Payload], EventType] = {kind: each for each, kind in PAYLOAD_TYPES.items()}
_TERMINAL = frozenset({EventType.TURN_FINAL, EventType.TURN_INTERRUPTED})
_MUST_DELIVER = _TERMINAL | {EventType.TURN_ACCEPTED, EventType.COMMIT_FINAL}
_RESTART_SEQ = 1_000_000_000

_ids = st.text("abcdefgh-0123456789", min_size=1, max_size=6)
_LETTERS = 'aZ 0\n\0"\\é日\u0301\u2028\U0001f3ad'
"""Characters that are difficult for offsets and escapes: a combining accent, a line separator, one beyond 16 bits."""
_words = st.text(_LETTERS, max_size=8)
_deltas = st.text(_LETTERS, min_size=1, max_size=6)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=4,
)
_exts = st.builds(Ext, st.sampled_from(["ext.acme.mood", "ext.a-1.b_2"]), _json)
_errors = st.builds(ErrorInfo, _ids, _words)
_issues = st.builds(Issue, _ids, _words, st.none() | _ids)


@frozen
class Recording:
    """The events that one subscriber got, and the arguments to judge them."""

    events: Events
    after: Mapping[str, int] = field(factory=dict[str, int])
    """The resumed turns, and the last seq that the subscriber had of each."""
    canceled: frozenset[str] = frozenset()
    """The cancelled turns."""


@st.composite
def turns(
    draw: DrawFn, session_id: str = "s1", turn_id: str = "t1", *, spoken: bool = False, interrupted: bool | None = None
) -> Events:
    """All events of one finished turn; with at least one token if `spoken`, and with the given kind of end."""
    payloads = draw(_payloads(spoken, interrupted))
    extended = draw(st.integers(0, len(payloads) - 1))
    payloads[extended] = evolve(payloads[extended], ext=draw(st.none() | _exts))
    mono_ts_ms, pace = draw(st.integers(0, 10**6)), draw(st.sampled_from([0, 1, 30]))
    wall_ts = draw(st.none() | st.floats(0, 2e9))
    return tuple(
        StreamEvent(
            SCHEMA_V,
            session_id,
            turn_id,
            seq,
            mono_ts_ms + seq * pace,
            _TYPE_OF[type(payload)],
            payload,
            wall_ts,
        )
        for seq, payload in enumerate(payloads)
    )


@st.composite
def recordings(draw: DrawFn, *, lossy: bool = True, least: int = 0, gap: bool = False) -> Recording:
    """The events that a subscriber gets of up to three turns; all events, unchanged, unless `lossy`.

    It holds at least the last `least` events of each turn (2 at most), and a gap in each turn if `gap`.
    """
    views: list[Events] = []
    after: dict[str, int] = {}
    canceled: set[str] = set()
    for number in range(draw(st.integers(1, 3))):
        turn_id = f"t1-{number:06}"
        view = emitted = draw(turns(draw(st.sampled_from(["s1", "s2"])), turn_id))
        if lossy:
            view, seen = draw(views_of(emitted, least=least, gap=gap))
            if seen is not None:
                after[turn_id] = seen
        if emitted[-2].event_type is EventType.TURN_INTERRUPTED and draw(st.booleans()):
            canceled.add(turn_id)
        views.append(view)
    return Recording(draw(_mixed(views)), after, frozenset(canceled))


@st.composite
def views_of(draw: DrawFn, emitted: Events, *, least: int = 0, gap: bool = False) -> tuple[Events, int | None]:
    """The events that a subscriber gets of one turn, and the last seq that it had before, or None.

    It gets at least the last `least` events (2 at most). `gap` forces a restart, which always leaves a gap.
    """
    if gap or draw(st.integers(0, 4)) == 0:
        emitted = draw(_restarted(emitted, len(emitted) - (2 if gap else 1)))
    seen = draw(st.none() | st.none() | st.integers(0, len(emitted) - 1 - least))
    if seen is not None:
        emitted = tuple(event for event in emitted if event.seq > seen)
    return draw(_slowed(emitted, -1 if seen is None else seen)), seen


@st.composite
def _payloads(draw: DrawFn, spoken: bool, interrupted: bool | None) -> list[Payload]:
    payloads: list[Payload] = [TurnAccepted(turns_ahead=draw(st.integers(0, 3)))]
    text = ""
    waiting: dict[str, str] = {}
    calls = 0
    steps = draw(st.lists(st.sampled_from(["say", "say", "say", "load", "call", "answer"]), max_size=8))
    if spoken:
        steps.insert(draw(st.integers(0, len(steps))), "say")
    for step in steps:
        if step == "say":
            payloads.append(TokenDelta(delta=draw(_deltas), offset=len(text)))
            text = _text_of(payloads)
        elif step == "load":
            payloads += draw(_loads())
        elif step == "call":
            calls += 1
            waiting[f"c{calls}"] = draw(_ids)
            payloads.append(ToolCallStarted(f"c{calls}", waiting[f"c{calls}"]))
        elif waiting:
            call = draw(st.sampled_from(sorted(waiting)))
            payloads.append(draw(_results(call, waiting.pop(call))))
    interrupted = draw(st.booleans()) if interrupted is None else interrupted
    if interrupted and draw(st.booleans()):
        payloads += draw(_loads())[: draw(st.integers(1, 2))]
    for call, tool in waiting.items():
        payloads.append(draw(_results(call, tool)))
    payloads += draw(_interrupted_endings(payloads) if interrupted else _final_endings(text))
    return payloads


def _text_of(payloads: list[Payload]) -> str:
    return "".join(payload.delta for payload in payloads if isinstance(payload, TokenDelta))


@st.composite
def _loads(draw: DrawFn) -> list[Payload]:
    """A model that is selected and becomes ready, perhaps in place of one that failed at some point before."""
    selected = ModelSelected(draw(_ids), draw(_words))
    if draw(st.integers(0, 3)):
        return draw(_loads_of(selected))
    before = draw(_loads_of(selected))
    fallback = ModelSelected(f"not {selected.model_id}", "fallback", draw(_errors))
    return [*before[: draw(st.integers(1, len(before)))], *draw(_loads_of(fallback))]


@st.composite
def _loads_of(draw: DrawFn, selected: ModelSelected) -> list[Payload]:
    model, warm_state = selected.model_id, draw(st.sampled_from(WarmState))
    if warm_state is WarmState.HOT:
        return [selected, ModelReady(model, warm_state, 0)]
    progress: list[float | None] = [None, *sorted(draw(st.lists(st.floats(0, 1), max_size=3)))]
    return [
        selected,
        *(ModelLoading(model, warm_state is WarmState.COLD, each) for each in progress),
        ModelReady(model, warm_state, draw(st.integers(0, 9000))),
    ]


@st.composite
def _results(draw: DrawFn, call: str, tool: str) -> ToolCallResult:
    canceled = draw(st.booleans())
    effects = draw(st.booleans() if canceled else st.none() | st.booleans())
    error = draw(st.none() | _errors)
    return ToolCallResult(call, tool, canceled, effects, draw(st.none() | _words), error)


@st.composite
def _final_endings(draw: DrawFn, text: str) -> list[Payload]:
    issues = tuple(draw(st.lists(_issues, max_size=2)))
    return [TurnFinal(text, cut=draw(st.booleans())), draw(_commits(issues))]


@st.composite
def _interrupted_endings(draw: DrawFn, before: list[Payload]) -> list[Payload]:
    heard_seq = draw(st.none() | st.integers(0, len(before)))
    heard = None if heard_seq is None else Heard(heard_seq, _text_of(before[: heard_seq + 1]))
    reason = draw(st.sampled_from(InterruptReason))
    issue = Issue(draw(st.sampled_from(["turn_interrupted", "runtime_restart"])), draw(_words))
    issues = (*draw(st.lists(_issues, max_size=1)), issue)
    error = draw(st.none() | _errors) if reason in UNSPECIFIC else None
    return [TurnInterrupted(reason, draw(st.none() | _words), heard, error), draw(_commits(issues))]


@st.composite
def _commits(draw: DrawFn, issues: tuple[Issue, ...]) -> CommitFinal:
    return CommitFinal(
        draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
        CommitOutcome.FAIL_CLOSED if issues else CommitOutcome.OK,
        issues,
        tuple(draw(st.lists(_ids, max_size=2))),
        draw(st.none() | _ids),
    )


@st.composite
def _restarted(draw: DrawFn, emitted: Events, most: int) -> Events:
    """The runtime ended after at most `most` events, and its successor reports the end of the turn from the ledger."""
    told = emitted[: draw(st.integers(1, most))]
    endings = draw(_recalled_endings(emitted[-2].payload, emitted[-1].payload))
    if told[-1].event_type in _TERMINAL:
        del endings[_RESTART_SEQ]
    mono = told[-1].mono_ts_ms + draw(st.integers(0, 50))
    return told + tuple(
        evolve(emitted[0], seq=seq, mono_ts_ms=mono, event_type=_TYPE_OF[type(each)], payload=each)
        for seq, each in endings.items()
    )


@st.composite
def _recalled_endings(draw: DrawFn, terminal: Payload, commit: Payload) -> dict[int, Payload]:
    if draw(st.booleans()):  # it was not committed in time
        terminal = TurnInterrupted(InterruptReason.RUNTIME_RESTART, text_forgotten=True)
        commit = draw(_commits((Issue("runtime_restart", draw(_words)),)))
    elif isinstance(terminal, TurnInterrupted):
        terminal = TurnInterrupted(terminal.reason, error=terminal.error, text_forgotten=True)
    else:
        terminal = TurnFinal("", text_forgotten=True)
    return {_RESTART_SEQ: terminal, _RESTART_SEQ + 1: commit}


@st.composite
def _slowed(draw: DrawFn, emitted: Events, seen: int) -> Events:
    """Neighbouring deltas joined, events dropped, and each gap declared by the next event."""
    got: list[StreamEvent] = []
    for event in draw(_joined(emitted)):
        if event.event_type not in _MUST_DELIVER and draw(st.integers(0, 3)) == 0:
            continue
        if event.seq > seen + 1:
            ranges = draw(_ranges(seen + 1, event.seq - 1))
            event = evolve(event, payload=evolve(event.payload, dropped_seq_ranges=ranges))
        seen = event.seq
        got.append(event)
    return tuple(got)


@st.composite
def _joined(draw: DrawFn, emitted: Events) -> list[StreamEvent]:
    entries: list[StreamEvent] = []
    for event in emitted:
        last = entries[-1].payload if entries else None
        payload = event.payload
        if isinstance(last, TokenDelta) and isinstance(payload, TokenDelta) and draw(st.booleans()):
            joined = evolve(payload, delta=last.delta + payload.delta, offset=last.offset)
            entries[-1] = evolve(event, payload=joined)
        else:
            entries.append(event)
    return entries


@st.composite
def _ranges(draw: DrawFn, start: int, end: int) -> tuple[SeqRange, ...]:
    """One range, or two adjacent ones, which are equivalent."""
    if start < end and draw(st.booleans()):
        middle = draw(st.integers(start, end - 1))
        return (SeqRange(start, middle), SeqRange(middle + 1, end))
    return (SeqRange(start, end),)


def _mixed(views: list[Events]) -> SearchStrategy[Events]:
    """The events of all views, each view in its own order."""
    labels = [at for at, view in enumerate(views) for _ in view]

    def deal(order: list[int]) -> Events:
        streams = [iter(view) for view in views]
        return tuple(next(streams[at]) for at in order)

    return st.permutations(labels).map(deal)
