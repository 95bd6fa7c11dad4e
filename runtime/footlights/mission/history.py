"""What was spoken lately, as far as the next decision needs it: a value that is handed in and handed back.

It holds no words, only digests and times, and never more than its limits say: when it is full, nothing new is spoken
until something in it has passed. Times are milliseconds of whatever clock the host uses; that clock may stand still,
and if it goes back it is taken to stand still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from attrs import Factory, evolve, frozen

from footlights.mission.terms import Classification

if TYPE_CHECKING:
    from collections.abc import Mapping

COOLDOWN_MS = {
    Classification.INFO: 60_000,
    Classification.WARN: 30_000,
    Classification.CRITICAL: 10_000,
    Classification.ACTION: 5_000,
}
"""How long the same is not spoken again."""
URGENT = frozenset({Classification.CRITICAL, Classification.ACTION})
"""What the mission rate neither limits nor counts."""
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
MAX_TENANTS = 4_096
"""Tenants that spoke today."""

_KEEP_MS = VOICE_RATE_MS
"""The longest of the windows: what is older decides nothing."""

MissionKey: TypeAlias = tuple[str, str]
"""The tenant and the mission."""


@frozen
class Spoken:
    """One callout that was spoken, without its words."""

    at_ms: int
    dedupe_key: str
    is_urgent: bool


@frozen
class DayCount:
    """How many callouts a tenant spoke on a day."""

    day: int
    count: int


@frozen(kw_only=True)
class History:
    """What was spoken lately. It is never changed: what is spoken next makes a new one."""

    missions: Mapping[MissionKey, tuple[Spoken, ...]] = Factory(dict[MissionKey, tuple[Spoken, ...]])
    """At most `VOICE_RATE` for each mission, the oldest first."""
    tenants: Mapping[str, DayCount] = Factory(dict[str, DayCount])
    failures: tuple[int, ...] = ()
    """When the voice failed last, at most `BREAKER_FAILURES` times."""
    open_until_ms: int = 0
    """Until then the voice is left alone."""
    latest_ms: int = 0
    """The latest time that left a mark here."""

    def now(self, given_ms: int) -> int:
        """The time to go by."""
        return max(given_ms, self.latest_ms)

    # -- how long until it may be spoken; 0 is now

    def dedupe_wait(self, mission: MissionKey, dedupe_key: str, classification: Classification, now: int) -> int:
        spoken = [each.at_ms for each in self.missions.get(mission, ()) if each.dedupe_key == dedupe_key]
        return max(0, spoken[-1] + COOLDOWN_MS[classification] - now) if spoken else 0

    def mission_wait(self, mission: MissionKey, now: int) -> int:
        counted = [each.at_ms for each in self.missions.get(mission, ()) if not each.is_urgent]
        return _wait(counted, MISSION_RATE, MISSION_RATE_MS, now)

    def voice_wait(self, mission: MissionKey, now: int) -> int:
        spoken = [each.at_ms for each in self.missions.get(mission, ())]
        return _wait(spoken, VOICE_RATE, VOICE_RATE_MS, now)

    def room_wait(self, mission: MissionKey, now: int) -> int:
        """Until the tenant has room for this mission. What other tenants do does not matter."""
        if mission in self.missions:
            return 0
        places = sorted(spoken[-1].at_ms for (tenant, _), spoken in self.missions.items() if tenant == mission[0])
        return _wait(places, MAX_MISSIONS_PER_TENANT, _KEEP_MS, now)

    def budget_wait(self, tenant_id: str, now: int) -> int:
        today = now // DAY_MS
        known = self.tenants.get(tenant_id)
        is_spent = known is not None and known.day == today and known.count >= DAY_BUDGET
        return (today + 1) * DAY_MS - now if is_spent else 0

    def tenant_wait(self, tenant_id: str, now: int) -> int:
        """Until there is room for this tenant."""
        today = now // DAY_MS
        is_full = tenant_id not in self.tenants and len(self.tenants) >= MAX_TENANTS
        return (today + 1) * DAY_MS - now if is_full and all(each.day == today for each in self.tenants.values()) else 0

    def breaker_wait(self, now: int) -> int:
        return max(0, self.open_until_ms - now)

    # -- what comes after

    def spoke(self, mission: MissionKey, spoken: Spoken) -> History:
        """With this callout."""
        now, tenant_id = spoken.at_ms, mission[0]
        today = now // DAY_MS
        missions = {key: each for key, each in self.missions.items() if now - each[-1].at_ms < _KEEP_MS}
        recent = [each for each in missions.get(mission, ()) if now - each.at_ms < _KEEP_MS]
        missions[mission] = (*recent, spoken)
        tenants = {key: each for key, each in self.tenants.items() if each.day == today}
        tenants[tenant_id] = DayCount(today, tenants.get(tenant_id, DayCount(today, 0)).count + 1)
        return evolve(self, missions=missions, tenants=tenants, latest_ms=now)

    def unspoke(self, mission: MissionKey, spoken: Spoken) -> History:
        """As if this callout had not been spoken: what it took is given back."""
        missions, tenants = {**self.missions}, {**self.tenants}
        left = list(missions.pop(mission, ()))
        if spoken in left:
            left.remove(spoken)
        if left:
            missions[mission] = tuple(left)
        counted = tenants.get(mission[0])
        if counted is not None and counted.day == spoken.at_ms // DAY_MS:
            tenants[mission[0]] = DayCount(counted.day, counted.count - 1)
            if counted.count == 1:
                del tenants[mission[0]]
        return evolve(self, missions=missions, tenants=tenants)

    def failed(self, now: int) -> History:
        """With a failure of the voice, which may open the breaker."""
        recent = [at for at in self.failures if now - at < BREAKER_WINDOW_MS]
        failures = (*recent, now)[-BREAKER_FAILURES:]
        is_open = len(failures) == BREAKER_FAILURES
        open_until_ms = now + BREAKER_OPEN_MS if is_open else self.open_until_ms
        return evolve(self, failures=failures, open_until_ms=open_until_ms, latest_ms=now)


def _wait(spoken: list[int], rate: int, window_ms: int, now: int) -> int:
    """Until fewer than so many lie within the window."""
    return max(0, spoken[-rate] + window_ms - now) if len(spoken) >= rate else 0
