"""History: cooldowns, rates, budgets and the breaker. Times are milliseconds."""

from __future__ import annotations

import pytest
from attrs import evolve

from footlights_transports.views.mission.pure.history import (
    DAY_MS,
    MAX_MISSIONS_PER_TENANT,
    MAX_TENANTS,
    MAX_TENANTS_PER_USER,
    DayCount,
    History,
    Spoken,
)
from footlights_transports.views.mission.pure.matrix import MATRIX, row_of
from footlights_transports.views.mission.pure.payload import Context, MissionEvent
from footlights_transports.views.mission.pure.policy import decide, voice_dropped, voice_failed
from footlights_transports.views.mission.pure.terms import (
    Classification,
    LimitScope,
    MissionEventType,
    SuppressionReason,
)
from tests.kit.callouts import LISTENING, NOON, Told, mission_event, verdict

FIRE = MissionEventType.STATE_CHANGE, Classification.CRITICAL


def event(words: str, classification: Classification = Classification.INFO, mission: str = "heist") -> MissionEvent:
    return mission_event(words, MissionEventType.STATE_CHANGE, classification, mission)


SPOKEN = (None, 0)
HEIST = ("default", "heist")

# -- cooldowns


@pytest.mark.shows("callouts-36", "callouts-37")
@pytest.mark.parametrize(
    ("classification", "cooldown"),
    [
        (Classification.INFO, 60_000),
        (Classification.WARN, 30_000),
        (Classification.CRITICAL, 10_000),
        (Classification.ACTION, 5_000),
    ],
)
def test_the_same_callout_is_not_repeated_during_its_cooldown(classification: Classification, cooldown: int) -> None:
    told = Told()
    assert verdict(told.tell(event("Lit.", classification), 0)) == SPOKEN
    assert verdict(told.tell(event("LIT", classification), 0)) == ("dedupe_cooldown", cooldown)
    assert verdict(told.tell(event("Lit.", classification), cooldown - 1)) == ("dedupe_cooldown", 1)
    assert verdict(told.tell(event("Lit.", classification), cooldown)) == SPOKEN


def test_a_suppressed_repetition_does_not_restart_the_cooldown() -> None:
    told = Told()
    told.tell(event("Lit."), 0)
    told.tell(event("Lit."), 59_000)
    assert verdict(told.tell(event("Lit."), 60_000)) == SPOKEN


def test_a_cooldown_begins_with_the_latest_repetition() -> None:
    told = Told()
    for at in (0, 10_000):
        assert verdict(told.tell(event("Fire.", Classification.CRITICAL), at)) == SPOKEN
    assert verdict(told.tell(event("Fire.", Classification.CRITICAL), 15_000)) == ("dedupe_cooldown", 5_000)


def test_limits_of_missions_and_tenants_are_independent() -> None:
    told = Told()
    told.tell(event("Lit."), 0)
    assert verdict(told.tell(event("Lit.", mission="other"), 0)) == SPOKEN
    told.context = evolve(LISTENING, tenant_id="other")
    assert verdict(told.tell(event("Lit."), 0)) == SPOKEN


# -- the mission rate


@pytest.mark.shows("callouts-36", "callouts-37")
def test_a_mission_speaks_two_events_that_are_not_urgent_in_15_seconds() -> None:
    told = Told()
    assert verdict(told.tell(event("One."), 0)) == SPOKEN
    assert verdict(told.tell(event("Two.", Classification.WARN), 1_000)) == SPOKEN
    assert verdict(told.tell(event("Three."), 1_000)) == ("mission_rate_limited", 14_000)
    assert verdict(told.tell(event("Three."), 14_999)) == ("mission_rate_limited", 1)
    assert verdict(told.tell(event("Three."), 15_000)) == SPOKEN
    assert verdict(told.tell(event("Four."), 15_000)) == ("mission_rate_limited", 1_000)


