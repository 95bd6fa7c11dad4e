"""Saved limits: what of a history outlives a restart of the server.

These are ids, counts and times, without words and without digests of words, because short words can be guessed. A key
would not hide them: it would lie beside its digests. So after a restart a mission's callouts are known by type and
classification only (`Spoken.is_repeated_by`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from footlights_transports.views.mission.pure.history import (
    BREAKER_OPEN_MS,
    KEEP_MS,
    DayCount,
    History,
    Spoken,
)
from footlights_transports.views.mission.pure.terms import Classification, MissionEventType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from footlights.events import JsonValue


def saved(history: History, now: int) -> dict[str, JsonValue]:
    """What of a history still matters, as plain JSON."""
    return {
        "latest_ms": history.latest_ms,
        "open_until_ms": history.open_until_ms,
        "failures": list(history.failures),
        "tenants": {name: [each.count, each.user_id] for name, each in history.tenants.items()},
        "missions": {
            tenant: {name: [_entry(each) for each in spoken] for name, spoken in recent.items()}
            for tenant, missions in history.missions.items()
            if (recent := {name: each for name, each in missions.items() if now - each[-1].at_ms < KEEP_MS})
        },
    }


def restored(state: Mapping[str, Any], now: int) -> History:
    """The history that was saved so. Raises `ValueError` if none was.

    Times after `now` count as now: the clock of the machine may have been set back since.
    """
    try:
        return History(
            latest_ms=_no_later(now, state["latest_ms"]),
            open_until_ms=_no_later(now + BREAKER_OPEN_MS, state["open_until_ms"]),
            failures=tuple(min(at, now) for at in state["failures"]),
            tenants={name: DayCount(int(count), user_id) for name, (count, user_id) in state["tenants"].items()},
            missions={
                tenant: {name: _spoken(entries, now) for name, entries in missions.items() if entries}
                for tenant, missions in state["missions"].items()
            },
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("These are no saved limits.") from error


def _entry(spoken: Spoken) -> JsonValue:
    return [spoken.at_ms, spoken.event_type.value, spoken.classification.value]


def _spoken(entries: Iterable[tuple[int, str, str]], now: int) -> tuple[Spoken, ...]:
    return tuple(
        Spoken(min(at, now), MissionEventType(event_type), Classification(classification), None)
        for at, event_type, classification in entries
    )


def _no_later(latest: int, at: int | None) -> int | None:
    return None if at is None else min(at, latest)
