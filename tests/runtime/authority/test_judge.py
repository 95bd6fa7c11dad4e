from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import weakref
from functools import reduce
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
from attrs import evolve, fields, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from footlights.authority import (
    Artifact,
    CommitRecord,
    Intent,
    IntentEntry,
    IntentType,
    JsonWorld,
    Judgement,
    JudgeRequest,
    PatchFailed,
    PatchOp,
    Rule,
    RuleBook,
    Ruling,
    Verdict,
    World,
    WorldReadOnly,
    accept,
    canonical,
    check_intent,
    digest,
    every_turn,
    judge,
    patch,
    recompute_digest,
    refuse,
    with_approvals,
)
from footlights.authority.judge import MAX_RULING_ARTIFACTS, MAX_RULING_BYTES, MAX_RULING_CHANGES, MAX_RULING_ISSUES
from footlights.authority.record import commit_final, record_from_json, record_to_json
from footlights.errors import RegistrationError
from footlights.events import CommitOutcome, InterruptReason, Issue

if TYPE_CHECKING:
    from footlights.events import JsonValue

WORLD = JsonWorld({"gold": 5, "ale": 3, "log": []})
BUY = Intent(IntentType.TOOL_RESULT, "call-1", {"price": 2})


def sell(view: Any, intents: tuple[Intent, ...]) -> Ruling:
    price = sum(cast("dict[str, int]", intent.payload)["price"] for intent in intents)
    if price > view["gold"]:
        return refuse("no_gold", "The purse is too light.", intents[0].ref)
    return accept(patch.replace("/gold", view["gold"] - price), patch.replace("/ale", view["ale"] - 1))


def note(view: Any, intents: tuple[Intent, ...]) -> Ruling:
    return accept(patch.add("/log/-", len(intents)))


def broken(view: Any, intents: tuple[Intent, ...]) -> Ruling:
    raise LookupError("she whispered: the key is under the mat")


TAVERN = RuleBook({"tavern.sell": sell, "tavern.note": note})


def decide(*intents: Intent, rules: RuleBook = TAVERN, world: World = WORLD, previous: str | None = None) -> Judgement:
    """These rules are asked without intents too, which most of them do not look at."""
    for rule in rules.values():
        every_turn(rule)
    return judge(JudgeRequest("s1-000001", "t1-000001", None, intents), world, rules, previous)


def one_rule(rule: Rule) -> RuleBook:
    return RuleBook({"tavern.note": note, "tavern.it": rule})


def assert_refused(judgement: Judgement, *codes: str) -> None:
    record = judgement.record
    assert record.outcome is CommitOutcome.FAIL_CLOSED
    assert [issue.code for issue in record.issues] == list(codes)
    assert record.changes == ()
    assert record.artifacts == ()
    assert record.world_after == record.world_before == WORLD.digest()
    assert judgement.world is WORLD
    assert WORLD.view() == {"gold": 5, "ale": 3, "log": []}


def test_an_accepted_turn_changes_the_world_and_says_how() -> None:
    judgement = decide(BUY)
    assert judgement.world.view() == {"gold": 3, "ale": 2, "log": [1]}
    assert judgement.record == CommitRecord(
        session_id="s1-000001",
        turn_id="t1-000001",
        outcome=CommitOutcome.OK,
        issues=(),
        intents=(IntentEntry(IntentType.TOOL_RESULT, "call-1", digest({"price": 2})),),
        verdicts=(Verdict("tavern.sell", ()), Verdict("tavern.note", ())),
        changes=(patch.replace("/gold", 3), patch.replace("/ale", 2), patch.add("/log/-", 1)),
        world_before=WORLD.digest(),
        world_after=judgement.world.digest(),
        previous=None,
        commit_digest=judgement.record.commit_digest,
        commit_id="c-" + judgement.record.commit_digest[:16],
    )


def test_a_turn_that_changes_nothing_keeps_the_same_world() -> None:
    judgement = decide(rules=RuleBook())
    assert judgement.record.outcome is CommitOutcome.OK
    assert judgement.world is WORLD


def test_one_refusal_refuses_the_turn() -> None:
    judgement = decide(Intent(IntentType.TOOL_RESULT, "call-2", {"price": 9}))
    assert_refused(judgement, "no_gold")
    assert judgement.record.issues == (Issue("no_gold", "The purse is too light.", "call-2"),)
    assert judgement.record.verdicts == (Verdict("tavern.sell", ("no_gold",)), Verdict("tavern.note", ()))