@pytest.mark.shows("callouts-38")
@pytest.mark.parametrize("urgent", [Classification.CRITICAL, Classification.ACTION])
def test_urgent_events_are_neither_limited_nor_counted_by_the_mission_rate(urgent: Classification) -> None:
    told = Told()
    for number in range(4):
        assert verdict(told.tell(event(f"Fire {number}.", urgent), 0)) == SPOKEN
    assert verdict(told.tell(event("One."), 0)) == SPOKEN
    assert verdict(told.tell(event("Two."), 0)) == SPOKEN
    assert verdict(told.tell(event("Three."), 0)) == ("mission_rate_limited", 15_000)
    assert verdict(told.tell(event("Fire again.", urgent), 0)) == SPOKEN


# -- the voice


@pytest.mark.shows("callouts-53")
def test_a_mission_speaks_twelve_times_a_minute() -> None:
    told = Told()
    for number in range(12):
        assert verdict(told.tell(event(f"Fire {number}.", Classification.CRITICAL), number * 1_000)) == SPOKEN
    assert verdict(told.tell(event("More.", Classification.CRITICAL), 12_000)) == ("voice_rate_limited", 48_000)
    assert verdict(told.tell(event("More.", Classification.CRITICAL, "other"), 12_000)) == SPOKEN
    assert verdict(told.tell(event("More.", Classification.CRITICAL), 60_000)) == SPOKEN
    assert verdict(told.tell(event("And more.", Classification.CRITICAL), 60_000)) == ("voice_rate_limited", 1_000)


@pytest.mark.shows("callouts-38")
def test_a_tenant_speaks_500_times_a_day() -> None:
    told = Told()
    for number in range(500):
        assert verdict(told.tell(event(f"{number}.", Classification.CRITICAL, f"m{number % 50}"), 0)) == SPOKEN
    until_midnight = DAY_MS // 2
    refused = ("voice_budget_exceeded", until_midnight)
    assert verdict(told.tell(event("Fire.", Classification.CRITICAL, "m500"), 0)) == refused
    told.context = evolve(LISTENING, tenant_id="other")
    assert verdict(told.tell(event("Fire.", Classification.CRITICAL, "m500"), 0)) == SPOKEN
    told.context = LISTENING
    last = event("Fire.", Classification.CRITICAL, "m501")
    assert verdict(told.tell(last, until_midnight - 1)) == ("voice_budget_exceeded", 1)
    assert verdict(told.tell(last, until_midnight)) == SPOKEN


# -- the breaker


def test_a_failed_voice_is_reported_and_frees_its_place_in_the_limits() -> None:
    told = Told()
    decision = told.fail(event("Lit."), 0)
    assert verdict(decision) == ("voice_backend_error", 0)
    assert not decision.speak
    assert decision.payload.text == event("Lit.").text
    assert decision.history == History(failures=(NOON,), latest_ms=NOON)
    assert verdict(told.tell(event("Lit."), 0)) == SPOKEN


def test_three_failures_within_a_minute_open_the_breaker_for_30_seconds() -> None:
    told = Told()
    assert verdict(told.fail(event("Lit."), 0)) == ("voice_backend_error", 0)
    assert verdict(told.fail(event("Lit."), 1_000)) == ("voice_backend_error", 0)
    assert verdict(told.fail(event("Lit."), 59_999)) == ("voice_backend_error", 30_000)
    other = event("Fire.", Classification.CRITICAL, "other")
    assert verdict(told.tell(other, 60_000)) == ("voice_backend_error", 29_999)
    assert verdict(told.tell(other, 89_998)) == ("voice_backend_error", 1)
    assert verdict(told.tell(other, 89_999)) == SPOKEN


def test_old_failures_do_not_open_the_breaker() -> None:
    told = Told()
    for at in (0, 1_000, 60_000):
        assert verdict(told.fail(event("Lit."), at)) == ("voice_backend_error", 0)
    assert verdict(told.fail(event("Lit."), 60_500)) == ("voice_backend_error", 30_000)


def test_a_failure_right_after_the_breaker_closed_opens_it_again() -> None:
    told = Told()
    for at in (0, 0, 0):
        told.fail(event("Lit."), at)
    assert verdict(told.fail(event("Lit."), 30_000)) == ("voice_backend_error", 30_000)


