"""What was spoken lately, as far as the next decision needs it: a value that is handed in and handed back.

It holds no words, only digests and times, and never more than its limits say: when it is full, nothing new is spoken
until something in it has passed. Times are milliseconds of whatever clock the host uses; that clock may stand still,
and if it goes back it is taken to stand still.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from attrs import Factory, evolve, frozen

from footlights_transports.views.mission.pure.terms import Classification

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
MAX_TENANTS_PER_USER = 64
"""Tenants of one user that spoke today. Whoever has no name is not counted."""
MAX_TENANTS = 4_096
"""Tenants that spoke today."""

_KEEP_MS = VOICE_RATE_MS
"""The longest of the windows: what is older decides nothing."""

_FORGOTTEN_AT_ONCE = 2
"""Tenants that are looked at when something is spoken: more than one, so that they go faster than they come."""

MissionKey: TypeAlias = tuple[str, str]
"""The tenant and the mission."""


@frozen
class Spoken:
    """One callout that was spoken, without its words."""

    at_ms: int
    dedupe_key: str
    is_urgent: bool


SpokenByMission: TypeAlias = "Mapping[str, tuple[Spoken, ...]]"
"""At most `VOICE_RATE` for each mission, the oldest first."""


@frozen
class DayCount:
    """How many callouts a tenant spoke in a day."""

    count: int
    user_id: str | None = None
    """Whose tenant it is, if that is known."""


@frozen(kw_only=True)
class History:
    """What was spoken lately. It is never changed: what is spoken next makes a new one.

    How long that takes does not depend on how many missions other tenants have.
    """

    missions: Mapping[str, SpokenByMission] = Factory(dict[str, SpokenByMission])
    """What each tenant's missions spoke, all of the last minute and little more; who spoke last is the last."""
    tenants: Mapping[str, DayCount] = Factory(dict[str, DayCount])
    """Those that spoke on the day of `latest_ms`."""
    failures: tuple[int, ...] = ()
    """When the voice failed last, at most `BREAKER_FAILURES` times."""
    open_until_ms: int | None = None
    """Until then the voice is left alone."""
    latest_ms: int | None = None
    """The latest time that left a mark here."""

    def now(self, given_ms: int) -> int:
        """The time to go by."""
        return given_ms if self.latest_ms is None else max(given_ms, self.latest_ms)

    def spoken_in(self, mission: MissionKey) -> tuple[Spoken, ...]:
        """What a mission spoke lately, the oldest first."""
        return self.missions.get(mission[0], {}).get(mission[1], ())

    def tenants_on(self, now: int) -> Mapping[str, DayCount]:
        """The tenants that have spoken on that day."""
        is_today = self.latest_ms is not None and self.latest_ms // DAY_MS == now // DAY_MS
        return self.tenants if is_today else {}

    # -- how long until it may be spoken; 0 is now

    def dedupe_wait(self, mission: MissionKey, dedupe_key: str, classification: Classification, now: int) -> int:
        spoken = [each.at_ms for each in self.spoken_in(mission) if each.dedupe_key == dedupe_key]
        return max(0, spoken[-1] + COOLDOWN_MS[classification] - now) if spoken else 0

    def mission_wait(self, mission: MissionKey, now: int) -> int:
        counted = [each.at_ms for each in self.spoken_in(mission) if not each.is_urgent]
        return _wait(counted, MISSION_RATE, MISSION_RATE_MS, now)

    def voice_wait(self, mission: MissionKey, now: int) -> int:
        return _wait([each.at_ms for each in self.spoken_in(mission)], VOICE_RATE, VOICE_RATE_MS, now)

    def room_wait(self, mission: MissionKey, now: int) -> int:
        """Until the tenant has room for this mission. What other tenants do does not matter."""
        missions = self.missions.get(mission[0], {})
        if mission[1] in missions:
            return 0
        places = sorted(spoken[-1].at_ms for spoken in missions.values())
        return _wait(places, MAX_MISSIONS_PER_TENANT, _KEEP_MS, now)

    def budget_wait(self, tenant_id: str, now: int) -> int:
        known = self.tenants_on(now).get(tenant_id)
        return _until_tomorrow(now) if known is not None and known.count >= DAY_BUDGET else 0

    def user_wait(self, tenant_id: str, user_id: str | None, now: int) -> int:
        """Until the user has room for this tenant. What other users do does not matter."""
        tenants = self.tenants_on(now)
        if user_id is None or tenant_id in tenants:
            return 0
        others = sum(each.user_id == user_id for each in tenants.values())
        return _until_tomorrow(now) if others >= MAX_TENANTS_PER_USER else 0

    def tenant_wait(self, tenant_id: str, now: int) -> int:
        """Until there is room for this tenant."""
        tenants = self.tenants_on(now)
        return _until_tomorrow(now) if tenant_id not in tenants and len(tenants) >= MAX_TENANTS else 0

    def breaker_wait(self, now: int) -> int:
        return 0 if self.open_until_ms is None else max(0, self.open_until_ms - now)

    # -- what comes after

    def spoke(self, mission: MissionKey, spoken: Spoken, user_id: str | None = None) -> History:
        """With this callout."""
        now, (tenant_id, mission_id) = spoken.at_ms, mission
        others = self._missions_but_of(tenant_id, now)
        missions = {
            key: each for key, each in self.missions.get(tenant_id, {}).items() if now - each[-1].at_ms < _KEEP_MS
        }
        missions[mission_id] = (*(each for each in self.spoken_in(mission) if now - each.at_ms < _KEEP_MS), spoken)
        tenants = self.tenants_on(now)
        count = DayCount(tenants[tenant_id].count + 1 if tenant_id in tenants else 1, user_id)
        return evolve(
            self, missions={**others, tenant_id: missions}, tenants={**tenants, tenant_id: count}, latest_ms=now
        )

    def unspoke(self, mission: MissionKey, spoken: Spoken) -> History:
        """As if this callout had not been spoken: what it took is given back."""
        (tenant_id, mission_id), left = mission, [each for each in self.spoken_in(mission) if each != spoken]
        own = {**self.missions.get(tenant_id, {}), mission_id: tuple(left)}
        missions = {**self.missions, tenant_id: {key: each for key, each in own.items() if each}}
        if not missions[tenant_id]:
            del missions[tenant_id]
        tenants = {**self.tenants}
        counted = self.tenants_on(spoken.at_ms).get(tenant_id)
        if counted is not None:
            tenants[tenant_id] = evolve(counted, count=counted.count - 1)
            if counted.count == 1:
                del tenants[tenant_id]
        return evolve(self, missions=missions, tenants=tenants)

    def failed(self, now: int) -> History:
        """With a failure of the voice, which may open the breaker."""
        recent = [at for at in self.failures if now - at < BREAKER_WINDOW_MS]
        failures = (*recent, now)[-BREAKER_FAILURES:]
        is_open = len(failures) == BREAKER_FAILURES
        open_until_ms = now + BREAKER_OPEN_MS if is_open else self.open_until_ms
        tenants = self.tenants_on(now)
        return evolve(self, tenants=tenants, failures=failures, open_until_ms=open_until_ms, latest_ms=now)

    def _missions_but_of(self, tenant_id: str, now: int) -> dict[str, SpokenByMission]:
        """The missions of all other tenants, without some of those that are silent for so long that it is no matter."""
        missions = {**self.missions}
        missions.pop(tenant_id, None)
        for other in [*islice(missions, _FORGOTTEN_AT_ONCE)]:
            if all(now - spoken[-1].at_ms >= _KEEP_MS for spoken in missions[other].values()):
                del missions[other]
        return missions


def _until_tomorrow(now: int) -> int:
    return (now // DAY_MS + 1) * DAY_MS - now


def _wait(spoken: list[int], rate: int, window_ms: int, now: int) -> int:
    """Until fewer than so many lie within the window."""
    return max(0, spoken[-rate] + window_ms - now) if len(spoken) >= rate else 0
