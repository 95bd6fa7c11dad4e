"""Acts that somebody has to approve: they wait in the world until the decision of a later turn settles them.

    rules = with_approvals({"till": till}, needs)

`needs` marks the intents that nobody may just do. A turn that asks for one commits, and the act is written down under
`/approvals/pending` instead of being done. The answer is a turn of its own, with a `decision` intent that names the id:
if it is yes, the rules judge the act again, in the world of that moment, and do it; if it is no, the act is dropped.
Whatever is refused leaves the act waiting. What was settled is not known any more, so nothing is done twice.

Ids are numbers that the world itself counts, so the same turns give the same ids anywhere, and none comes back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast

from attrs import frozen

from footlights.authority import patch
from footlights.authority.artifacts import Artifact
from footlights.authority.intents import Intent, IntentType
from footlights.authority.rules import Rule, Ruling, accept, refuse
from footlights.errors import RegistrationError

if TYPE_CHECKING:
    from footlights.authority.patch import PatchOp
    from footlights.events import JsonValue

APPROVALS = "approvals"
"""The name of the rule that keeps them, and of their place in the world."""
APPROVAL_UNKNOWN = "approval_unknown"
"""The code of a turn that answers what nobody asks, or what was answered before."""
PENDING, APPROVED, DENIED = "approval.pending", "approval.approved", "approval.denied"
"""The kinds of artifacts that tell what became of one. Their data is its `id` and its `question`."""
MAX_PENDING = 100
"""A turn that asks for more of them than may wait is refused with `approvals_full`."""

_ID = re.compile(r"a-[0-9]{6,15}")

Needs: TypeAlias = Callable[[Any, Intent], str | None]
"""What people are asked before this intent counts in this world; None if nobody needs to be asked.

It is as pure as a rule. The question is kept and shown, and so is the intent: neither may quote what people or models
said.
"""


@frozen
class PendingApproval:
    """An act that waits for an answer."""

    id: str
    question: str
    intent: Intent
    """What is done if the answer is yes."""


def is_approval_id(value: object) -> bool:
    """Whether an approval could have this id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def decisions(answers: Mapping[str, bool]) -> tuple[Intent, ...]:
    """The intents that give these answers, by the ids of approvals."""
    return tuple(Intent(IntentType.DECISION, id_, {"approve": yes}) for id_, yes in answers.items())


def pending_approvals(view: object) -> tuple[PendingApproval, ...]:
    """What waits for an answer in a world that looks like this, the oldest first."""
    waiting = sorted(_place(view)["pending"].items(), key=lambda item: _number(item[0]))
    return tuple(_read(id_, each) for id_, each in waiting)


def with_approvals(rules: Mapping[str, Rule], needs: Needs) -> dict[str, Rule]:
    """The same rules, and one that lets acts wait. The world must be a JSON object, and `/approvals` is theirs.

    An act that would be refused anyway is refused at once, and nobody is asked. Raises `RegistrationError` if a rule is
    named `approvals` already.
    """
    if APPROVALS in rules:
        raise RegistrationError(f"The rule {APPROVALS!r} is the one that keeps approvals.")

    def approvals(view: object, intents: tuple[Intent, ...]) -> Ruling:
        return _ruling(view, _sort_out(view, intents, needs))

    return {**{name: _behind(rule, needs) for name, rule in rules.items()}, APPROVALS: approvals}


def _behind(rule: Rule, needs: Needs) -> Rule:
    def judged(view: object, intents: tuple[Intent, ...]) -> Ruling:
        turn = _sort_out(view, intents, needs)
        if not turn.held:
            return rule(view, turn.all)
        # What cannot be done need not be asked for. The view is the rule's own, so each time it gets another.
        with_all = rule(deepcopy(view), turn.all)
        return with_all if with_all.issues else rule(view, turn.done)

    return judged


# -- what a turn asks for