@pytest.mark.shows("core-23")
def test_every_reason_is_reported_in_the_order_of_the_rules() -> None:
    def closed(view: Any, intents: tuple[Intent, ...]) -> Ruling:
        return Ruling(issues=(Issue("closed", "The tavern is closed."), Issue("late", "It is late.")))

    judgement = decide(BUY, rules=RuleBook([("b", closed), ("a", broken), ("c", note)]))
    assert_refused(judgement, "closed", "late", "rule_error")
    assert judgement.record.verdicts == (
        Verdict("b", ("closed", "late")),
        Verdict("a", ("rule_error",)),
        Verdict("c", ()),
    )


def test_a_rule_that_raises_refuses_the_turn_and_its_words_are_not_kept() -> None:
    judgement = decide(BUY, rules=one_rule(broken))
    assert_refused(judgement, "rule_error")
    assert judgement.record.issues == (Issue("rule_error", "LookupError", "tavern.it"),)
    assert "whispered" not in repr(judgement)


@pytest.mark.parametrize(
    "result",
    [
        None,
        True,
        Ruling(changes=(cast("PatchOp", {"op": "remove", "path": "/gold"}),)),
        Ruling(issues=(cast("Issue", "closed"),)),
        Ruling(changes=(patch.add("/ale", math.nan),)),
        Ruling(changes=(patch.add("/ale", cast("JsonValue", {1, 2})),)),
        Ruling(issues=(Issue("odd", "\ud800"),)),
        Ruling(issues=(Issue("", "No."),)),
        Ruling(issues=(Issue("no", ""),)),
        refuse("no", "No.", cast("str", 0)),
        refuse("no", "No.", cast("str", [])),
        refuse("no", "No.", cast("str", False)),
        refuse(cast("str", 5), "No."),
        accept(PatchOp(cast("Any", "set"), "/gold", 3)),
        accept(PatchOp("add", cast("str", 7), 3)),
        accept(PatchOp("copy", "/gold")),
        Ruling(artifacts=(cast("Artifact", {"kind": "deed"}),)),
        SimpleNamespace(changes=iter([patch.add("/gold", 3)]), issues=(), artifacts=()),
    ],
)
def test_a_rule_whose_result_cannot_be_recorded_refuses_the_turn(result: object) -> None:
    judgement = decide(BUY, rules=one_rule(lambda view, intents: cast("Ruling", result)))
    assert_refused(judgement, "rule_error")
    assert judgement.record.issues[0].ref == "tavern.it"


@frozen
class Purse:
    """A host's own world: a plain object with nothing of JSON in it."""

    coins: int

    def view(self) -> Purse:
        return self

    def changed(self, changes: tuple[PatchOp, ...]) -> Purse:
        return Purse(self.coins + sum(cast("int", op.value) for op in changes))

    def digest(self) -> str:
        if self.coins < 0:
            raise ValueError("A purse holds no debts.")
        return digest(self.coins)


def pay(view: Purse, intents: tuple[Intent, ...]) -> Ruling:
    return accept(*(patch.add("/coins", intent.payload) for intent in intents))


def test_ctrl_c_is_not_taken_for_a_failed_rule_or_world() -> None:
    with pytest.raises(KeyboardInterrupt):
        decide(BUY, rules=one_rule(raising(KeyboardInterrupt)))
    with pytest.raises(KeyboardInterrupt):
        decide(rules=RuleBook({"pay": pay_one}), world=Cursed(KeyboardInterrupt()))


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, StopIteration, RecursionError, BaseException])
def test_whatever_a_rule_raises_refuses_its_turn_and_no_more(error: type[BaseException]) -> None:
    judgement = decide(BUY, rules=one_rule(raising(error)))
    assert_refused(judgement, "rule_error")
    assert judgement.record.issues[0].message == error.__name__


def raising(error: type[BaseException]) -> Rule:
    def stopped(view: Any, intents: tuple[Intent, ...]) -> Ruling:
        raise error

    return stopped


@frozen
class Cursed:
    """A host's world that answers a change with whatever it was told to: an error, or something that is no world."""

    answer: object

    def view(self) -> object:
        return None

    def changed(self, changes: tuple[PatchOp, ...]) -> World:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return cast("World", self.answer)

    def digest(self) -> str:
        return digest("cursed")


@frozen
class Named:
    """A host's world with a digest of its own making."""

    name: object

    def view(self) -> object:
        return None

    def changed(self, changes: tuple[PatchOp, ...]) -> Named:
        return self

    def digest(self) -> str:
        return cast("str", self.name)


