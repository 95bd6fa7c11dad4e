"""The turns of a session as mission events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from footlights.authority import Artifact, Intent, IntentType
from footlights.authority.artifacts import news_ext
from footlights.events import (
    EVENT_TYPES,
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    InterruptReason,
    Issue,
    ModelLoading,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    TurnFinal,
    TurnInterrupted,
)
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.policy import broken_rules, decide
from footlights_transports.views.mission.pure.raised import RaisedEvent, raise_events
from footlights_transports.views.mission.pure.terms import Certainty, MissionEventType
from footlights_transports.views.mission.pure.turns import TurnCallouts
from tests.kit.callouts import LISTENING

if TYPE_CHECKING:
    from footlights.events import Payload
    from footlights_transports.views.mission.pure.payload import MissionEvent

OK = CommitFinal(commit_digest="d1", commit_outcome=CommitOutcome.OK, commit_id="c1")
LOST = CommitFinal(
    commit_digest="d2",
    commit_outcome=CommitOutcome.FAIL_CLOSED,
    issues=tuple(Issue(f"code_{n}", "a sentence") for n in range(4)),
)


def told(*payloads: Payload, artifacts: tuple[Artifact, ...] = ()) -> list[MissionEvent]:
    callouts = TurnCallouts("heist")
    made: list[MissionEvent] = []
    for seq, payload in enumerate(payloads, start=5):
        if isinstance(payload, CommitFinal):
            payload = evolve(payload, ext=news_ext(artifacts))
        event = StreamEvent(SCHEMA_V, "s1", "t1-000001", seq, 0, EVENT_TYPES[type(payload)], payload)
        made += callouts.take(event)
    return made


def kinds(made: list[MissionEvent]) -> list[tuple[str, str, str]]:
    return [(each.event_type.value, each.classification.value, each.text.spoken) for each in made]


def test_a_commit_is_a_state_change() -> None:
    (made,) = told(OK)
    assert kinds([made]) == [
        ("state_change", "info", "A turn is committed. Its changes are kept. Go on when you like.")
    ]
    assert (made.mission_id, made.event_id) == ("heist", "t1-000001.5")
    assert made.evidence_refs == ("turn:t1-000001#5", "commit:c1")
    assert made.system_state_claim
    assert made.certainty is Certainty.CONFIRMED


def test_a_refused_commit_is_a_threat_with_codes_and_without_messages() -> None:
    (made,) = told(LOST)
    assert (made.event_type, made.classification) == ("threat_update", "warn")
    assert made.text.why_it_matters == "IMPACT: Nothing of it was committed: code_0, code_1, code_2 and 1 more."
    assert made.evidence_refs[1] == "commit:d2"


@pytest.mark.parametrize(
    ("reason", "event_type", "classification"),
    [
        ("timeout", "timer_update", "warn"),
        ("stalled", "timer_update", "warn"),
        ("model_error", "threat_update", "critical"),
        ("tool_error", "threat_update", "critical"),
        ("workload_error", "threat_update", "critical"),
        ("shutdown", "threat_update", "warn"),
        ("runtime_restart", "threat_update", "warn"),
    ],
)
def test_a_failed_turn_is_called_out_once_and_at_once(reason: str, event_type: str, classification: str) -> None:
    made = told(TurnInterrupted(reason=InterruptReason(reason)), LOST)
    assert [(each.event_type, each.classification) for each in made] == [(event_type, classification)]
    assert made[0].operator_ref is None


@pytest.mark.parametrize("reason", ["canceled", "barge_in", "session_closed"])
def test_an_interruption_by_a_person_is_debriefed_with_the_commit(reason: str) -> None:
    interrupted = TurnInterrupted(reason=InterruptReason(reason))
    assert told(interrupted) == []
    (made,) = told(interrupted, LOST)
    assert (made.event_type, made.operator_ref) == ("debrief", f"{reason}:t1-000001")


@pytest.mark.shows("callouts-21")
def test_every_interrupted_turn_is_called_out_as_not_committed() -> None:
    for reason in InterruptReason:
        (made,) = told(TurnInterrupted(reason=reason), LOST)
        assert made.text.why_it_matters == "IMPACT: Nothing of it was committed."


@pytest.mark.shows("callouts-59")
def test_how_a_turn_comes_about_is_no_news() -> None:
    loading = ModelLoading(model_id="m", cold_start=True)
    assert told(loading, ModelLoading(model_id="m", cold_start=True, progress=0.5)) == []


SIREN = RaisedEvent("threat_update", "critical", "reasoned", "The siren sounds.", next_action="Leave now.")
TIMER = RaisedEvent("timer_update", "info", "confirmed", "Two minutes are left.", evidence=("world#/clock",))


def test_what_the_game_raises_is_called_out_in_place_of_the_commit() -> None:
    waiting = Artifact("approval.pending", {"id": "a-000001", "question": "Sell the lantern?"})
    asked, siren, timer = told(OK, artifacts=(SIREN.artifact, Artifact("receipt", {}), TIMER.artifact, waiting))
    assert asked.event_type == "action_required"
    assert kinds([siren]) == [("threat_update", "critical", "The siren sounds. Leave now.")]
    assert (siren.certainty, timer.certainty) == (Certainty.REASONED, Certainty.CONFIRMED)
    assert [siren.event_id, timer.event_id] == ["t1-000001.5.1", "t1-000001.5.2"]
    assert timer.evidence_refs == ("turn:t1-000001#5", "commit:c1", "world#/clock")
    assert siren.system_state_claim


@pytest.mark.shows("callouts-58")
@pytest.mark.parametrize("event_type", list(MissionEventType))
def test_the_game_raises_every_type_of_event(event_type: MissionEventType) -> None:
    event = RaisedEvent(event_type, "action", "confirmed", "The vote is open.", operator_ref="op-7")
    (made,) = told(OK, artifacts=(event.artifact,))
    assert (made.event_type, made.operator_ref) == (event_type, "op-7")
    assert decide(made, LISTENING, History(), 0).speak


@pytest.mark.parametrize(
    "wrong",
    [
        {"change": 7},
        {"event_type": "party"},
        {"event_type": []},
        {"certainty": None},
        {"evidence": None},
        {"evidence": [1]},
        {"operator_ref": 0},
        {"words": "more"},
    ],
)
def test_an_artifact_of_another_shape_raises_nothing(wrong: dict[str, Any]) -> None:
    data: Any = SIREN.artifact.data
    shapes: list[Any] = [{**data, **wrong}, [], {}]
    for shape in shapes:
        (made,) = told(OK, artifacts=(Artifact("mission.event", shape),))
        assert made.event_type == "state_change"


def test_an_event_that_is_too_long_is_told_and_not_spoken() -> None:
    (made,) = told(OK, artifacts=(evolve(SIREN, change="word " * 90).artifact,))
    assert decide(made, LISTENING, History(), 0).payload.suppression.reason == "contract_violation"


def test_a_wrong_event_is_refused_where_it_is_made() -> None:
    with pytest.raises(ValueError, match="party"):
        RaisedEvent("party", "info", "confirmed", "Hello.")


def test_the_rule_commits_what_tools_raised_and_nothing_else() -> None:
    intents = (
        SIREN.intent("c1"),
        Intent(IntentType.TOOL_RESULT, "c2", {"pour": 1}),
        Intent(IntentType.TOOL_RESULT, "c3", None),
        Intent(IntentType.TURN_FINALIZE, "t1", SIREN.intent("c4").payload),
    )
    assert raise_events({}, intents).artifacts == (SIREN.artifact,)


@pytest.mark.parametrize(
    ("canceled", "effects", "error", "kind"),
    [
        (True, True, None, ("threat_update", "critical")),
        (True, False, None, None),
        (False, None, ErrorInfo("broken", "secret words"), ("threat_update", "warn")),
        (False, None, None, None),
    ],
)
def test_a_tool_is_called_out_if_it_failed_or_may_have_had_effects(
    canceled: bool, effects: bool | None, error: ErrorInfo | None, kind: tuple[str, str] | None
) -> None:
    made = told(
        ToolCallResult(
            tool_call_id="c",
            tool_name="sell",
            canceled=canceled,
            side_effects_may_have_occurred=effects,
            error=error,
        )
    )
    assert [(each.event_type.value, each.classification.value) for each in made] == ([] if kind is None else [kind])
    assert not any("secret" in each.text.block for each in made)


@pytest.mark.shows("callouts-63")
def test_a_pending_approval_requires_action() -> None:
    asked = Artifact("approval.pending", {"id": "a-000001", "question": "Sell the lantern?"})
    made = told(OK, artifacts=(Artifact("receipt", {}), asked))
    assert [each.event_type for each in made] == ["action_required", "state_change"]
    assert made[0].text.spoken == "Somebody has to decide. Sell the lantern? Answer yes or no now."
    assert [each.event_id for each in made] == ["t1-000001.5", "t1-000001.5.1"]
    assert made[0].evidence_refs == ("turn:t1-000001#5", "approval:a-000001")


@pytest.mark.parametrize(("kind", "answer"), [("approval.approved", "yes"), ("approval.denied", "no")])
def test_an_answered_approval_is_debriefed_with_its_question(kind: str, answer: str) -> None:
    made = told(OK, artifacts=(Artifact(kind, {"id": "a-000001", "question": "Sell the lantern?"}),))
    assert made[0].event_type == "debrief"
    assert made[0].operator_ref == "approval:a-000001"
    assert made[0].text.spoken.startswith(f"The answer was {answer}. Sell the lantern?")


WAITING = Artifact("approval.pending", {"id": "a-000001", "question": "Sell the lantern?"})
REFUSED = Artifact("approval.denied", {"id": "a-000002", "question": "Sell the house?"})


@pytest.mark.shows("callouts-21")
@pytest.mark.parametrize(
    ("artifacts", "impact"),
    [
        ((), "Its changes are kept."),
        ((Artifact("approval.approved", {"id": "a-000003", "question": "Sell a pie?"}),), "Its changes are kept."),
        ((WAITING, WAITING), "Its changes are kept. An act waits for somebody's word."),
        ((REFUSED,), "Its changes are kept. An act was refused."),
        ((WAITING, REFUSED), "Its changes are kept. An act waits for somebody's word. An act was refused."),
    ],
)
def test_a_commit_mentions_acts_that_wait_or_were_refused(artifacts: tuple[Artifact, ...], impact: str) -> None:
    *_, made = told(OK, artifacts=artifacts)
    assert made.text.why_it_matters == f"IMPACT: {impact}"
    voice = decide(made, LISTENING, History(), 0).payload.voice
    assert voice is not None
    assert voice.text == f"A turn is committed. {impact} Go on when you like."


def test_a_failed_tool_says_nothing_about_the_turn() -> None:
    failed = ToolCallResult(tool_call_id="c", tool_name="t", canceled=False, error=ErrorInfo("broken", "It broke."))
    for rest in ((OK,), (TurnInterrupted(reason=InterruptReason.TOOL_ERROR), LOST)):
        made = told(failed, *rest)
        assert made[0].text.spoken == "A tool failed. It gave no result. Look at the tool before you ask again."


@pytest.mark.parametrize("question", ["word " * 90, "x" * 400])
def test_a_long_question_is_quoted_whole_and_not_spoken(question: str) -> None:
    made = told(OK, artifacts=(Artifact("approval.pending", {"id": "a-000001", "question": question}),))
    assert made[0].text.why_it_matters == f"IMPACT: {question}"
    assert list(broken_rules(made[0])) == ["why_it_matters_too_long"]
    assert decide(made[0], LISTENING, History(), 0).payload.suppression.reason == "contract_violation"


def test_an_artifact_of_another_shape_is_no_approval() -> None:
    assert len(told(OK, artifacts=(Artifact("approval.pending", []),))) == 1


ORDER = re.compile(r"NEXT: (?:Answer|Ask|Come|Go|Look|Wait) .*\b(?:now|in a moment|before|when|until)\b.*\.")


@pytest.mark.shows("callouts-23")
def test_the_next_action_of_a_turn_is_an_order_with_a_time() -> None:
    failed = ToolCallResult(tool_call_id="c", tool_name="t", canceled=False, error=ErrorInfo("broken", "It broke."))
    made = told(ModelLoading(model_id="m", cold_start=True), failed, LOST) + told(OK, artifacts=(WAITING, REFUSED))
    for reason in InterruptReason:
        made += told(TurnInterrupted(reason=reason), LOST)
    assert [each.text.next_action for each in made if not ORDER.fullmatch(each.text.next_action)] == []


def test_players_and_models_are_never_quoted() -> None:
    assert told(TokenDelta(delta="secret", offset=0), TurnFinal(text="secret")) == []


@pytest.mark.shows("callouts-2")
def test_every_turn_callout_keeps_the_contract_and_can_be_spoken() -> None:
    tool = ToolCallResult(tool_call_id="c", tool_name="t", canceled=True, side_effects_may_have_occurred=True)
    artifacts = (Artifact("approval.pending", {"id": "a-000001", "question": "Sell it?"}),)
    made = told(tool, OK, artifacts=artifacts)
    for reason in InterruptReason:
        made += told(TurnInterrupted(reason=reason), LOST)
    assert {each.event_type.value for each in made} == {
        "state_change",
        "threat_update",
        "timer_update",
        "action_required",
        "debrief",
    }
    for each in made:
        assert list(broken_rules(each)) == []
        assert decide(each, LISTENING, History(), 0).speak
