"""Server with a stage on a thread: it has no frames, and is called when a session has something to poll."""

from __future__ import annotations

from queue import SimpleQueue
from time import perf_counter, process_time, sleep
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from footlights import BusyRule, CommitOutcome, EventType, Intent, IntentType, TurnParams
from footlights.authority import JsonWorld, RuleBook, accept, patch
from footlights_transports.embed.stage_thread import StageThread
from suites.lib.figures import Aim, Figure, latency_figure
from suites.lib.scripts import cast_of, paced, whole_turn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from footlights import CommitFinal
    from footlights.authority import Ruling
    from footlights_transports import ThreadSession
    from footlights_transports.embed.ticket import Ticket

SOON = Aim("below", 50_000)
"""Microseconds."""
IDLE = Aim("below", 10)
"""Milliseconds in a second: 1 %."""
_BARGE_IN = TurnParams(busy=BusyRule.INTERRUPT)
_PLAYERS = 5


@frozen(kw_only=True)
class ServerScale:
    listeners: int
    """Sessions that are idle while one talks."""
    turns: int
    idle: int
    """Sessions that are idle while nobody talks."""
    seconds: float
    commits: int
    """Commits of the host that are given at once."""


FULL_SERVER = ServerScale(listeners=40, turns=500, idle=200, seconds=10.0, commits=1_000)
QUICK_SERVER = ServerScale(listeners=3, turns=4, idle=3, seconds=0.01, commits=20)


def measure_server(scale: ServerScale) -> list[Figure]:
    return [_measure_wake_up(scale), _measure_idle(scale), *_measure_reload(scale)]


def _measure_wake_up(scale: ServerScale) -> Figure:
    seconds: list[float] = []
    with StageThread(cast_of(whole_turn)) as stage:
        ready = SimpleQueue["ThreadSession"]()
        sessions = [_waking(stage.start(), ready) for _ in range(scale.listeners + 1)]
        for number in range(scale.turns):
            events: list[EventType] = []
            began = perf_counter()
            sessions[number % len(sessions)].begin_turn_soon("Go on.")
            while EventType.COMMIT_FINAL not in events:
                events += [event.event_type for event in ready.get().poll(max_events=1_000)]
                if EventType.TOKEN_DELTA in events and len(seconds) == number:
                    seconds.append(perf_counter() - began)
    return latency_figure(f"a server with {scale.listeners} idle sessions", "first token of one, p99", seconds, SOON)


def _waking(session: ThreadSession, ready: SimpleQueue[ThreadSession]) -> ThreadSession:
    session.on_ready(lambda: ready.put(session))
    return session


def _measure_idle(scale: ServerScale) -> Figure:
    with StageThread(cast_of(paced)) as stage:
        ready = SimpleQueue["ThreadSession"]()
        sessions = [_waking(stage.start(), ready) for _ in range(scale.idle)]
        began = process_time()
        sleep(scale.seconds)
        spent = (process_time() - began) / scale.seconds
    return Figure(f"a server with {len(sessions)} idle sessions", "processor time in a second", spent * 1e3, "ms", IDLE)


def _restock(world: dict[str, Any], intents: Sequence[Intent]) -> Ruling:
    return accept(*(patch.replace("/stock", world["stock"] + len(intents)) for _ in intents[:1]))


def _measure_reload(scale: ServerScale) -> list[Figure]:
    """The host commits everything anew, while players interrupt their NPCs."""
    cast = evolve(cast_of(paced), world=JsonWorld({"stock": 0}), rules=RuleBook({"restock": _restock}))
    with StageThread(cast) as stage:
        players = [stage.start() for _ in range(_PLAYERS)]
        began = perf_counter()
        commits: list[Ticket[CommitFinal]] = []
        for number in range(scale.commits):
            commits.append(stage.commit_soon([Intent(IntentType.DECISION, "restock")], f"shelf {number}"))
            if number % 4 == 0:
                players[number % _PLAYERS].begin_turn_soon("And now?", _BARGE_IN)
        decided = sum(each.result().commit_outcome is CommitOutcome.OK for each in commits)
        seconds = perf_counter() - began
        stock = stage.world["stock"]
    assert stock == decided
    subject = f"a reload of {scale.commits:,} commits, {_PLAYERS} players barge in"
    return [
        Figure(subject, "decided", decided, "times", Aim("at least", scale.commits)),
        Figure(subject, "rate", decided / seconds, "commits/s"),
    ]
