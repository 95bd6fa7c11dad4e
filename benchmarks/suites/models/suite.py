"""`make bench-models`: a local model through a stage, against the same engine called directly.

The suite measures the time to the first token, the time until a cancel has ended the work, and the lateness of the
event loop meanwhile. The two alternate, get the same prompts, and go through the same states of the engine's cache.
Our model runs in a process of its own; the peer runs in a thread of this process.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import evolve, frozen

from footlights import open_stage
from footlights_actors import standard_cast
from footlights_actors.models.local.weights import find
from footlights_bench.lib.progress import say
from suites.lib.figures import Aim, Figure, latency_figure
from suites.lib.report import in_trio, run_suite
from suites.models.direct import CONTEXT_TOKENS, SLOTS, DirectEngine
from suites.models.ours import OurTurns, WatchedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

COLD_START_SEEN = Aim("below", 50_000)
NO_SLOWER = Aim("below", 1.05)

_BEAT = 0.001
_STORY = "Tell me a very long story."
_MUCH_TO_READ = "word " * 500


@frozen(kw_only=True)
class ModelsScale:
    first_tokens: int
    """Timed first tokens, for each kind of prompt and each of the two."""
    cancels: int
    """Timed cancels. There are more, because their time depends on where in its work the engine is."""
    seconds: float
    """How long the event loop is watched, for each of the two."""


FULL = ModelsScale(first_tokens=30, cancels=100, seconds=5.0)
QUICK = ModelsScale(first_tokens=1, cancels=1, seconds=0.1)


class Contender(Protocol):
    """A model that is measured: ours or the engine alone. Times are in seconds."""

    async def first_token(self, said: str) -> float: ...

    async def cancel(self, said: str, *, speaking: bool, after: float) -> float: ...

    async def speak(self, said: str, until: trio.Event) -> None: ...


def run(*, quick: bool, json_path: Path | None, weights: str, strict: bool = False) -> int:
    """Raises `FootlightsError` if there is no model to measure."""
    parts = {"a local model": in_trio(_measure, find(weights), QUICK if quick else FULL)}
    return run_suite("models", parts, quick=quick, json_path=json_path, strict=strict)


async def _measure(path: Path, scale: ModelsScale) -> list[Figure]:
    model = WatchedModel(path, slots=SLOTS, context_tokens=CONTEXT_TOKENS)
    direct = DirectEngine(path)
    async with open_stage(standard_cast(model)) as stage:
        ours = OurTurns(stage.start(), model)
        say("loading")
        async with heartbeat() as late_while_ours_loads:
            loading_seen, ready = await ours.cold_start(_STORY)
        async with heartbeat() as late_while_peer_loads:
            await direct.load()
        direct.prompt = model.prompt
        figures = [
            Figure("cold start", "model_loading seen after begin_turn", loading_seen * 1e6, "µs", COLD_START_SEEN),
            Figure("cold start", "model_ready seen after begin_turn", ready * 1e6, "µs"),
            *await _compare_rounds(ours, direct, scale),
            *await _watch_loop(ours, direct, scale),
            lateness("ours loads", late_while_ours_loads),
            lateness("the engine loads in a thread", late_while_peer_loads),
        ]
    direct.drop()
    return figures


async def _compare_rounds(ours: Contender, direct: Contender, scale: ModelsScale) -> list[Figure]:
    moments = Random(0)
    after = [moments.random() for _ in range(scale.cancels + 1)]

    async def new_prompt(contender: Contender, number: int) -> float:
        return await contender.first_token(f"{number} travellers knock at the door of your inn. What do you say?")

    async def known_prompt(contender: Contender, _number: int) -> float:
        return await contender.first_token(_STORY)

    async def cancel_speaking(contender: Contender, number: int) -> float:
        return await contender.cancel(_STORY, speaking=True, after=after[number] / 10)

    async def cancel_reading(contender: Contender, number: int) -> float:
        return await contender.cancel(f"{number} {_MUCH_TO_READ}", speaking=False, after=0.1 + after[number] / 2)

    return [
        *await _compare("first token, new prompt", new_prompt, ours, direct, scale.first_tokens),
        *await _compare("first token, prompt known to the engine", known_prompt, ours, direct, scale.first_tokens),
        *await _compare("cancel while it speaks, until its slot is free", cancel_speaking, ours, direct, scale.cancels),
        *await _compare("cancel while it reads, until its slot is free", cancel_reading, ours, direct, scale.cancels),
    ]


async def _compare(
    subject: str,
    measure: Callable[[Contender, int], Awaitable[float]],
    ours: Contender,
    direct: Contender,
    samples: int,
) -> list[Figure]:
    say(f"measuring {subject}")
    seconds: dict[Contender, list[float]] = {ours: [], direct: []}
    for each in seconds:
        await measure(each, 0)  # not timed: gives both the same cache
    for number in range(1, samples + 1):
        for each in (ours, direct) if number % 2 else (direct, ours):
            seconds[each].append(await measure(each, number))
    return [
        _mean_figure(subject, "ours, mean", seconds[ours]),
        _mean_figure(subject, "engine alone, mean", seconds[direct]),
        Figure(subject, "ours / engine alone", fmean(seconds[ours]) / fmean(seconds[direct]), "x", NO_SLOWER),
    ]


async def _watch_loop(ours: Contender, direct: Contender, scale: ModelsScale) -> list[Figure]:
    say("watching the loop")
    async with heartbeat() as late_while_idle:
        await trio.sleep(scale.seconds)
    return [
        lateness("nothing runs", late_while_idle),
        lateness("ours generates", await _late_while_speaking(ours, scale.seconds)),
        lateness("the engine generates in a thread", await _late_while_speaking(direct, scale.seconds)),
    ]


async def _late_while_speaking(contender: Contender, seconds: float) -> Sequence[float]:
    enough = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(contender.speak, _STORY, enough)
        async with heartbeat() as late:
            await trio.sleep(seconds)
        enough.set()
    return late


def _mean_figure(subject: str, name: str, seconds: Sequence[float]) -> Figure:
    return evolve(latency_figure(subject, name, seconds, also=(50, 95)), value=fmean(seconds) * 1e6)


def lateness(name: str, late: Sequence[float]) -> Figure:
    return latency_figure("how late the loop is", f"{name}, p99", late)


@asynccontextmanager
async def heartbeat() -> AsyncGenerator[list[float]]:
    """Wake a task every millisecond while the block runs, and record by how many seconds it was late."""
    late: list[float] = []
    over = False

    async def beat() -> None:
        while True:
            due = trio.current_time() + _BEAT
            await trio.sleep_until(due)
            late.append(trio.current_time() - due)
            if over:  # not a cancel: a beat that is overdue at the end counts too
                return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        yield late
        over = True
