"""`footlights bench embed`: what a stage does to a game loop that holds 60 frames a second.

The same loop runs twice: with the stage on a thread of its own, and with the stage as trio's guest. In each, slices of
frames in which nobody speaks alternate with slices in which many turns stream, so that other work on the machine slows
both. Then the calls of a stage thread are timed while as many turns stream.
"""

from __future__ import annotations

from contextlib import contextmanager
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Protocol, TypeAlias

from attrs import frozen

from footlights_bench.embedding.frames import FRAME, Frames, play_frames
from footlights_bench.embedding.guest import guest_stage
from footlights_bench.lib.figures import Aim, Figure, percentile
from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from footlights_bench.lib.report import Report, publish
from footlights_bench.lib.scripts import cast_of, paced

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from footlights import Cast, StreamEvent

UNAFFECTED = Aim("below", 1.25)


@frozen(kw_only=True)
class EmbedScale:
    turns: int
    """How many turns stream at once."""
    frames: int
    """Frames of one slice."""
    laps: int
    """Pairs of slices whose median counts."""
    calls: int
    """Calls of each kind that are timed."""


FULL = EmbedScale(turns=100, frames=300, laps=5, calls=1_000)
QUICK = EmbedScale(turns=5, frames=6, laps=2, calls=6)


class Answer(Protocol):
    """The ticket of a call that was handed over."""

    def result(self) -> object: ...


class ThreadSession(Protocol):
    """A session of a stage thread, as much of it as is measured."""

    def begin_turn(self, said: str) -> str: ...
    def begin_turn_soon(self, said: str) -> Answer: ...
    def cancel(self) -> tuple[str, ...]: ...
    def poll(self) -> list[StreamEvent]: ...
    def finalize(self, turn_id: str) -> Answer: ...


class ThreadStage(Protocol):
    """A stage thread, as much of it as is measured."""

    def start(self) -> ThreadSession: ...


OpenThread: TypeAlias = "Callable[[Cast], AbstractContextManager[ThreadStage]]"
"""Given to this module by those who know what a stage thread is: they are above it."""


class Host(Protocol):
    """A game loop's side of a stage."""

    def begin_turns(self) -> None: ...
    def end_turns(self) -> None: ...
    def take_events(self) -> None: ...
    def wait_until(self, due: float) -> None: ...


class _ThreadHost:
    def __init__(self, stage: ThreadStage, players: int) -> None:
        self._sessions = [stage.start() for _ in range(players)]
        self._turns: list[str] = []

    def begin_turns(self) -> None:
        self._turns = [session.begin_turn("Go on.") for session in self._sessions]

    def end_turns(self) -> None:
        for session, turn_id in zip(self._sessions, self._turns, strict=True):
            session.cancel()
            session.finalize(turn_id).result()

    def take_events(self) -> None:
        for session in self._sessions:
            session.poll()

    def wait_until(self, due: float) -> None:
        sleep(max(0.0, due - perf_counter()))


def run_embedding(open_thread: OpenThread, *, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    """Measure, print the table, write the JSON if asked; return the exit code."""
    return publish(measure_embedding(open_thread, quick=quick), json_path, strict=strict)


def measure_embedding(open_thread: OpenThread, *, quick: bool) -> Report:
    scale = QUICK if quick else FULL
    machine = this_machine()
    cast = cast_of(paced)
    say("frames, with a stage on a thread of its own")
    with open_thread(cast) as stage:
        figures = _frame_figures("a thread of its own", _ThreadHost(stage, scale.turns), scale)
    say("frames, with a stage as trio's guest")
    with guest_stage(cast, scale.turns) as guest:
        figures += _frame_figures("trio's guest", guest, scale)
    say("calls to a stage thread")
    with open_thread(cast) as stage:
        figures += _call_figures(stage, scale)
    return Report("embed", quick, machine, figures)


def _frame_figures(how: str, host: Host, scale: EmbedScale) -> list[Figure]:
    silent: list[Frames] = []
    streaming: list[Frames] = []
    for _ in range(scale.laps):
        silent.append(play_frames(scale.frames, host.take_events, host.wait_until))
        host.begin_turns()
        streaming.append(play_frames(scale.frames, host.take_events, host.wait_until))
        host.end_turns()
        host.take_events()
    subject = f"frames, {scale.turns} turns, {how}"
    return [
        *_compare(subject, "work of a frame", [each.work for each in silent], [each.work for each in streaming]),
        *_compare(subject, "frame to frame", [each.between for each in silent], [each.between for each in streaming]),
    ]


def _compare(
    subject: str, name: str, silent: Sequence[Sequence[float]], streaming: Sequence[Sequence[float]]
) -> list[Figure]:
    def slices(percent: float) -> list[float]:
        return [
            percentile(loud, percent) / percentile(quiet, percent)
            for quiet, loud in zip(silent, streaming, strict=True)
        ]

    everything = [second * 1e6 for each in streaming for second in each]
    nothing = [second * 1e6 for each in silent for second in each]
    spread = {"p50": percentile(everything, 50), "max": max(everything), "p99 in silence": percentile(nothing, 99)}
    return [
        Figure(subject, f"{name}, p99", percentile(everything, 99), "µs", None, spread),
        Figure(subject, f"{name}, p99 / in silence", median(slices(99)), "x", UNAFFECTED, {"p50": median(slices(50))}),
    ]


def _call_figures(stage: ThreadStage, scale: EmbedScale) -> list[Figure]:
    sessions = [stage.start() for _ in range(scale.turns)]
    for session in sessions:
        session.begin_turn("Go on.")
    seconds: dict[str, list[float]] = {"begin_turn": [], "cancel": [], "begin_turn_soon": [], "poll": []}
    for number in range(scale.calls):
        session = sessions[number % len(sessions)]
        with _timed(seconds["poll"]):
            session.poll()
        with _timed(seconds["cancel"]):
            session.cancel()
        with _timed(seconds["begin_turn"]):
            session.begin_turn("Go on.")
        session.cancel()
        with _timed(seconds["begin_turn_soon"]):
            ticket = session.begin_turn_soon("Go on.")
        ticket.result()
        sleep(FRAME / 4)
    subject = f"calls to a stage thread, {scale.turns} turns"
    return [_call_figure(subject, name, each) for name, each in seconds.items()]


@contextmanager
def _timed(seconds: list[float]) -> Generator[None]:
    began = perf_counter()
    yield
    seconds.append(perf_counter() - began)


def _call_figure(subject: str, name: str, seconds: Sequence[float]) -> Figure:
    micros = [second * 1e6 for second in seconds]
    spread = {"p50": percentile(micros, 50), "max": max(micros)}
    return Figure(subject, f"{name}, p99", percentile(micros, 99), "µs", None, spread)
