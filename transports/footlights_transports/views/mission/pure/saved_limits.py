"""Saved limits: what of a history outlives a restart of the server.

These are ids, counts and times, without words and without digests of words, because short words can be guessed. A key
would not hide them: it would lie beside its digests. So after a restart a mission's callouts are known by type and
classification only (`Spoken.is_repeated_by`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from footlights_transports.views.mission.pure.history import BREAKER_OPEN_MS, KEEP_MS, DayCount, History, Spoken
from footlights_transports.views.mission.pure.terms import Classification, MissionEventType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue


def saved(history: History, now: int) -> dict[str, JsonValue]:
    """What of a history still matters, as plain JSON."""
    return {
        "latest_ms": history.latest_ms,
        "open_until_ms": history.open_until_ms,
        "failures": list(history.failures),
        "tenants": {name: [each.count, each.user_id] for name, each in history.tenants.items()},
        "spoken": [
            [tenant, mission, each.at_ms, each.event_type.value, each.classification.value]
            for tenant, missions in history.missions.items()
            for mission, spoken in missions.items()
            for each in spoken
            if now - each.at_ms < KEEP_MS
        ],
    }


def restored(state: Mapping[str, Any], now: int) -> History:
    """The history that was saved so. Raises `ValueError` if none was.

    Times after `now` count as now: the clock of the machine may have been set back since.
    """

    def no_later(at: int | None, latest: int = now) -> int | None:
        return None if at is None else min(at, latest)

    missions: dict[str, dict[str, tuple[Spoken, ...]]] = {}
    try:
        for tenant, mission, at, event_type, classification in state["spoken"]:
            own = missions.setdefault(tenant, {})
            entry = Spoken(min(at, now), MissionEventType(event_type), Classification(classification), None)
            own[mission] = (*own.get(mission, ()), entry)
        return History(
            latest_ms=no_later(state["latest_ms"]),
            open_until_ms=no_later(state["open_until_ms"], now + BREAKER_OPEN_MS),
            failures=tuple(min(at, now) for at in state["failures"]),
            tenants={name: DayCount(int(count), user_id) for name, (count, user_id) in state["tenants"].items()},
            missions=missions,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("These are no saved limits.") from error