@frozen
class _Turn:
    all: tuple[Intent, ...]
    """Everything but answers; acts that are approved in their place."""
    done: tuple[Intent, ...]
    """The same without what is held."""
    held: tuple[tuple[Intent, str], ...]
    """What must wait, and the question."""
    answers: tuple[tuple[PendingApproval, bool], ...]
    unknown: tuple[str, ...]
    """The ids of answers that nobody waits for."""


def _sort_out(view: object, intents: tuple[Intent, ...], needs: Needs) -> _Turn:
    waiting = {each.id: each for each in pending_approvals(view)}
    everything: list[Intent] = []
    done: list[Intent] = []
    held: list[tuple[Intent, str]] = []
    answers: list[tuple[PendingApproval, bool]] = []
    unknown: list[str] = []
    for intent in intents:
        yes = _answer_in(intent)
        if yes is None:
            question = needs(view, intent)
            everything.append(intent)
            if question is None:
                done.append(intent)
            else:
                held.append((intent, question))
        elif intent.ref in waiting:
            approval = waiting.pop(intent.ref)
            answers.append((approval, yes))
            if yes:
                everything.append(approval.intent)
                done.append(approval.intent)
        else:
            unknown.append(intent.ref)
    return _Turn(tuple(everything), tuple(done), tuple(held), tuple(answers), tuple(unknown))


def _answer_in(intent: Intent) -> bool | None:
    """The answer, if it is one. Other decisions are for the host's own rules."""
    match intent.payload:
        case {"approve": bool(yes), **others} if not others and intent.type is IntentType.DECISION:
            return yes
        case _:
            return None


# -- what becomes of it


def _ruling(view: object, turn: _Turn) -> Ruling:
    if turn.unknown:
        return refuse(APPROVAL_UNKNOWN, "Nothing of that id waits for an answer.", turn.unknown[0])
    place = _place(view)
    if len(place["pending"]) - len(turn.answers) + len(turn.held) > MAX_PENDING:
        return refuse("approvals_full", f"No more than {MAX_PENDING} acts may wait for an answer.")
    asked = [
        PendingApproval(f"a-{number:06d}", question, intent)
        for number, (intent, question) in enumerate(turn.held, start=place["asked"] + 1)
    ]
    settled = [patch.remove(f"/{APPROVALS}/pending/{each.id}") for each, _ in turn.answers]
    artifacts = [_artifact(APPROVED if yes else DENIED, each) for each, yes in turn.answers]
    artifacts += [_artifact(PENDING, each) for each in asked]
    return accept(*settled, *_written_down(asked, place), artifacts=artifacts)


def _written_down(asked: list[PendingApproval], place: _Place) -> list[PatchOp]:
    if not asked:
        return []
    # Nothing was asked before: then the place is not there yet.
    made = [] if place["asked"] else [patch.add(f"/{APPROVALS}", {"asked": 0, "pending": {}})]
    added = [patch.add(f"/{APPROVALS}/pending/{each.id}", _written(each)) for each in asked]
    return [*made, *added, patch.replace(f"/{APPROVALS}/asked", place["asked"] + len(asked))]


def _artifact(kind: str, approval: PendingApproval) -> Artifact:
    return Artifact(kind, {"id": approval.id, "question": approval.question})


# -- in the world


class _Place(TypedDict):
    asked: int
    """How many were asked for, ever."""
    pending: dict[str, Any]


def _place(view: object) -> _Place:
    world = cast("dict[str, _Place]", view) if isinstance(view, dict) else {}
    return world.get(APPROVALS, {"asked": 0, "pending": {}})


def _number(id_: str) -> int:
    return int(id_.removeprefix("a-"))


def _written(approval: PendingApproval) -> JsonValue:
    intent = approval.intent
    written: dict[str, JsonValue] = {
        "type": intent.type.value,
        "ref": intent.ref,
        "payload": intent.payload,
        "payload_digest": intent.payload_digest,
    }
    return {"question": approval.question, "intent": written}


def _read(id_: str, written: dict[str, Any]) -> PendingApproval:
    return PendingApproval(id_, written["question"], Intent(**written["intent"]))