def pay_one(view: Any, intents: tuple[Intent, ...]) -> Ruling:
    return accept(patch.add("/coins", 1))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (SystemExit(3), "SystemExit"),
        (PatchFailed(7, patch.remove("/x"), "no"), "IndexError"),
        (None, "AttributeError"),
        (Named(7), "RegistrationError"),
        (Named(b"7" * 64), "RegistrationError"),
        (Named("the world"), "RegistrationError"),
    ],
)
def test_a_world_that_answers_a_change_with_nonsense_refuses_the_turn(answer: object, told: str) -> None:
    cursed = Cursed(answer)
    judgement = decide(rules=RuleBook({"pay": pay_one}), world=cursed)
    assert judgement.record.issues == (Issue("world_error", told),)
    assert judgement.record.changes == ()
    assert judgement.world is cursed


def test_in_a_world_without_a_proper_digest_nothing_is_judged() -> None:
    with pytest.raises(RegistrationError, match="64"):
        decide(world=Named("the world"), rules=RuleBook())


ALL_KINDS_OF_RULINGS = [
    accept(patch.add("/a", 2.0), patch.remove("/gold"), patch.copy("/ale", "/b"), patch.test("/ale", 3)),
    accept(artifacts=[Artifact("deed", {"b": [1.0, None], "a": -0.0})]),
    refuse("no", "No.", "call-1"),
    refuse("no", "No.", ""),
    Ruling(changes=(patch.add("/a", 1),), issues=(Issue("no", "No."),), artifacts=(Artifact("deed", 1),)),
    accept(),
]


@pytest.mark.parametrize("ruling", ALL_KINDS_OF_RULINGS)
@pytest.mark.parametrize("world", [WORLD, Purse(3)], ids=["json", "own"])
def test_whatever_is_recorded_can_be_read_back(ruling: Ruling, world: World) -> None:
    record = decide(BUY, rules=RuleBook({"it": lambda view, intents: ruling}), world=world).record
    assert record_from_json(orjson.loads(record.written)) == record


def test_what_a_rule_does_later_to_what_it_handed_over_changes_nothing() -> None:
    guests: dict[str, JsonValue] = {}
    op, deed = patch.add("/guests", guests), Artifact("deed", {"room": 1})
    assert deed.ref
    cast("dict[str, int]", deed.data)["room"] = 2
    judgement = decide(rules=RuleBook({"it": lambda *_: accept(op, artifacts=[deed])}))
    for kept in (op.value, deed.data):
        cast("dict[str, int]", kept)["mallory"] = 1
    record = judgement.record
    assert record.changes == (patch.add("/guests", {}),)
    assert record.artifacts == (Artifact("deed", {"room": 2}),)
    assert commit_final(record).artifact_refs == (Artifact("deed", {"room": 2}).ref,)
    assert cast("dict[str, object]", judgement.world.view())["guests"] == {}
    assert recompute_digest(record) == record.commit_digest
    assert record_from_json(orjson.loads(record.written)) == record


def test_a_world_of_the_hosts_own_is_changed_by_what_a_replay_would_give_it() -> None:
    seen: list[object] = []

    class Watching(Cursed):
        def changed(self, changes: tuple[PatchOp, ...]) -> World:
            seen.extend(change.value for change in changes)
            return self

    world = Watching(None)
    decide(rules=RuleBook({"it": lambda *_: accept(patch.add("/a", {"b": 2.0, "a": -0.0}))}), world=world)
    (value,) = seen
    assert repr(value) == "{'a': 0, 'b': 2}"


def test_a_change_that_does_not_fit_refuses_the_turn_and_names_the_rule() -> None:
    judgement = decide(BUY, rules=one_rule(lambda view, intents: accept(patch.remove("/whispered"))))
    assert_refused(judgement, "patch_failed")
    (issue,) = judgement.record.issues
    assert issue.ref == "tavern.it"
    sentence = "A change of the rule tavern.it, remove, does not fit the world: there is no such member."
    assert issue.message == sentence
    # A rule may make a path of what a model said: only the developer gets it.
    assert "whispered" not in repr(judgement.record)
    ((what, error),) = judgement.failures
    assert (what, str(error)) == ("the rule tavern.it", "Operation 1, remove at '/whispered': there is no such member.")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (patch.replace("log", 1), "a path begins with /"),
        (patch.replace("/log~", 1), "in a path, ~ is written ~0"),
        (patch.replace("/log/7", 1), "the array is shorter than that"),
    ],
)
def test_a_change_that_does_not_fit_says_why(change: PatchOp, reason: str) -> None:
    judgement = decide(rules=one_rule(lambda view, intents: accept(change)))
    assert judgement.record.issues[0].message.endswith(f", replace, does not fit the world: {reason}.")


