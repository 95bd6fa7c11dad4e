"""Approvals: an act is requested once, answered once, and judged again when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from footlights import Intent, IntentType, RegistrationError
from footlights.authority import (
    JsonWorld,
    JudgeRequest,
    PendingApproval,
    RuleBook,
    Ruling,
    accept,
    anybody,
    decisions,
    digest,
    judge,
    patch,
    pending_approvals,
    refuse,
    same_owner,
    with_approvals,
)
from footlights.authority.approvals import MAX_ACT_BYTES, MAX_PENDING, MAX_PENDING_OF_ONE, MAX_QUESTION_CHARS
from footlights.authority.pending import is_approval_id
from footlights.ids import owner_of

if TYPE_CHECKING:
    from footlights.authority import CommitRecord
    from footlights.authority.approvals import MayAnswer, Needs
    from footlights.events import JsonValue


def spend(coins: int, ref: str = "call-1") -> Intent:
    return Intent(IntentType.TOOL_RESULT, ref, {"spend": coins})


def _coins(intents: tuple[Intent, ...]) -> int:
    return sum(cast("dict[str, Any]", intent.payload)["spend"] for intent in intents)


def purse(world: dict[str, Any], intents: tuple[Intent, ...]) -> Ruling:
    left = world["purse"] - _coins(intents)
    if left < 0:
        return refuse("purse_short", "The purse cannot pay for that.")
    return accept(patch.replace("/purse", left)) if intents else accept()


def needs(world: dict[str, Any], intent: Intent) -> str | None:
    return "Spend so much?" if isinstance(intent.payload, dict) and cast("int", intent.payload["spend"]) > 5 else None


class House:
    """A world and its turns, one after the other."""

    def __init__(self, purse_holds: int = 20, may_answer: MayAnswer = same_owner) -> None:
        self.world = JsonWorld({"purse": purse_holds})
        self.rules = RuleBook(with_approvals({"purse": purse}, needs, may_answer))
        self.turns = 0

    def turn(self, *intents: Intent, session_id: str = "s1-000001") -> CommitRecord:
        self.turns += 1
        request = JudgeRequest(session_id, f"t1-{self.turns:06d}", None, intents)
        judgement = judge(request, self.world, self.rules, None)
        assert isinstance(judgement.world, JsonWorld)
        self.world = judgement.world
        return judgement.record

    def answer(self, **answers: bool) -> CommitRecord:
        return self.turn(*decisions({id_.replace("_", "-"): yes for id_, yes in answers.items()}))

    @property
    def view(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.world.view())

    @property
    def waiting(self) -> list[str]:
        return [each.id for each in pending_approvals(self.view)]


def codes(record: CommitRecord) -> list[str]:
    return [issue.code for issue in record.issues]


def kinds(record: CommitRecord) -> list[str]:
    return [artifact.kind for artifact in record.artifacts]


def test_an_act_without_approval_is_done_at_once_and_leaves_no_mark() -> None:
    house = House()
    house.turn(spend(5))
    assert house.view == {"purse": 15}


@pytest.mark.shows("core-27")
def test_an_act_that_needs_approval_commits_as_pending() -> None:
    house = House()
    record = house.turn(spend(6))
    assert record.outcome.value == "ok"
    assert house.view["purse"] == 20
    (approval,) = pending_approvals(house.view)
    assert approval == PendingApproval("a-000001", "Spend so much?", spend(6), "s1-000001")
    assert [artifact.document["data"] for artifact in record.artifacts] == [
        {"id": "a-000001", "question": "Spend so much?"}
    ]
    assert kinds(record) == ["approval.pending"]


def test_what_else_the_turn_asks_for_is_done() -> None:
    house = House()
    house.turn(spend(1), spend(6, "call-2"), spend(2, "call-3"))
    assert house.view["purse"] == 17
    assert house.waiting == ["a-000001"]


@pytest.mark.shows("core-27")
def test_a_yes_does_it_and_nothing_of_it_waits_any_more() -> None:
    house = House()
    house.turn(spend(6))
    record = house.answer(a_000001=True)
    assert (record.outcome.value, kinds(record)) == ("ok", ["approval.approved"])
    assert house.view == {"purse": 14, "approvals": {"asked": 1, "pending": {}}}


def test_a_no_drops_it() -> None:
    house = House()
    house.turn(spend(6))
    record = house.answer(a_000001=False)
    assert (record.outcome.value, kinds(record)) == ("ok", ["approval.denied"])
    assert house.view == {"purse": 20, "approvals": {"asked": 1, "pending": {}}}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_what_is_settled_cannot_be_answered_again(first: bool, second: bool) -> None:
    house = House()
    house.turn(spend(6))
    house.answer(a_000001=first)
    before = house.view
    record = house.answer(a_000001=second)
    assert (codes(record), record.issues[0].ref) == (["approval_unknown"], "a-000001")
    assert house.view == before


def test_one_turn_cannot_give_the_same_answer_twice() -> None:
    house = House()
    house.turn(spend(6))
    yes = decisions({"a-000001": True})
    assert codes(house.turn(*yes, *yes)) == ["approval_unknown"]
    assert house.waiting == ["a-000001"]


def test_an_answer_to_nothing_is_refused_in_a_world_that_never_asked() -> None:
    house = House()
    assert codes(house.answer(a_000001=True)) == ["approval_unknown"]
    assert house.view == {"purse": 20}


def test_an_approved_act_is_judged_again_in_the_world_of_that_moment() -> None:
    house = House(purse_holds=8)
    house.turn(spend(6))
    house.turn(spend(5))
    assert codes(house.answer(a_000001=True)) == ["purse_short"]
    assert (house.view["purse"], house.waiting) == (3, ["a-000001"])
    house.answer(a_000001=False)
    assert (house.view["purse"], house.waiting) == (3, [])


def test_no_approval_is_requested_for_an_act_that_would_be_refused_anyway() -> None:
    house = House(purse_holds=8)
    assert codes(house.turn(spend(9))) == ["purse_short"]
    assert codes(house.turn(spend(6), spend(3, "call-2"))) == ["purse_short"]
    assert house.view == {"purse": 8}


def test_an_answer_and_other_acts_are_one_turn_all_or_nothing() -> None:
    house = House(purse_holds=8)
    house.turn(spend(6))
    assert codes(house.turn(*decisions({"a-000001": True}), spend(3))) == ["purse_short"]
    assert (house.view["purse"], house.waiting) == (8, ["a-000001"])
    house.turn(*decisions({"a-000001": True}), spend(2))
    assert (house.view["purse"], house.waiting) == (0, [])


def test_a_turn_may_answer_and_ask_again() -> None:
    house = House()
    house.turn(spend(6))
    record = house.turn(*decisions({"a-000001": True}), spend(7))
    assert kinds(record) == ["approval.approved", "approval.pending"]
    assert (house.view["purse"], house.waiting) == (14, ["a-000002"])


def test_no_id_comes_back_though_the_same_is_asked_for_again() -> None:
    house = House()
    for number in range(1, 4):
        house.turn(spend(6))
        assert house.waiting == [f"a-{number:06d}"]
        house.answer(**{f"a_{number:06d}": False})


def test_several_wait_in_the_order_in_which_they_were_asked_for() -> None:
    house = House(purse_holds=2_000)
    house.turn(spend(100, "call-1"))
    house.turn(*(spend(coins, f"call-{coins}") for coins in range(6, 15)))
    assert house.waiting == [f"a-{number:06d}" for number in range(1, 11)]
    house.answer(a_000003=True, a_000001=False, a_000010=True)
    assert house.view["purse"] == 2_000 - 7 - 14
    assert len(house.waiting) == 7


def test_no_more_may_wait_than_the_limit() -> None:
    house = House(purse_holds=10_000)
    users = MAX_PENDING // MAX_PENDING_OF_ONE
    for user in range(users):
        house.turn(*(spend(6 + each) for each in range(MAX_PENDING_OF_ONE)), session_id=f"user{user}:s1-000001")
    full = house.turn(spend(6), session_id="ann")
    assert (codes(full), len(house.waiting)) == (["approvals_full"], MAX_PENDING)
    no = decisions({"a-000001": False})
    assert house.turn(*no, spend(99), session_id="user0:s1-000002").outcome.value == "ok"
    assert len(house.waiting) == MAX_PENDING


def test_no_player_fills_the_house_by_asking_in_however_many_sessions() -> None:
    house = House(purse_holds=10_000)
    for each in range(MAX_PENDING_OF_ONE):
        house.turn(spend(6 + each), session_id=f"ann:s1-{each:06d}")
    assert codes(house.turn(spend(99), session_id="ann:other")) == ["approvals_full"]
    assert codes(house.turn(spend(99), session_id="bob:s1-000001")) == []


def test_an_act_that_waits_is_not_written_down_again() -> None:
    house = House(purse_holds=1_000)
    house.turn(spend(6))
    again = house.turn(spend(6, "call-2"))
    assert (codes(again), again.issues[0].ref) == (["approval_pending"], "a-000001")
    assert codes(house.turn(spend(7), spend(7, "call-2"))) == ["approval_pending"]
    assert house.waiting == ["a-000001"]
    assert codes(house.turn(spend(6), session_id="s1-000002")) == []
    assert codes(house.turn(*decisions({"a-000001": False}), spend(6))) == []
    assert house.waiting == ["a-000002", "a-000003"]


def test_what_is_alike_to_python_and_not_to_json_is_not_the_same_act() -> None:
    acts: list[JsonValue] = [1, True, [1], [True], "1", None]
    rules = RuleBook(with_approvals({}, lambda world, intent: "May it?"))
    intents = tuple(Intent(IntentType.TOOL_RESULT, f"call-{n}", act) for n, act in enumerate(acts))
    after = judge(JudgeRequest("s", "t", None, intents), JsonWorld({}), rules, None).world
    assert len(pending_approvals(after.view())) == len(acts)


def test_an_act_that_is_too_large_may_not_wait() -> None:
    def ask(chars: int) -> list[str]:
        rules = RuleBook(with_approvals({}, lambda world, intent: "May it?"))
        act = Intent(IntentType.TOOL_RESULT, "call-1", "x" * chars)
        return codes(judge(JudgeRequest("s", "t", None, (act,)), JsonWorld({}), rules, None).record)

    assert ask(MAX_ACT_BYTES - 2) == []
    assert ask(MAX_ACT_BYTES - 1) == ["approval_too_large"]


# -- who answers


@pytest.mark.parametrize("yes", [True, False])
def test_an_approval_is_answered_only_by_its_owner(yes: bool) -> None:
    house = House()
    house.turn(spend(6), session_id="ann:s1-000001")
    answer = decisions({"a-000001": yes})
    for other in ("bob:s1-000001", "s1-000001", "annabel:x", "an", ""):
        assert codes(house.turn(*answer, session_id=other)) == ["approval_unknown"]
    assert (house.view["purse"], house.waiting) == (20, ["a-000001"])
    assert codes(house.turn(*answer, session_id="ann:s2-000007")) == []
    assert (house.view["purse"], house.waiting) == (14 if yes else 20, [])


def test_a_host_may_let_anybody_answer_or_say_who_may() -> None:
    yes = decisions({"a-000001": True})
    house = House(may_answer=anybody)
    house.turn(spend(6), session_id="ann")
    assert codes(house.turn(*yes, session_id="bob")) == []

    house = House(may_answer=lambda approval, session_id: session_id == f"warden-of-{approval.session_id}")
    house.turn(spend(6), session_id="ann")
    assert codes(house.turn(*yes, session_id="ann")) == ["approval_unknown"]
    assert codes(house.turn(*yes, session_id="warden-of-ann")) == []


def test_the_stager_of_an_intent_cannot_choose_its_owner() -> None:
    house = House()
    house.turn(spend(6), session_id="ann")
    forged = Intent(IntentType.DECISION, "a-000001", {"approve": True}, session_id="ann")
    assert codes(house.turn(forged, session_id="bob")) == ["approval_unknown"]


def test_an_owner_is_what_stands_before_the_colon() -> None:
    owners = {"ann:s1-000001": "ann", "ann": "ann", "s1-000001": "s1-000001", "ann:x:y": "ann"}
    assert {session_id: owner_of(session_id) for session_id in owners} == owners


def test_rules_are_told_whose_turn_an_intent_is_of_and_no_digest_depends_on_it() -> None:
    heard: list[tuple[str, str]] = []

    def listen(world: object, intents: tuple[Intent, ...]) -> Ruling:
        heard.extend((intent.ref, intent.session_id) for intent in intents)
        return accept()

    rules = RuleBook(with_approvals({"listen": listen}, lambda world, intent: "?" if intent.ref == "call-1" else None))
    world = judge(JudgeRequest("ann:1", "t", None, (spend(6),)), JsonWorld({}), rules, None).world
    heard.clear()
    turn = (*decisions({"a-000001": True}), spend(1, "call-7"))
    judge(JudgeRequest("ann:2", "t", None, turn), world, rules, None)
    assert heard == [("a-000001", "ann:1"), ("call-7", "ann:2")]
    assert spend(1) == Intent(IntentType.TOOL_RESULT, "call-1", {"spend": 1}, session_id="ann")


def test_where_nothing_is_ever_asked_an_answer_is_refused() -> None:
    request = JudgeRequest("s", "t", None, decisions({"a-000001": True, "a-000002": False}))
    record = judge(request, JsonWorld({}), RuleBook({"any": lambda world, intents: accept()}), None).record
    assert [(issue.code, issue.ref) for issue in record.issues] == [
        ("approval_unknown", "a-000001"), ("approval_unknown", "a-000002")
    ]  # fmt: skip


# -- what it costs


def test_a_turn_without_intents_looks_at_nothing() -> None:
    class Untouched(dict[str, Any]):
        def get(self, *_: object) -> Any:
            raise AssertionError("nobody asked")

    def never(world: object, intent: Intent) -> str | None:
        raise AssertionError("there is no intent")

    seen: list[tuple[Intent, ...]] = []

    def rule(world: object, intents: tuple[Intent, ...]) -> Ruling:
        seen.append(intents)
        return accept()

    rules = with_approvals({"rule": rule}, never)
    assert [each(Untouched(), ()) for each in rules.values()] == [accept(), accept()]
    assert seen == [()]


def test_a_turn_that_answers_reads_only_what_it_names() -> None:
    house = House()
    house.turn(spend(6))
    house.turn(spend(7))
    view = house.world.view().copy()
    view["approvals"]["pending"]["a-000001"] = "nothing that could be read"
    (no,) = decisions({"a-000002": False})
    for rule in house.rules.values():
        assert rule(view, (evolve(no, session_id="s1-000001"),)).issues == ()


def test_the_same_turns_give_the_same_ids_and_digests_anywhere() -> None:
    def play() -> list[str]:
        house = House()
        records = [house.turn(spend(6)), house.answer(a_000001=True), house.turn(spend(7))]
        return [*(record.commit_digest for record in records), house.world.digest()]

    assert play() == play()


@pytest.mark.parametrize("question", ["", 5, True, b"May it?", ["May it?"], "x" * (MAX_QUESTION_CHARS + 1)])
def test_a_question_is_a_text_that_can_be_shown(question: Any) -> None:
    asking: Needs = lambda world, intent: question  # noqa: E731 - it is a Needs, and says so
    record = judge(
        JudgeRequest("s", "t", None, (spend(1),)), JsonWorld({}), RuleBook(with_approvals({}, asking)), None
    ).record
    assert [(issue.code, issue.message) for issue in record.issues] == [("rule_error", "TypeError")]


def test_decisions_of_another_shape_are_for_the_hosts_own_rules() -> None:
    heard: list[Intent] = []

    def listen(world: object, intents: tuple[Intent, ...]) -> Ruling:
        heard.extend(intents)
        return accept()

    payloads: list[JsonValue] = [None, {"approve": 1}, {"approve": True, "by": "ann"}, True]
    others = [Intent(IntentType.DECISION, "a-000001", payload) for payload in payloads]
    others.append(Intent(IntentType.TOOL_RESULT, "a-000001", {"approve": True}))
    others.append(Intent(IntentType.DECISION, "door-3", {"approve": True}))
    rules = RuleBook(with_approvals({"listen": listen}, lambda world, intent: None))
    request = JudgeRequest("s", "t", None, tuple(others))
    assert judge(request, JsonWorld({}), rules, None).record.issues == ()
    assert heard == others


def test_an_act_whose_payload_is_kept_elsewhere_waits_with_its_digest() -> None:
    act = Intent(IntentType.TOOL_RESULT, "call-1", payload_digest=digest({"a": 1}))
    rules = RuleBook(with_approvals({}, lambda world, intent: "May it?"))
    after = judge(JudgeRequest("s", "t", None, (act,)), JsonWorld({}), rules, None).world
    assert [each.intent for each in pending_approvals(after.view())] == [act]


def test_a_world_that_is_no_object_can_hold_nothing_back() -> None:
    rules = RuleBook(with_approvals({}, lambda world, intent: "May it?"))
    assert pending_approvals([]) == ()
    record = judge(JudgeRequest("s", "t", None, (spend(1),)), JsonWorld([]), rules, None).record
    assert codes(record) == ["patch_failed"]


def test_a_rule_of_that_name_is_refused() -> None:
    with pytest.raises(RegistrationError, match="approvals"):
        with_approvals({"approvals": purse}, needs)


@pytest.mark.parametrize(
    "wrong", ["a-1", "a-00000x", "a-\u0660\u0660\u0660\u0660\u0660\u0661", "a-000001\n", "", 1, None, "a-" + "0" * 16]
)
def test_only_what_an_approval_is_called_is_an_id(wrong: object) -> None:
    assert not is_approval_id(wrong)
    assert is_approval_id("a-000001")


asks = st.integers(6, 9)
replies = st.dictionaries(
    st.integers(1, 4).map(lambda number: f"a-{number:06d}"), st.booleans(), min_size=1, max_size=2
)


@given(st.lists(asks | replies, max_size=20))
def test_whatever_is_asked_and_answered_each_act_is_done_once_or_not_at_all(
    program: list[int | dict[str, bool]],
) -> None:
    house = House(purse_holds=1_000)
    waiting: dict[str, int] = {}
    purse_holds, asked = 1_000, 0
    for step in program:
        if isinstance(step, int):
            waits = step in waiting.values()
            assert codes(house.turn(spend(step))) == (["approval_pending"] if waits else [])
            if not waits:
                asked += 1
                waiting[f"a-{asked:06d}"] = step
            continue
        known = step.keys() <= waiting.keys()
        assert codes(house.turn(*decisions(step))) == ([] if known else ["approval_unknown"])
        if known:
            purse_holds -= sum(waiting[id_] for id_, yes in step.items() if yes)
            waiting = {id_: coins for id_, coins in waiting.items() if id_ not in step}
    assert house.view["purse"] == purse_holds
    assert house.waiting == sorted(waiting)