def test_a_failure_frees_only_its_own_place() -> None:
    told = Told()
    failing = told.tell(event("One."), 0)
    told.tell(event("Two."), 0)
    after = voice_failed(failing, told.history, NOON + 500).history
    assert after.spoken_in(HEIST) == told.history.spoken_in(HEIST)[1:]
    assert after.tenants["default"].count == 1


def test_a_late_failure_frees_no_place_of_another_day() -> None:
    told = Told()
    failing = told.tell(event("One."), 0)
    told.tell(event("Two.", mission="other"), DAY_MS)
    after = voice_failed(failing, told.history, NOON + DAY_MS).history
    assert after.missions == told.history.missions
    assert after.tenants == told.history.tenants == {"default": DayCount(1)}
    assert voice_failed(failing, History(), NOON).history.missions == {}


def test_a_failure_after_midnight_leaves_what_was_spoken_before_it() -> None:
    told = Told()
    midnight = DAY_MS // 2
    told.tell(event("Lit."), midnight - 1_000)
    told.fail(event("Dark."), midnight)
    assert verdict(told.tell(event("Lit."), midnight)) == ("dedupe_cooldown", 59_000)
    assert told.history.tenants == {}


def test_a_failure_after_midnight_begins_a_new_day() -> None:
    told = Told()
    midnight = DAY_MS // 2
    told.tell(event("Lit."), midnight - 2_000)
    failing = told.tell(event("Dark."), midnight - 1_000)
    assert voice_failed(failing, told.history, NOON + midnight).history.tenants == {}


# -- what each row of the matrix names


def befallen(made: MissionEvent, named: SuppressionReason) -> str | None:
    """The reason after everything was done to cause this one."""
    told = Told()
    if named is SuppressionReason.CONTEXT_INELIGIBLE:
        made = evolve(made, operator_ref=None)
    elif named is SuppressionReason.MISSING_EVIDENCE:
        made = evolve(made, repo_attributed=True)
    elif named is SuppressionReason.DEDUPE_COOLDOWN:
        told.tell(made, 0)
    elif named is SuppressionReason.MISSION_RATE_LIMITED:
        told.tell(event("One."), 0)
        told.tell(event("Two."), 0)
    else:
        told.history = evolve(told.history, tenants={"default": DayCount(500)}, latest_ms=NOON)
    return told.tell(made, 0).payload.suppression.reason


@pytest.mark.shows("callouts-42")
@pytest.mark.parametrize("row", [row for row in MATRIX if row.speech], ids=lambda row: str(row.classes))
def test_every_reason_that_a_row_names_can_occur(row: object) -> None:
    for event_type in MissionEventType:
        for classification in Classification:
            made = evolve(event("Lit.", classification), event_type=event_type, operator_ref="op-1")
            if row_of(made, LISTENING) is row:
                assert [befallen(made, named) for named in row_of(made, LISTENING).suppression] == list(
                    row_of(made, LISTENING).suppression
                )


# -- memory and time


def test_expired_entries_are_removed() -> None:
    told = Told()
    told.tell(event("Lit.", mission="old"), 0)
    told.tell(event("Lit."), 60_000)
    assert list(told.history.missions["default"]) == ["heist"]
    told.tell(event("Lit."), DAY_MS)
    assert told.history.tenants == {"default": DayCount(1)}
    told.context = evolve(LISTENING, tenant_id="other")
    told.fail(event("Lit."), 2 * DAY_MS)
    assert (told.history.missions, told.history.tenants) == ({}, {})


def test_expired_tenants_are_removed_as_others_speak() -> None:
    told = Told()
    for number in range(20):
        told.context = evolve(LISTENING, tenant_id=f"t{number}")
        told.tell(event("Lit."), number)
    for number in range(20, 40):
        told.context = evolve(LISTENING, tenant_id=f"t{number}")
        told.tell(event("Lit."), 60_000 + 19)
    assert list(told.history.missions) == [f"t{number}" for number in range(20, 40)]
    assert len(told.history.tenants) == 40


