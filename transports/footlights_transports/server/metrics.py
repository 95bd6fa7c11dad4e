"""Metrics of a server, for Prometheus. They hold numbers and fixed words, never ids or text of users.

    metrics = Metrics()
    async with open_stage(cast, ledger=metrics.watching(ledger), observe=metrics.turn_settled) as stage:
        access = SessionAccess(stage, policy, watch=metrics)

Each server has its own registry; nothing is registered globally.
"""

from __future__ import annotations

from collections import Counter as Counts
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from attrs import fields
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from footlights.events import InterruptReason
from footlights.memory_claims import MEMORY_CLAIMS
from footlights.stage.stage import StageStatistics
from footlights.turn.lifecycle import TurnState
from footlights.turn.timeline import Part
from footlights_transports.server.measured_ledger import MeasuredLedger

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from footlights import Ledger, Stage
    from footlights.turn.summary import TurnSummary

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_LOOP_SAMPLES = 0.5
"""Seconds between two measurements of the lag of the event loop."""
_MAX_CANCELS = 10_000
"""Canceled turns that are not settled. There are never so many, unless `turn_settled` is not connected."""
_SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_LONG = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Satisfies `footlights_transports.access.session_access.AccessWatch`."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._canceled_at: dict[tuple[str, str], float] = {}
        measured = partial(Histogram, namespace="footlights", registry=registry)
        self._accept = measured("turn_accept_seconds", "How long accepting took.", buckets=_SHORT)
        self._first_token = measured(
            "turn_first_token_seconds",
            "Accepted until the first word, the wait for earlier turns included.",
            buckets=_LONG,
        )
        self._cancel = measured("turn_cancel_seconds", "Canceled until the terminal event.", buckets=_SHORT)
        self._commit = measured("turn_commit_seconds", "Terminal event until durably committed.", buckets=_SHORT)
        parts = measured(
            "turn_part_seconds",
            "Parts of the time from acceptance to commit. They have no gaps, so their sums add up.",
            labelnames=["part"],
            buckets=_LONG,
        )
        self._parts = {part: parts.labels(part.value) for part in Part}
        self._output_tokens = Counter(
            "footlights_output_tokens", "Tokens of models that count them.", registry=registry
        )
        self._memory_claims = Counter(
            "footlights_memory_claims",
            "Phrases of agents that claim to remember a chat. None can.",
            labelnames=["phrase"],
            registry=registry,
        )
        for phrase in MEMORY_CLAIMS:
            self._memory_claims.labels(phrase)
        self._batch = measured("ledger_batch_commits", "Commits in one write of the ledger.", buckets=_BATCHES)
        self._lag = measured("event_loop_lag_seconds", "How late a task was run.", buckets=_SHORT)

    def of_world(self) -> Metrics:
        """The same metrics, for one world of several: the ids of turns are a world's own."""
        its = copy(self)
        its._canceled_at = {}
        return its

    def watching(self, ledger: Ledger) -> MeasuredLedger:
        """The same ledger, with the sizes of its batches measured."""
        return MeasuredLedger(ledger, self._batch.observe)

    # -- input

    def turn_accepted(self, seconds: float) -> None:
        self._accept.observe(seconds)

    def turns_canceled(self, session_id: str, turn_ids: Collection[str], at: float) -> None:
        for turn_id in turn_ids:
            self._canceled_at[session_id, turn_id] = at
        while len(self._canceled_at) > _MAX_CANCELS:
            del self._canceled_at[next(iter(self._canceled_at))]

    def turn_settled(self, summary: TurnSummary) -> None:
        """For `open_stage(observe=...)`."""
        if summary.first_token_ms is not None:
            self._first_token.observe((summary.first_token_ms - summary.accepted_ms) / 1000)
        canceled_at = self._canceled_at.pop((summary.session_id, summary.turn_id), None)
        if canceled_at is not None:
            self._cancel.observe(max(0.0, summary.terminal_ms / 1000 - canceled_at))
        self._commit.observe((summary.committed_ms - summary.terminal_ms) / 1000)
        took: Counts[Part] = Counts()
        for each in summary.parts:
            took[each.part] += each.took_us
        for part, microseconds in took.items():
            self._parts[part].observe(microseconds / 1_000_000)
        self._output_tokens.inc(summary.output_tokens or 0)
        for phrase in summary.memory_claims:
            self._memory_claims.labels(phrase).inc()

    async def watch_event_loop(self) -> None:
        """Measure the lag of the event loop until cancelled."""
        while True:
            due = trio.current_time() + _LOOP_SAMPLES
            await trio.sleep_until(due)
            self._lag.observe(max(0.0, trio.current_time() - due))

    # -- output

    def render(self, stages: Collection[Stage], incidents: Mapping[str, int] | None = None) -> bytes:
        """All metrics in Prometheus' text format, of these stages together. It visits every session.

        `incidents` are the counts of `Incidents`.
        """
        of_stages = CollectorRegistry()
        of_stages.register(_StagesCollector(stages, incidents or {}))
        return generate_latest(self._registry) + generate_latest(of_stages)


class _StagesCollector(Collector):
    """The counts of the stages and of their servers."""

    def __init__(self, stages: Collection[Stage], incidents: Mapping[str, int]) -> None:
        self._stages = stages
        self._incidents = incidents

    def collect(self) -> Iterator[Metric]:
        now = _together(self._stages)
        yield _gauge("worlds", "Open worlds.", len(self._stages))
        yield _counted("turns", "Settled turns.", "outcome", {**dict.fromkeys(_OUTCOMES, 0), **now.turns_settled})
        yield _counted(
            "events_dropped",
            "Events that slow subscribers missed.",
            "delivery_class",
            {"best_effort": now.best_effort_dropped, "bounded": now.bounded_dropped},
        )
        yield _counted("incidents", "What clients were refused, and what failed for them.", "kind", self._incidents)
        yield CounterMetricFamily("footlights_turns_untraced", "Turns left out of the trace.", now.turns_untraced)
        open_turns = GaugeMetricFamily("footlights_open_turns", "Turns that are not settled.", labels=["state"])
        for state in TurnState:
            open_turns.add_metric([state.value], now.turns_by_state.get(state, 0))
        yield open_turns
        yield _gauge("sessions", "Open sessions.", now.sessions)
        yield _gauge("turns_running", "Turns whose actors run.", now.turns_running)
        yield _gauge("tools_running", "Tools that run.", now.tools_running)
        yield _gauge("subscribers", "Subscribers of all sessions.", now.subscribers)
        yield _gauge("commits_waiting", "Turns that wait for their commit.", now.commits_waiting)
        yield _gauge("events_waiting", "Events that subscribers have not taken.", now.events_waiting)
        yield _gauge("bytes_waiting", "What those take.", now.bytes_waiting)
        yield _gauge("bytes_retained", "What finished turns take that clients can resume.", now.bytes_retained)


def _together(stages: Collection[Stage]) -> StageStatistics:
    """The sums of the numbers, and of the tables of numbers."""
    each = [stage.statistics() for stage in stages]

    def added(name: str) -> Any:
        if name not in _TABLES:
            return sum(getattr(one, name) for one in each)
        total: Counts[Any] = Counts()
        for one in each:
            total.update(getattr(one, name))
        return total

    return StageStatistics(**{field.name: added(field.name) for field in fields(StageStatistics)})


_TABLES = ("turns_by_state", "turns_settled")
_OUTCOMES = ("ok", "fail_closed", *(reason.value for reason in InterruptReason))


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(f"footlights_{name}", documentation, value)


def _counted(name: str, documentation: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"footlights_{name}", documentation, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family