def test_a_precondition_that_fails_is_no_bug() -> None:
    judgement = decide(rules=one_rule(lambda view, intents: accept(patch.test("/log", "another"))))
    assert_refused(judgement, "patch_failed")
    assert judgement.failures == ()


SHOP: JsonValue = {"gold": 5, "log": [1, 2], "names": {}, "rooms": {"1": {"bed": "made"}}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (patch.replace("/gold", 3), patch.replace("/gold", 4)),
        (patch.replace("/gold", 3), patch.replace("/gold", 3)),  # each took 2: one of them would be lost
        (patch.add("/names/a", 1), patch.add("/names/a", 2)),
        (patch.add("/names/-", 1), patch.add("/names/-", 2)),  # in an object, this is a name like any other
        (patch.remove("/rooms/1"), patch.replace("/rooms/1/bed", "slept in")),
        (patch.replace("/rooms/1/bed", "slept in"), patch.add("/rooms", {})),
        (patch.move("/gold", "/silver"), patch.replace("/gold", 1)),
        (patch.copy("/gold", "/silver"), patch.add("/silver", 1)),
        (patch.add("/log/0", 0), patch.replace("/log/1", 9)),  # the item moved to 2
        (patch.remove("/log/0"), patch.add("/log/-", 3)),
        (patch.replace("", {}), patch.add("/log/-", 3)),
    ],
)
def test_two_rules_that_change_one_place_are_refused(first: PatchOp, second: PatchOp) -> None:
    for one, other in ((first, second), (second, first)):
        rules = RuleBook({"tavern.b": lambda *_: accept(one), "tavern.a": lambda *_: accept(other)})  # noqa: B023
        judgement = decide(rules=rules, world=JsonWorld(SHOP))
        assert judgement.world.view() == SHOP
        (issue,) = judgement.record.issues
        assert (issue.code, issue.ref) == ("rules_conflict", "tavern.a")
        assert issue.message == (
            "The rules tavern.b and tavern.a change the same place of the world in one turn: the later one would undo "
            "the earlier one. Have one rule make both changes."
        )
        assert [verdict.codes for verdict in judgement.record.verdicts] == [(), ()]
        ((what, error),) = judgement.failures
        assert what == "the rules tavern.b and tavern.a"
        assert str(error).startswith("Both rules change the world at '")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (patch.add("/log/-", 3), patch.add("/log/-", 4)),
        (patch.replace("/log/0", 0), patch.add("/log/-", 4)),
        (patch.add("/names/a", 1), patch.add("/names/ab", 2)),
        (patch.test("/gold", 5), patch.replace("/gold", 4)),
        (patch.replace("/gold", 4), patch.test("/gold", 4)),
        (patch.remove("/rooms/1"), patch.add("/rooms/2", {})),
    ],
)
def test_two_rules_may_change_places_side_by_side(first: PatchOp, second: PatchOp) -> None:
    rules = RuleBook({"tavern.b": lambda *_: accept(first), "tavern.a": lambda *_: accept(second)})
    assert decide(rules=rules, world=JsonWorld(SHOP)).record.outcome is CommitOutcome.OK


def test_one_rule_may_change_a_place_twice() -> None:
    twice = one_rule(lambda *_: accept(patch.replace("/gold", 4), patch.replace("/gold", 3)))
    assert decide(rules=twice).world.view()["gold"] == 3


def test_a_path_that_is_none_is_no_conflict() -> None:
    rules = RuleBook(
        {"tavern.b": lambda *_: accept(patch.replace("gold", 4)), "tavern.a": lambda *_: accept(patch.add("/x", 1))}
    )
    assert_refused(decide(rules=rules), "patch_failed")


def test_a_world_that_would_grow_too_large_refuses_the_turn() -> None:
    world = JsonWorld({"gold": 5}, max_bytes=1_000)
    rules = RuleBook({"grow": lambda view, intents: accept(patch.add("/x", "x" * 1_000))})
    judgement = judge(JudgeRequest("s", "t", None, (BUY,)), world, rules, None)
    assert [issue.code for issue in judgement.record.issues] == ["too_large"]
    assert judgement.world is world


