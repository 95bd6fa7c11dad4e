"""History: the recent callouts and voice failures that the next decision depends on. An immutable value.

It holds digests and times, never words, and its size is bounded: when it is full, nothing new is spoken until an entry
has expired. Times are milliseconds of any clock. A clock that goes back is treated as one that stands still.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from attrs import Factory, evolve, frozen

from footlights_transports.views.mission.pure.terms import (
    Classification,
    LimitScope,
    MissionEventType,
    SuppressionReason,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COOLDOWN_MS = {
    Classification.INFO: 60_000,
    Classification.WARN: 30_000,
    Classification.CRITICAL: 10_000,
    Classification.ACTION: 5_000,
}
"""Time in which the same callout is not repeated."""
URGENT = frozenset({Classification.CRITICAL, Classification.ACTION})
"""Classifications that the mission rate neither limits nor counts."""
MISSION_RATE = 2
MISSION_RATE_MS = 15_000
VOICE_RATE = 12
VOICE_RATE_MS = 60_000
DAY_BUDGET = 500
DAY_MS = 86_400_000
BREAKER_FAILURES = 3
BREAKER_WINDOW_MS = 60_000
BREAKER_OPEN_MS = 30_000

MAX_MISSIONS_PER_TENANT = 256
"""Missions of one tenant that spoke within the last minute."""
MAX_TENANTS_PER_USER = 64
"""Tenants of one user that spoke today. Without users there is no such limit."""
MAX_TENANTS = 4_096
"""Tenants that spoke today."""

KEEP_MS = VOICE_RATE_MS
"""The longest window: older entries do not matter."""
_EXPIRED_AT_ONCE = 2
"""Tenants that each new entry checks for expiry: more than one, so that tenants expire faster than they are added."""

MissionKey: TypeAlias = tuple[str, str]
"""The tenant and the mission."""


@frozen
class Spoken:
    """One spoken callout, without its words."""

    at_ms: int
    event_type: MissionEventType
    classification: Classification
    dedupe_key: str | None
    """None after a restart, because no digest of words is kept."""

    @property
    def is_urgent(self) -> bool:
        return self.classification in URGENT

    def is_repeated_by(self, other: Spoken) -> bool:
        """Whether another callout of the mission says the same.

        After a restart any of the same kind may, so it is taken for a repetition; but an urgent one is better said
        twice than never.
        """
        if self.dedupe_key is not None:
            return self.dedupe_key == other.dedupe_key
        kind = self.event_type, self.classification
        return not self.is_urgent and kind == (other.event_type, other.classification)


SpokenByMission: TypeAlias = "Mapping[str, tuple[Spoken, ...]]"
"""At most `VOICE_RATE` callouts for each mission, the oldest first."""


@frozen
class DayCount:
    """The number of callouts that a tenant spoke in a day."""

    count: int
    user_id: str | None = None
    """The user who owns the tenant, if known."""


@frozen(kw_only=True)
class History:
    """The recent callouts. Its methods return new histories.

    The cost of a new entry does not depend on the number of missions of other tenants.
    """

    missions: Mapping[str, SpokenByMission] = Factory(dict[str, SpokenByMission])
    """The callouts of each tenant's missions within about the last minute; the tenant that spoke last is the last."""
    tenants: Mapping[str, DayCount] = Factory(dict[str, DayCount])
    """The tenants that spoke on the day of `latest_ms`."""
    failures: tuple[int, ...] = ()
    """The times of the latest voice failures, at most `BREAKER_FAILURES`."""
    open_until_ms: int | None = None
    """The time until which the circuit breaker keeps the voice paused."""
    latest_ms: int | None = None
    """The latest time of any entry."""

    def now(self, given_ms: int) -> int:
        """The given time, but never earlier than the latest entry."""
        return given_ms if self.latest_ms is None else max(given_ms, self.latest_ms)

    def spoken_in(self, mission: MissionKey) -> tuple[Spoken, ...]:
        """The recent callouts of a mission, the oldest first."""
        return self.missions.get(mission[0], {}).get(mission[1], ())

    def waits(
        self, mission: MissionKey, wanted: Spoken, user_id: str | None
    ) -> Iterator[tuple[SuppressionReason, int, LimitScope | None]]:
        """The limits in the order of the contract: the reason, the time until it allows the callout, the owner."""
        now, (tenant_id, mission_id) = wanted.at_ms, mission
        spoken = self.spoken_in(mission)
        same = [each.at_ms for each in spoken if each.is_repeated_by(wanted)]
        yield SuppressionReason.DEDUPE_COOLDOWN, _wait(same, 1, COOLDOWN_MS[wanted.classification], now), None
        if not wanted.is_urgent:
            counted = [each.at_ms for each in spoken if not each.is_urgent]
            wait = _wait(counted, MISSION_RATE, MISSION_RATE_MS, now)
            yield SuppressionReason.MISSION_RATE_LIMITED, wait, LimitScope.MISSION
        wait = _wait([each.at_ms for each in spoken], VOICE_RATE, VOICE_RATE_MS, now)
        yield SuppressionReason.VOICE_RATE_LIMITED, wait, LimitScope.MISSION
        missions = self.missions.get(tenant_id, {})
        if mission_id not in missions:
            last = sorted(each[-1].at_ms for each in missions.values())
            wait = _wait(last, MAX_MISSIONS_PER_TENANT, KEEP_MS, now)
            yield SuppressionReason.VOICE_RATE_LIMITED, wait, LimitScope.MISSIONS
        for scope, is_reached in self._day_limits(tenant_id, user_id, now):
            yield SuppressionReason.VOICE_BUDGET_EXCEEDED, DAY_MS - now % DAY_MS if is_reached else 0, scope
        yield SuppressionReason.VOICE_BACKEND_ERROR, self.breaker_wait(now), None

    def _day_limits(self, tenant_id: str, user_id: str | None, now: int) -> Iterator[tuple[LimitScope, bool]]:
        tenants = self._tenants_on(now)
        if tenant_id in tenants:
            yield LimitScope.TENANT, tenants[tenant_id].count >= DAY_BUDGET
            return
        if user_id is not None:
            yield LimitScope.USER, sum(each.user_id == user_id for each in tenants.values()) >= MAX_TENANTS_PER_USER
        yield LimitScope.SERVER, len(tenants) >= MAX_TENANTS

    def breaker_wait(self, now: int) -> int:
        """The time until the circuit breaker closes."""
        return 0 if self.open_until_ms is None else max(0, self.open_until_ms - now)

    def spoke(self, mission: MissionKey, spoken: Spoken, user_id: str | None = None) -> History:
        """The history with this callout."""
        now, (tenant_id, mission_id) = spoken.at_ms, mission
        others = self._missions_without(tenant_id, now)
        missions = {
            key: each for key, each in self.missions.get(tenant_id, {}).items() if now - each[-1].at_ms < KEEP_MS
        }
        missions[mission_id] = (*(each for each in self.spoken_in(mission) if now - each.at_ms < KEEP_MS), spoken)
        tenants = self._tenants_on(now)
        count = DayCount(tenants[tenant_id].count + 1 if tenant_id in tenants else 1, user_id)
        return evolve(
            self, missions={**others, tenant_id: missions}, tenants={**tenants, tenant_id: count}, latest_ms=now
        )

    def unspoke(self, mission: MissionKey, spoken: Spoken) -> History:
        """The history without this callout: its place in every limit is free again."""
        (tenant_id, mission_id), left = mission, [each for each in self.spoken_in(mission) if each != spoken]
        own = {**self.missions.get(tenant_id, {}), mission_id: tuple(left)}
        missions = {**self.missions, tenant_id: {key: each for key, each in own.items() if each}}
        if not missions[tenant_id]:
            del missions[tenant_id]
        tenants = {**self.tenants}
        counted = self._tenants_on(spoken.at_ms).get(tenant_id)
        if counted is not None:
            tenants[tenant_id] = evolve(counted, count=counted.count - 1)
            if counted.count == 1:
                del tenants[tenant_id]
        return evolve(self, missions=missions, tenants=tenants)

    def failed(self, now: int) -> History:
        """The history with a voice failure, which may open the circuit breaker."""
        recent = [at for at in self.failures if now - at < BREAKER_WINDOW_MS]
        failures = (*recent, now)[-BREAKER_FAILURES:]
        open_until_ms = now + BREAKER_OPEN_MS if len(failures) == BREAKER_FAILURES else self.open_until_ms
        tenants = self._tenants_on(now)
        return evolve(self, tenants=tenants, failures=failures, open_until_ms=open_until_ms, latest_ms=now)

    def _tenants_on(self, now: int) -> Mapping[str, DayCount]:
        """The tenants that have spoken on that day."""
        is_today = self.latest_ms is not None and self.latest_ms // DAY_MS == now // DAY_MS
        return self.tenants if is_today else {}

    def _missions_without(self, tenant_id: str, now: int) -> dict[str, SpokenByMission]:
        """The missions of all other tenants, without some of the tenants whose callouts have all expired."""
        missions = {**self.missions}
        missions.pop(tenant_id, None)
        for other in [*islice(missions, _EXPIRED_AT_ONCE)]:
            if all(now - spoken[-1].at_ms >= KEEP_MS for spoken in missions[other].values()):
                del missions[other]
        return missions


def _wait(spoken: list[int], rate: int, window_ms: int, now: int) -> int:
    """The time until fewer than `rate` callouts lie within the window; 0 is now."""
    return max(0, spoken[-rate] + window_ms - now) if len(spoken) >= rate else 0
