"""Saved limits: counts and times outlive a restart, words and their digests do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
from attrs import evolve

from footlights_transports.views.mission.pure.history import (
    BREAKER_FAILURES,
    BREAKER_OPEN_MS,
    DAY_BUDGET,
    DAY_MS,
    VOICE_RATE,
    VOICE_RATE_MS,
    DayCount,
    History,
)
from footlights_transports.views.mission.pure.policy import voice_failed
from footlights_transports.views.mission.pure.saved_limits import restored, saved
from footlights_transports.views.mission.pure.terms import Classification, MissionEventType
from tests.kit.callouts import LISTENING, NOON, Told, mission_event, verdict

if TYPE_CHECKING:
    from footlights_transports.views.mission.pure.payload import MissionEvent

INFO, WARN, CRITICAL, ACTION = Classification


def event(words: str, classification: Classification = INFO, mission: str = "heist") -> MissionEvent:
    return mission_event(words, MissionEventType.STATE_CHANGE, classification, mission)


class Server(Told):
    """A server whose limits are kept in a file."""

    def restart(self, at: int) -> None:
        self.history = restored(orjson.loads(orjson.dumps(saved(self.history, NOON + at))), NOON + at)


SPOKEN = (None, 0)


@pytest.mark.parametrize(("classification", "cooldown"), [(INFO, 60_000), (WARN, 30_000)])
def test_a_cooldown_survives_for_the_kind_of_event(classification: Classification, cooldown: int) -> None:
    server = Server()
    server.tell(event("The guard woke.", classification), 0)
    server.restart(1_000)
    for words in ("The guard woke.", "The door is open."):
        assert verdict(server.tell(event(words, classification), 1_000)) == ("dedupe_cooldown", cooldown - 1_000)
    assert verdict(server.tell(event("The guard woke.", classification, "other"), 1_000)) == SPOKEN
    timer = mission_event("Two minutes are left.", MissionEventType.TIMER_UPDATE, classification)
    assert verdict(server.tell(timer, 1_000)) == SPOKEN
    assert verdict(server.tell(event("The guard woke.", classification), cooldown)) == SPOKEN


@pytest.mark.parametrize("classification", [CRITICAL, ACTION])
def test_what_is_urgent_is_rather_said_twice_than_never(classification: Classification) -> None:
    server = Server()
    server.tell(event("Fire.", classification), 0)
    server.restart(0)
    assert verdict(server.tell(event("Flood.", classification), 0)) == SPOKEN


@pytest.mark.shows("callouts-61")
def test_the_rates_of_a_mission_survive() -> None:
    server = Server()
    server.tell(event("Lit."), 0)
    server.tell(event("The guard woke.", WARN), 0)
    server.restart(1_000)
    timer = mission_event("Two minutes are left.", MissionEventType.TIMER_UPDATE, INFO)
    assert verdict(server.tell(timer, 1_000)) == ("mission_rate_limited", 14_000)
    for number in range(VOICE_RATE - 2):
        server.tell(event(f"Fire {number}.", CRITICAL), 1_000)
    server.restart(2_000)
    assert verdict(server.tell(event("Fire!", CRITICAL), 2_000)) == ("voice_rate_limited", VOICE_RATE_MS - 2_000)


@pytest.mark.shows("callouts-61")
def test_the_budget_of_a_tenant_survives_until_the_day_ends() -> None:
    server = Server(LISTENING.of_user("ann"))
    server.tell(event("Lit."), 0)
    server.history = evolve(server.history, tenants={"ann:default": DayCount(DAY_BUDGET, "ann")})
    server.restart(1_000)
    assert verdict(server.tell(event("Fire.", CRITICAL), 1_000)) == ("voice_budget_exceeded", DAY_MS // 2 - 1_000)
    server.restart(DAY_MS)
    assert verdict(server.tell(event("Fire.", CRITICAL), DAY_MS)) == SPOKEN


@pytest.mark.shows("callouts-61")
def test_the_breaker_survives_with_its_failures() -> None:
    server = Server()
    for number in range(BREAKER_FAILURES):
        server.restart(number)
        failed = voice_failed(server.tell(event(f"Fire {number}.", CRITICAL), number), server.history, NOON + number)
        server.history = failed.history
    server.restart(1_000)
    left = BREAKER_OPEN_MS - 1_000 + BREAKER_FAILURES - 1
    assert verdict(server.tell(event("Fire.", CRITICAL), 1_000)) == ("voice_backend_error", left)


@pytest.mark.shows("callouts-61")
def test_no_words_and_no_digests_of_words_are_saved() -> None:
    server = Server()
    key = server.tell(event("The guard woke."), 0).payload.suppression.dedupe_key
    text = orjson.dumps(saved(server.history, NOON)).decode()
    assert "guard" not in text
    assert key not in text
    assert orjson.loads(text) == {
        "latest_ms": NOON,
        "open_until_ms": None,
        "failures": [],
        "tenants": {"default": [1, None]},
        "spoken": [["default", "heist", NOON, "state_change", "info"]],
    }


def test_what_no_longer_matters_is_not_saved() -> None:
    server = Server()
    server.tell(event("Lit."), 0)
    assert saved(server.history, NOON + VOICE_RATE_MS)["spoken"] == []


def test_times_that_are_ahead_of_the_clock_count_as_now() -> None:
    """The clock of the machine was a year ahead."""
    server, year = Server(), 365 * DAY_MS
    for number in range(BREAKER_FAILURES):
        decision = server.tell(event(f"Fire {number}.", CRITICAL), year)
        server.history = voice_failed(decision, server.history, NOON + year).history
    server.restart(0)
    assert server.history.latest_ms == NOON
    assert verdict(server.tell(event("Fire.", CRITICAL), 0)) == ("voice_backend_error", BREAKER_OPEN_MS)
    assert verdict(server.tell(event("Fire.", CRITICAL), BREAKER_OPEN_MS)) == SPOKEN


GOOD: dict[str, Any] = {"latest_ms": 1, "open_until_ms": None, "failures": [], "tenants": {}, "spoken": []}


@pytest.mark.parametrize(
    "wrong",
    [
        {"latest_ms": "1"},
        {"failures": ["x"]},
        {"tenants": {"t": 1}},
        {"tenants": []},
        {"spoken": [["t", "m", 1, "party", "info"]]},
        {"spoken": [["t", "m", "x", "debrief", "info"]]},
        {"spoken": [1]},
    ],
)
def test_what_is_not_saved_limits_is_refused(wrong: dict[str, Any]) -> None:
    assert restored(GOOD, 1) == History(latest_ms=1)
    states: list[Any] = [GOOD | wrong, {}, []]
    for state in states:
        with pytest.raises(ValueError, match="no saved limits"):
            restored(state, 1)