def test_rules_see_the_world_as_it_was_before_the_turn() -> None:
    seen: list[object] = []

    def look(view: Any, intents: tuple[Intent, ...]) -> Ruling:
        seen.append(view["log"])
        return accept(patch.add("/log/-", "looked"))

    judgement = decide(rules=RuleBook([("a", look), ("b", note), ("c", look)]))
    assert seen == [[], []]
    assert cast("dict[str, object]", judgement.world.view())["log"] == ["looked", 0, "looked"]


def test_a_rule_that_writes_to_the_world_it_is_shown_fails() -> None:
    def scribble(view: Any, intents: tuple[Intent, ...]) -> Ruling:
        view["log"].append("all mine")
        return accept()

    judgement = decide(rules=one_rule(scribble))
    assert_refused(judgement, "rule_error")
    assert isinstance(judgement.failures[0][1], WorldReadOnly)
    assert judgement.world.view() == {"gold": 5, "ale": 3, "log": []}


def test_the_rules_of_a_turn_share_one_view() -> None:
    seen: list[object] = []

    def look(view: Any, intents: tuple[Intent, ...]) -> Ruling:
        seen.append(view)
        return accept()

    decide(rules=RuleBook([("a", look), ("b", look)]))
    assert seen[0] is seen[1]


@pytest.mark.parametrize("reason", InterruptReason)
def test_an_interrupted_turn_is_discarded_before_any_rule_sees_it(reason: InterruptReason) -> None:
    request = JudgeRequest("s1-000001", "t1-000001", reason, (BUY,))
    judgement = judge(request, WORLD, RuleBook({"tavern.it": broken}), None)
    assert_refused(judgement, "turn_interrupted")
    assert reason.value in judgement.record.issues[0].message
    assert judgement.record.intents == ()
    assert judgement.record.verdicts == ()


def test_an_intent_that_was_never_checked_refuses_the_turn() -> None:
    assert_refused(decide(BUY, Intent(IntentType.DECISION, "")), "invalid_intent")
    assert_refused(decide(Intent(IntentType.DECISION, "d-1", math.nan)), "invalid_intent")


def test_a_host_may_bring_its_own_world() -> None:
    purse = Purse(3)
    judgement = decide(Intent(IntentType.DECISION, "d-1", 4), rules=RuleBook({"pay": pay}), world=purse)
    assert judgement.world == Purse(7)
    assert (judgement.record.world_before, judgement.record.world_after) == (digest(3), digest(7))


@pytest.mark.parametrize(("payload", "name"), [("four", "TypeError"), (-9, "ValueError")])
def test_a_host_world_that_breaks_refuses_the_turn(payload: JsonValue, name: str) -> None:
    purse = Purse(3)
    judgement = decide(Intent(IntentType.DECISION, "d-1", payload), rules=RuleBook({"pay": pay}), world=purse)
    assert judgement.record.issues == (Issue("world_error", name),)
    assert judgement.world is purse


def test_artifacts_of_all_rules_are_kept_in_the_order_of_the_book() -> None:
    deeds = [Artifact("deed", number) for number in range(3)]
    book = RuleBook(
        {
            "one": lambda view, intents: accept(artifacts=deeds[:1]),
            "two": lambda view, intents: accept(patch.replace("/gold", 6), artifacts=deeds[1:]),
        }
    )
    judgement = decide(BUY, rules=book)
    assert judgement.record.artifacts == tuple(deeds)
    assert commit_final(judgement.record).artifact_refs == tuple(deed.ref for deed in deeds)


def test_a_turn_that_is_refused_leaves_no_artifact() -> None:
    book = RuleBook(
        {"one": lambda view, intents: accept(artifacts=[Artifact("deed", 1)]), "two": lambda *_: refuse("no", "No.")}
    )
    assert_refused(decide(BUY, rules=book), "no")


@pytest.mark.parametrize("deed", [float("nan"), "\ud800", 2**53])
def test_an_artifact_that_has_no_digest_refuses_the_turn(deed: JsonValue) -> None:
    assert_refused(decide(BUY, rules=one_rule(lambda *_: accept(artifacts=[Artifact("deed", deed)]))), "rule_error")