def test_a_decision_leaves_the_entries_of_other_tenants_unchanged() -> None:
    told = Told()
    told.tell(event("Lit."), 0)
    before = told.history.missions["default"]
    told.context = evolve(LISTENING, tenant_id="other")
    told.tell(event("Lit."), 0)
    assert told.history.missions["default"] is before


def test_a_tenant_at_its_limit_of_missions_waits_until_one_has_expired() -> None:
    told = Told(evolve(LISTENING, tenant_id="t"))
    places = range(MAX_MISSIONS_PER_TENANT)
    spoken = {f"m{number}": (Spoken(NOON + number, *FIRE, "k"),) for number in reversed(places)}
    told.history = evolve(told.history, missions={"t": spoken})
    refused = told.tell(event("Lit."), 5_000)
    assert verdict(refused) == ("voice_rate_limited", 55_000)
    assert refused.payload.suppression.scope is LimitScope.MISSIONS
    assert verdict(told.tell(event("Lit.", mission="m7"), 5_000)) == SPOKEN
    assert verdict(told.tell(event("Lit."), 60_000)) == SPOKEN
    assert len(told.history.missions["t"]) <= MAX_MISSIONS_PER_TENANT


def test_a_mission_counts_for_a_minute_after_its_latest_callout() -> None:
    told = Told(evolve(LISTENING, tenant_id="t"))
    spoken = (
        Spoken(NOON, *FIRE, "k"),
        Spoken(NOON + 30_000, *FIRE, "l"),
    )
    told.history = evolve(told.history, missions={"t": {f"m{n}": spoken for n in range(MAX_MISSIONS_PER_TENANT)}})
    assert verdict(told.tell(event("Lit."), 60_000)) == ("voice_rate_limited", 30_000)


def test_the_limit_of_missions_is_per_tenant() -> None:
    told = Told()
    places = range(MAX_MISSIONS_PER_TENANT)
    spoken = {f"m{number}": (Spoken(NOON, *FIRE, "k"),) for number in places}
    told.history = evolve(told.history, missions={"t": spoken})
    assert verdict(told.tell(event("Lit."), 0)) == SPOKEN


