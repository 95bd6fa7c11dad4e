"""`make bench-embed`: the effect of a stage on a game loop of 60 frames a second.

The same loop runs twice: with the stage on a thread of its own, and with the stage as trio's guest. In each run, slices
of frames without turns alternate with slices in which many turns stream, so other load on the machine slows both. Then
a game with some NPCs is played in the same way, and a server waits for its players.
"""

from __future__ import annotations

from concurrent.futures import wait
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Protocol

from attrs import evolve, frozen

from footlights import BusyRule, TurnParams
from footlights_bench.lib.percentiles import percentile
from footlights_transports.embed.stage_thread import StageThread
from suites.embed.frames import FRAME, Frames, play_frames
from suites.embed.guest import guest_stage
from suites.embed.server import FULL_SERVER, QUICK_SERVER, ServerScale, measure_server
from suites.lib.figures import Aim, Figure, latency_figure
from suites.lib.report import run_suite
from suites.lib.scripts import cast_of, paced

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

UNAFFECTED = Aim("below", 1.25)


@frozen(kw_only=True)
class EmbedScale:
    turns: int
    """Turns that stream at once."""
    frames: int
    """Frames of one slice."""
    laps: int
    """Pairs of slices, of which the median counts."""
    npcs: int
    """NPCs of the game whose calls are timed."""
    server: ServerScale


_BARGE_IN = TurnParams(busy=BusyRule.INTERRUPT)
FULL = EmbedScale(turns=100, frames=300, laps=5, npcs=20, server=FULL_SERVER)
QUICK = EmbedScale(turns=5, frames=6, laps=2, npcs=3, server=QUICK_SERVER)


class Host(Protocol):
    """A stage, as a game loop uses it."""

    def begin_turns(self) -> None: ...
    def end_turns(self) -> None: ...
    def take_events(self) -> None: ...
    def wait_until(self, due: float) -> None: ...


class _ThreadHost:
    def __init__(self, stage: StageThread, players: int) -> None:
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


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    scale = QUICK if quick else FULL
    parts = {
        "frames, with a stage on a thread of its own": partial(_measure_thread, scale),
        "frames, with a stage as trio's guest": partial(_measure_guest, scale),
        "a game with NPCs": partial(_measure_npcs, scale),
        "a server without frames": partial(measure_server, scale.server),
    }
    return run_suite("embed", parts, quick=quick, json_path=json_path, strict=strict)


def _measure_thread(scale: EmbedScale) -> list[Figure]:
    with StageThread(cast_of(paced)) as stage:
        return _frame_figures("a thread of its own", _ThreadHost(stage, scale.turns), scale)


def _measure_guest(scale: EmbedScale) -> list[Figure]:
    with guest_stage(cast_of(paced), scale.turns) as guest:
        return _frame_figures("trio's guest", guest, scale)


def _slices(host: Host, scale: EmbedScale) -> tuple[list[Frames], list[Frames]]:
    """Slices in silence, and those with turns that alternate with them."""
    silent: list[Frames] = []
    streaming: list[Frames] = []
    for _ in range(scale.laps):
        silent.append(play_frames(scale.frames, host.take_events, host.wait_until))
        host.begin_turns()
        streaming.append(play_frames(scale.frames, host.take_events, host.wait_until))
        host.end_turns()
        host.take_events()
    return silent, streaming


def _frame_figures(how: str, host: Host, scale: EmbedScale) -> list[Figure]:
    silent, streaming = _slices(host, scale)
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

    latency = latency_figure(subject, f"{name}, p99", [second for each in streaming for second in each])
    in_silence = percentile([second * 1e6 for each in silent for second in each], 99)
    return [
        evolve(latency, spread={**latency.spread, "p99 in silence": in_silence}),
        Figure(subject, f"{name}, p99 / in silence", median(slices(99)), "x", UNAFFECTED, {"p50": median(slices(50))}),
    ]


def _measure_npcs(scale: EmbedScale) -> list[Figure]:
    """One game in one run: its NPCs are polled once a frame, and each frame one of them is spoken to again."""
    with StageThread(cast_of(paced)) as stage:
        host = _Game(stage, scale.npcs)
        silent, streaming = _slices(host, scale)
    subject = f"a game with {scale.npcs} NPCs"
    frames = [each for lap in streaming for each in lap.between]
    return [
        *(latency_figure(subject, f"{name}, p99", each) for name, each in host.seconds.items()),
        Figure(
            subject,
            "frames missed",
            sum(map(_is_missed, frames)),
            "times",
            None,
            {"without turns": sum(_is_missed(each) for lap in silent for each in lap.between), "of": len(frames)},
        ),
    ]


class _Game(_ThreadHost):
    """Takes the time of what it does to the stage in a frame."""

    def __init__(self, stage: StageThread, npcs: int) -> None:
        super().__init__(stage, npcs)
        self._stage = stage
        self._next = cycle(self._sessions)
        self.seconds: dict[str, list[float]] = {
            "poll of all": [],
            "begin_turn": [],
            f"{npcs} commands, one by one": [],
            f"{npcs} commands, together": [],
        }

    def take_events(self) -> None:
        if not self._turns:
            super().take_events()
            return
        polling, command, one_by_one, together = self.seconds.values()
        with _timed(polling):
            super().take_events()
        with _timed(command):
            next(self._next).begin_turn("Go on.", _BARGE_IN)
        # Those without an effect, so that the stage has the same work in every frame.
        with _timed(one_by_one):
            heard = [each.heard_soon(turn, 0) for each, turn in zip(self._sessions, self._turns, strict=True)]
        wait(heard)
        with _timed(together), self._stage.together():
            heard = [each.heard_soon(turn, 0) for each, turn in zip(self._sessions, self._turns, strict=True)]
        wait(heard)

    def end_turns(self) -> None:
        for session in self._sessions:
            session.cancel()
        self._turns = []


def _is_missed(between: float) -> bool:
    """Whether the next frame came so late that one was left out."""
    return between > 1.5 * FRAME


@contextmanager
def _timed(seconds: list[float]) -> Generator[None]:
    began = perf_counter()
    yield
    seconds.append(perf_counter() - began)