@pytest.mark.parametrize(
    "ruling",
    [
        accept(artifacts=[Artifact("deed", "x" * MAX_RULING_BYTES)]),
        accept(patch.add("/x", "x" * MAX_RULING_BYTES), patch.remove("/x")),
        accept(*[patch.replace("/gold", 1)] * (MAX_RULING_CHANGES + 1)),
        refuse("no", "x" * MAX_RULING_BYTES),
        accept(artifacts=[Artifact("deed", 1)] * (MAX_RULING_ARTIFACTS + 1)),
        Ruling(issues=[Issue("no", "No.")] * (MAX_RULING_ISSUES + 1)),
        accept(artifacts=[Artifact("deed", reduce(lambda inner, _: [inner], range(198), cast("JsonValue", 1)))]),
    ],
    ids=["artifact", "change", "changes", "issue", "artifacts", "issues", "deep"],
)
def test_a_rule_that_says_too_much_refuses_the_turn(ruling: Ruling) -> None:
    judgement = decide(BUY, rules=one_rule(lambda *_: ruling))
    assert_refused(judgement, "ruling_too_large")
    assert (
        "10000 changes, 256 issues and 256 artifacts, and nests nothing deeper than 200 levels"
        in judgement.record.issues[0].message
    )


def test_a_rule_may_say_as_much_as_its_limits() -> None:
    most = [Artifact("deed", number) for number in range(MAX_RULING_ARTIFACTS)]
    assert decide(rules=RuleBook({"it": lambda *_: accept(artifacts=most)})).record.artifacts == tuple(most)
    issues = [Issue("no", "No.")] * MAX_RULING_ISSUES
    assert decide(rules=RuleBook({"it": lambda *_: Ruling(issues=issues)})).record.issues == tuple(issues)
    deep = reduce(lambda inner, _: [inner], range(197), cast("JsonValue", 1))
    record = decide(rules=RuleBook({"it": lambda *_: accept(artifacts=[Artifact("deed", deep)])})).record
    assert record_from_json(orjson.loads(record.written)) == record


def test_commits_of_a_session_are_chained() -> None:
    first = decide(BUY)
    second = decide(BUY, world=first.world, previous=first.record.commit_digest)
    assert second.record.previous == first.record.commit_digest
    assert second.record.world_before == first.record.world_after
    assert second.record.commit_digest != decide(BUY, world=first.world).record.commit_digest


OTHER_FIELDS: dict[str, Any] = {
    "session_id": "s1-000002",
    "turn_id": "t1-000002",
    "outcome": CommitOutcome.FAIL_CLOSED,
    "issues": (Issue("forged", "No."),),
    "intents": (),
    "verdicts": (Verdict("tavern.sell", ("forged",)), Verdict("tavern.note", ())),
    "changes": (patch.replace("/gold", 4), patch.replace("/ale", 2), patch.add("/log/-", 1)),
    "artifacts": (Artifact("deed", 1),),
    "world_before": digest(1),
    "world_after": digest(2),
    "previous": digest(3),
    "mode_decision": {"mode": "chat"},
    "why": "another reason",
}


def test_no_field_can_be_altered_without_the_digest_showing_it() -> None:
    record = decide(BUY).record
    assert recompute_digest(record) == record.commit_digest
    assert {field.name for field in fields(CommitRecord)} == {*OTHER_FIELDS, "commit_id", "commit_digest"}
    for name, value in OTHER_FIELDS.items():
        assert recompute_digest(evolve(record, **{name: value})) != record.commit_digest, name


def test_nothing_inside_a_field_can_be_altered_without_the_digest_showing_it() -> None:
    refused = decide(Intent(IntentType.TOOL_RESULT, "call-2", {"price": 9})).record
    issue, entry, verdict = refused.issues[0], refused.intents[0], refused.verdicts[0]
    forgeries = [
        *(evolve(refused, issues=(evolve(issue, **{name: "x"}),)) for name in ("code", "message", "ref")),
        evolve(refused, issues=(evolve(issue, ref=None),)),
        evolve(refused, intents=(evolve(entry, type=IntentType.DECISION),)),
        evolve(refused, intents=(evolve(entry, ref="x"),)),
        evolve(refused, intents=(evolve(entry, payload_digest=None),)),
        evolve(refused, verdicts=(evolve(verdict, rule="x"), *refused.verdicts[1:])),
        evolve(refused, verdicts=refused.verdicts[::-1]),
    ]
    digests = {recompute_digest(record) for record in [refused, *forgeries]}
    assert len(digests) == 1 + len(forgeries)


def test_commit_digests_never_change_between_versions() -> None:
    record = decide(BUY, previous=digest("before")).record
    assert record.commit_digest == "dab92700956808a41410e3f1184eda6d722b7ad7a5ea9a9ad5e516bfad3a0def"


