"""Throughput: events per second from emit to subscriber, over whole turns, against a bare trio memory channel.

Laps of Footlights and of the channel alternate, and the median of their ratios counts, so other load on the machine
slows both. Two counts are taken. Events accounted for were either given to the subscriber, or joined into a later
event that declares them. Events given are the objects that the subscriber received. A lap that dropped text is an
error.

The channel carries plain strings that exist beforehand, `await send` to `await receive`: no envelope, no sequence
numbers, no delivery classes, no limits in bytes, no replay, no commit.
"""

from __future__ import annotations

import gc
from contextlib import AsyncExitStack
from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights import EventType, MemoryLedger, open_stage
from suites.lib.figures import Aim, Figure, median_figure
from suites.lib.scripts import EVENTS_PER_TURN, TOKEN, cast_of, whole_turn, whole_turn_yielding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from footlights import InteractionSession, Subscription
    from footlights_actors import Script
    from suites.core.suite import CoreScale

ONE_TURN = Aim("at least", 2.5)
MANY_TURNS = Aim("at least", 2.0)

_BUFFERS = (0, 1)


@frozen
class Lap:
    seconds: float
    accounted: int
    given: int

    @property
    def accounted_per_second(self) -> float:
        return self.accounted / self.seconds

    @property
    def given_per_second(self) -> float:
        return self.given / self.seconds


@frozen
class Race:
    """Alternating laps: those of Footlights, and those of the channel by the size of its buffer."""

    ours: Sequence[Lap]
    channels: dict[int, Sequence[Lap]]

    @property
    def best_buffer(self) -> int:
        return max(self.channels, key=lambda buffer: _median_rate(self.channels[buffer]))

    @property
    def channel(self) -> Sequence[Lap]:
        return self.channels[self.best_buffer]

    def ratios(self, rate: Callable[[Lap], float]) -> list[float]:
        return [rate(ours) / rate(channel) for ours, channel in zip(self.ours, self.channel, strict=True)]


async def measure_throughput(scale: CoreScale) -> list[Figure]:
    one = await race(whole_turn, players=1, turns=scale.turns_per_lap, laps=scale.laps)
    many = await race(whole_turn, players=scale.crowd, turns=1, laps=scale.laps)
    yielding = await race(whole_turn_yielding, players=1, turns=scale.turns_per_lap, laps=scale.laps)
    return [
        *_figures("events, 1 turn at a time", one, ONE_TURN),
        *_figures(f"events, {scale.crowd:,} turns at once", many, MANY_TURNS),
        *_figures("events, 1 turn, yielding", yielding, None),
    ]


async def race(script: Script, *, players: int, turns: int, laps: int) -> Race:
    """Run alternating laps in which `players` sessions at once play `turns` turns each."""
    ours: list[Lap] = []
    channels: dict[int, list[Lap]] = {buffer: [] for buffer in _BUFFERS}
    for _ in range(laps):
        ours.append(await _footlights_lap(script, players, turns))
        for buffer, laps_so_far in channels.items():
            laps_so_far.append(await _channel_lap(buffer, players, turns))
    return Race(ours, dict(channels))


async def _footlights_lap(script: Script, players: int, turns: int) -> Lap:
    async with open_stage(cast_of(script), ledger=MemoryLedger()) as stage, AsyncExitStack() as leaving:
        sessions = [stage.start() for _ in range(players)]
        crowd = [_Player(session, await leaving.enter_async_context(session.subscribe())) for session in sessions]
        seconds = await _timed([partial(player.play, turns) for player in crowd])
        if stage.statistics().best_effort_dropped:
            raise AssertionError("Tokens were dropped, so the events of this lap are not all accounted for.")
    lap = Lap(seconds, sum(player.accounted for player in crowd), sum(player.given for player in crowd))
    return _checked(lap, players * turns)


async def _channel_lap(buffer: int, players: int, turns: int) -> Lap:
    arrived: list[int] = []

    async def play() -> None:
        arrived.append(await play_through_channel(buffer, turns))

    seconds = await _timed([play] * players)
    return _checked(Lap(seconds, sum(arrived), sum(arrived)), players * turns)


async def play_through_channel(buffer: int, turns: int) -> int:
    """Send as many items as the turns have events; return how many arrived."""
    arrived = 0
    for _ in range(turns):
        send, receive = trio.open_memory_channel[str](buffer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_produce, send)
            async for _item in receive:
                arrived += 1
    return arrived


async def _produce(send: trio.MemorySendChannel[str]) -> None:
    async with send:
        for _ in range(EVENTS_PER_TURN):
            await send.send(TOKEN)


class _Player:
    """A session and its subscriber in one task: begins a turn and receives everything until its commit."""

    def __init__(self, session: InteractionSession, stream: Subscription) -> None:
        self._session = session
        self._stream = stream
        self.accounted = 0
        self.given = 0

    async def play(self, turns: int) -> None:
        for _ in range(turns):
            self._session.begin_turn("Go on.")
            await self._take_turn()

    async def _take_turn(self) -> None:
        given = joined = 0
        async for event in self._stream:
            given += 1
            for missing in event.payload.dropped_seq_ranges:
                joined += missing.end_seq - missing.start_seq + 1
            if event.event_type is EventType.COMMIT_FINAL:
                break
        self.given += given
        self.accounted += given + joined


async def _timed(players: Sequence[Callable[[], Awaitable[None]]]) -> float:
    gc.collect()
    began = perf_counter()
    async with trio.open_nursery() as nursery:
        for play in players:
            nursery.start_soon(play)
    return perf_counter() - began


def _checked(lap: Lap, turns: int) -> Lap:
    expected = turns * EVENTS_PER_TURN
    if lap.accounted != expected:
        raise AssertionError(f"{lap.accounted} events are accounted for; {expected} were expected.")
    return lap


def _median_rate(laps: Sequence[Lap]) -> float:
    return median(lap.accounted_per_second for lap in laps)


def _figures(subject: str, race: Race, aim: Aim | None) -> list[Figure]:
    given = median(lap.given_per_second for lap in race.ours)
    ratios = race.ratios(lambda lap: lap.accounted_per_second)
    ratios_given = race.ratios(lambda lap: lap.given_per_second)
    return [
        Figure(subject, f"bare channel, buffer {race.best_buffer}", _median_rate(race.channel), "events/s"),
        Figure(subject, "events accounted for", _median_rate(race.ours), "events/s"),
        median_figure(subject, "accounted for / channel", ratios, "x", aim),
        Figure(subject, "event objects given", given, "events/s"),
        median_figure(subject, "given / channel", ratios_given, "x"),
    ]