def test_at_the_limit_of_tenants_a_new_one_waits_until_tomorrow() -> None:
    told = Told()
    spoken = {f"t{number}": DayCount(1) for number in range(MAX_TENANTS)}
    told.history = evolve(told.history, tenants=spoken, latest_ms=NOON)
    refused = told.tell(event("Lit."), 0)
    assert verdict(refused) == ("voice_budget_exceeded", DAY_MS // 2)
    assert refused.payload.suppression.scope is LimitScope.SERVER
    assert verdict(told.tell(event("Lit."), DAY_MS // 2)) == SPOKEN
    assert list(told.history.tenants) == ["default"]


def test_tenants_of_yesterday_do_not_count() -> None:
    told = Told()
    spoken = {f"t{number}": DayCount(1) for number in range(MAX_TENANTS)}
    told.history = evolve(told.history, tenants=spoken, latest_ms=NOON - DAY_MS)
    assert verdict(told.tell(event("Lit."), 0)) == SPOKEN


def test_the_limit_of_tenants_per_user_counts_only_spoken_callouts() -> None:
    told = Told()
    for number in range(2 * MAX_TENANTS_PER_USER):
        told.context = Context(tenant_id=f"silent{number}").of_user("ann")
        assert told.tell(event("Lit."), 0).payload.suppression.reason == "context_ineligible"
    for number in range(MAX_TENANTS_PER_USER):
        told.context = evolve(LISTENING, tenant_id=f"t{number}").of_user("ann")
        assert verdict(told.tell(event("Lit."), 0)) == SPOKEN
    assert verdict(told.tell(event("Dark."), 0)) == SPOKEN
    told.context = LISTENING.of_user("ann")
    refused = told.tell(event("Lit."), 0)
    assert verdict(refused) == ("voice_budget_exceeded", DAY_MS // 2)
    assert refused.payload.suppression.scope is LimitScope.USER
    for other in (LISTENING.of_user("bob"), LISTENING):
        told.context = other
        assert verdict(told.tell(event("Lit."), 0)) == SPOKEN
    told.context = LISTENING.of_user("ann")
    assert verdict(told.tell(event("Lit."), DAY_MS // 2)) == SPOKEN


def test_a_tenant_whose_voice_failed_does_not_count() -> None:
    told = Told()
    for number in range(MAX_TENANTS_PER_USER - 1):
        told.context = evolve(LISTENING, tenant_id=f"t{number}").of_user("ann")
        told.tell(event("Lit."), 0)
    for tenant_id in ("failing", "last"):
        told.context = evolve(LISTENING, tenant_id=tenant_id).of_user("ann")
        told.fail(event("Lit."), 0)
    assert verdict(told.tell(event("Lit."), 0)) == SPOKEN


def test_a_clock_that_goes_back_is_treated_as_standing_still() -> None:
    told = Told()
    told.tell(event("Lit."), 10_000)
    assert verdict(told.tell(event("Lit."), 0)) == ("dedupe_cooldown", 60_000)
    assert verdict(told.tell(event("Dark."), 0)) == SPOKEN
    assert verdict(told.tell(event("Dark."), 70_000)) == SPOKEN


def test_a_failure_while_the_clock_goes_back_has_the_latest_time() -> None:
    told = Told()
    failing = told.tell(event("Lit."), 0)
    told.tell(event("Dark."), 10_000)
    failed = voice_failed(failing, told.history, NOON - DAY_MS)
    assert (failed.history.failures, failed.history.latest_ms) == ((NOON + 10_000,), NOON + 10_000)
    assert failed.history.tenants["default"].count == 1


def test_times_may_be_negative() -> None:
    told = Told()
    for minute in range(-10, 3):
        assert verdict(told.tell(event(f"Minute {minute}."), minute * 60_000 - NOON)) == SPOKEN
    for second in range(3):
        told.fail(event("Dark.", Classification.CRITICAL), second * 1_000 - 2 * DAY_MS - NOON)
    assert verdict(told.tell(event("Fire.", Classification.CRITICAL), 0)) == SPOKEN


def test_the_breaker_works_with_negative_times() -> None:
    told = Told()
    for second in range(3):
        told.fail(event("Dark."), second * 1_000 - 90_000 - NOON)
    assert verdict(told.tell(event("Dark."), -70_000 - NOON)) == ("voice_backend_error", 12_000)
    assert verdict(told.tell(event("Dark."), -58_000 - NOON)) == SPOKEN


def test_a_history_holds_no_words() -> None:
    told = Told()
    told.tell(event("Secretwords."), 0)
    assert "secretwords" not in repr(told.history).lower()


def test_a_dropped_callout_frees_its_place_and_counts_no_failure() -> None:
    told = Told()
    decision = told.tell(event("Fire.", Classification.CRITICAL), 0)
    dropped = voice_dropped(decision, told.history, NOON + 5_000)
    assert verdict(dropped) == ("voice_backend_error", 0)
    assert dropped.payload.text == decision.payload.text
    assert (dropped.history.missions, dropped.history.tenants, dropped.history.failures) == ({}, {}, ())


def test_a_callout_that_is_dropped_while_the_breaker_is_open_has_its_wait() -> None:
    told = Told()
    decision = told.tell(event("Fire.", Classification.CRITICAL), 0)
    for number in range(3):
        told.fail(event(f"Flood {number}.", Classification.CRITICAL), 0)
    assert verdict(voice_dropped(decision, told.history, NOON + 5_000)) == ("voice_backend_error", 25_000)


def test_only_a_spoken_callout_can_fail() -> None:
    silent = decide(event("Lit."), Context(), History(), 0)
    with pytest.raises(AssertionError):
        voice_failed(silent, silent.history, 0)