SCRIPT = """
from footlights.authority import *
names = {"ann", "bob", "cid", "dée"}
world = JsonWorld({name: {"n": 1.5, "tags": sorted({"x", "y", name})} for name in names})
rules = RuleBook({"age": lambda view, intents: accept(*(patch.replace(f"/{k}/n", 2) for k in sorted(view)))})
intents = tuple(Intent(IntentType.DECISION, ref, {k: ref for k in {"p", "q", "r"}}) for ref in ("1", "2"))
record = judge(JudgeRequest("s", "t", None, intents), world, rules, None).record
print(record.commit_id, record.commit_digest, record.world_before, record.world_after, sep="\\n")
"""


@pytest.mark.shows("core-20", "core-63")
def test_the_same_turn_has_the_same_digest_in_any_process() -> None:
    def run(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"}
        command = [sys.executable, "-c", SCRIPT]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    outputs = {run(seed) for seed in ("0", "1", "4242")}
    assert len(outputs) == 1
    assert len(outputs.pop().split()) == 4


payloads: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3) | st.just(math.nan),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
paths = st.sampled_from(["", "/gold", "/log/-", "/log/0", "/nowhere/at/all", "bad"])
rulings = st.one_of(
    st.builds(accept, st.builds(patch.add, paths, payloads)),
    st.builds(accept, st.builds(patch.remove, paths), st.builds(patch.test, paths, payloads)),
    st.just(accept()),
    st.just(refuse("no", "No.")),
    st.none(),
)
requests = st.builds(
    JudgeRequest,
    st.just("s"),
    st.just("t"),
    st.none() | st.sampled_from(InterruptReason),
    st.lists(st.builds(Intent, st.sampled_from(IntentType), st.text(max_size=3), payloads), max_size=3).map(tuple),
)


@pytest.mark.shows("core-2", "core-22")
@settings(deadline=None, max_examples=300)
@given(requests, st.lists(rulings, max_size=3))
def test_a_turn_is_committed_whole_or_not_at_all_and_always_the_same_way(
    request: JudgeRequest, results: list[Ruling | None]
) -> None:
    rules = RuleBook((f"r{n}", cast("Rule", lambda view, intents, r=r: r)) for n, r in enumerate(results))
    judgement = judge(request, WORLD, rules, None)
    record = judgement.record
    assert judge(request, WORLD, rules, None).record == record
    assert recompute_digest(record) == record.commit_digest
    assert WORLD.digest() == digest(WORLD.view().copy())
    if record.outcome is CommitOutcome.OK:
        assert record.issues == ()
        assert WORLD.changed(record.changes).digest() == record.world_after == judgement.world.digest()
    else:
        assert_refused(judgement, *(issue.code for issue in record.issues))
        assert record.issues


def test_no_rule_can_steer_the_ones_behind_it() -> None:
    def scribble(view: dict[str, int], intents: tuple[Intent, ...]) -> Ruling:
        for intent in intents:
            cast("dict[str, int]", intent.payload)["price"] = 0
        return accept()

    def sell(view: dict[str, int], intents: tuple[Intent, ...]) -> Ruling:
        price = sum(cast("dict[str, int]", intent.payload)["price"] for intent in intents)
        return accept() if price <= view["gold"] else refuse("too_dear", "That is more than there is.")

    request = JudgeRequest("s", "t", None, (Intent(IntentType.DECISION, "buy", {"price": 9}),))
    world = JsonWorld({"gold": 5})
    for rules in ({"sell": sell}, {"scribble": scribble, "sell": sell}):
        judgement = judge(request, world, RuleBook(rules), None)
        assert [issue.code for issue in judgement.record.issues] == ["too_dear"]
        assert judgement.world is world


def test_the_exceptions_of_rules_and_worlds_come_with_the_judgement_and_are_no_garbage() -> None:
    class Odd(LookupError):
        pass

    raised: list[weakref.ref[Odd]] = []

    def odd(view: Any, intents: tuple[Intent, ...]) -> Ruling:
        error = Odd()
        raised.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    gc.disable()
    try:
        judgement = decide(BUY, rules=one_rule(odd))
        ((what, error),) = judgement.failures
        assert (what, type(error)) == ("the rule tavern.it", Odd)
        del judgement, error
        assert raised[0]() is None, "only a collector would find it"
    finally:
        gc.enable()


values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e6, 1e6)
    | st.text("aé\U0001f600", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("aé\ufb33\U0001f600", max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
said = st.lists(st.builds(patch.add, st.just("/log/-"), values) | st.just(patch.copy("/gold", "/log/-")), max_size=3)
deeds = st.lists(st.builds(Artifact, st.just("deed"), values), max_size=1)


@given(st.lists(st.tuples(said, deeds), max_size=3))
def test_what_several_rules_say_is_written_as_if_it_were_written_at_once(
    rulings: list[tuple[list[PatchOp], list[Artifact]]],
) -> None:
    def rule(changes: list[PatchOp], artifacts: list[Artifact]) -> Rule:
        return lambda _view, _intents: accept(*changes, artifacts=artifacts)

    book = RuleBook({f"rule.n{number}": rule(*each) for number, each in enumerate(rulings)})
    record = decide(BUY, rules=book).record
    assert record.outcome is CommitOutcome.OK
    assert record.written == canonical(record_to_json(record))
    assert record_from_json(orjson.loads(record.written)) == record
    assert recompute_digest(record) == record.commit_digest


# -- turns without intents


def test_a_turn_that_asks_for_nothing_is_judged_by_no_rule_but_one_that_wants_every_turn() -> None:
    asked: list[str] = []

    def rule(name: str) -> Rule:
        def judged(view: object, intents: tuple[Intent, ...]) -> Ruling:
            asked.append(name)
            return accept()

        return judged

    rules = RuleBook({"plain": rule("plain"), "eager": every_turn(rule("eager"))})
    request = JudgeRequest("s1-000001", "t1-000001", None)
    assert judge(request, WORLD, rules, None).record.verdicts == (Verdict("eager", ()),)
    assert asked == ["eager"]
    assert judge(evolve(request, intents=(BUY,)), WORLD, rules, None).record.verdicts == (
        Verdict("plain", ()),
        Verdict("eager", ()),
    )
    assert judge(evolve(request, interrupted=InterruptReason.CANCELED), WORLD, rules, None).record.verdicts == ()
    assert asked == ["eager", "plain", "eager"]


def test_a_turn_that_asks_for_nothing_makes_no_view_of_the_world() -> None:
    class Unseen(JsonWorld):
        def view(self) -> JsonValue:
            raise AssertionError("a view was made")

    rules = RuleBook({"never": lambda _view, _intents: refuse("asked", "It was asked.")})
    judgement = judge(JudgeRequest("s1-000001", "t1-000001", None), Unseen({}), rules, None)
    assert (judgement.record.outcome, judgement.failures) == (CommitOutcome.OK, ())


def test_a_rule_behind_approvals_may_want_every_turn() -> None:
    @every_turn
    def tick(view: Any, intents: tuple[Intent, ...]) -> Ruling:
        return accept(patch.replace("/gold", view["gold"] + 1))

    rules = RuleBook(with_approvals({"tick": tick}, lambda _view, _intent: None))
    judgement = judge(JudgeRequest("s1-000001", "t1-000001", None), WORLD, rules, None)
    assert judgement.world.view() == {"gold": 6, "ale": 3, "log": []}


# -- the intents that a rule gets


def seen_by_rules(*intents: Intent) -> list[tuple[Intent, ...]]:
    seen: list[tuple[Intent, ...]] = []

    def look(view: object, intents: tuple[Intent, ...]) -> Ruling:
        seen.append(intents)
        return accept()

    decide(*intents, rules=RuleBook({f"rule.n{number}": look for number in range(3)}))
    return seen


def test_intents_are_copied_for_each_rule_only_if_a_rule_could_change_them() -> None:
    plain = seen_by_rules(Intent(IntentType.DECISION, "a"), Intent(IntentType.DECISION, "b", "text"))
    assert plain[0] is plain[1] is plain[2]
    one, two, three = seen_by_rules(Intent(IntentType.DECISION, "a"), BUY)
    assert one == two == three == (Intent(IntentType.DECISION, "a"), BUY)
    assert len({id(each[1].payload) for each in (one, two, three, (BUY, BUY))}) == 4


def test_an_intent_is_judged_as_it_was_when_it_was_staged() -> None:
    intent = Intent(IntentType.DECISION, "a", {"price": 2.0, "dish": "ale"})
    staged = check_intent(intent)
    cast("dict[str, JsonValue]", intent.payload)["price"] = 0
    (seen, *_) = seen_by_rules(intent)
    assert seen[0].payload == {"dish": "ale", "price": 2}
    assert list(seen[0].payload) == ["dish", "price"]
    assert decide(intent, rules=RuleBook()).record.intents[0].payload_digest == staged.payload_digest
