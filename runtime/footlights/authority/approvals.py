"""Acts that somebody has to approve: they wait in the world until the decision of a later turn settles them.

    rules = with_approvals({"till": till}, needs)

`needs` marks the intents that nobody may just do. A turn that asks for one commits, and the act is written down under
`/approvals/pending` instead of being done. The answer is a turn of its own, with a `decision` intent that names the id:
if it is yes, the rules judge the act again, in the world of that moment, and do it; if it is no, the act is dropped.
Only whoever asked may answer, unless the host says otherwise. Whatever is refused leaves the act waiting. What was
settled is not known any more, so nothing is done twice.

Ids are numbers that the world itself counts, so the same turns give the same ids anywhere, and none comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from footlights.authority import patch
from footlights.authority.artifacts import Artifact
from footlights.authority.digest import canonical
from footlights.authority.intents import Intent, IntentType, check_intent
from footlights.authority.pending import (
    APPROVALS,
    PendingApproval,
    find_approval,
    is_approval_id,
    next_number,
    owner_of,
    pending_approvals,
    written_down,
)
from footlights.authority.rules import Rule, Ruling, accept, refuse
from footlights.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.authority.patch import PatchOp

APPROVAL_UNKNOWN = "approval_unknown"
"""The code of a turn that answers what nobody asks, what was answered before, or what others are asked."""
PENDING, APPROVED, DENIED = "approval.pending", "approval.approved", "approval.denied"
"""The kinds of artifacts that tell what became of one. Their data is its `id` and its `question`."""
MAX_PENDING = 100
"""A turn that asks for more of them than may wait is refused with `approvals_full`."""
MAX_PENDING_OF_ONE = 10
"""How many of them one player may have asked for."""
MAX_ACT_BYTES = 16_000
"""An act with a bigger payload may not wait: it is refused with `approval_too_large`."""
MAX_QUESTION_CHARS = 500

Needs: TypeAlias = Callable[[Any, Intent], str | None]
"""What people are asked before this intent counts in this world; None if nobody needs to be asked.

It is as pure as a rule. The question is kept and shown, and so is the intent: neither may quote what people or models
said.
"""
MayAnswer: TypeAlias = Callable[[PendingApproval, str], bool]
"""Whether this may be answered by a turn of the session with this id. It is as pure as a rule."""


def same_owner(approval: PendingApproval, session_id: str) -> bool:
    """Whoever asked may answer: the same session, or one of the same user if the server knows users."""
    return owner_of(approval.session_id) == owner_of(session_id)


def anybody(_approval: PendingApproval, _session_id: str) -> bool:
    """Everybody may answer."""
    return True


def decisions(answers: Mapping[str, bool]) -> tuple[Intent, ...]:
    """The intents that give these answers, by the ids of approvals."""
    return tuple(Intent(IntentType.DECISION, id_, {"approve": yes}) for id_, yes in answers.items())


def answer_in(intent: Intent) -> bool | None:
    """The answer to an approval, if it is one. Other decisions are for the host's own rules."""
    match intent.payload:
        case {"approve": bool(yes), **others} if not others and intent.type is IntentType.DECISION:
            return yes if is_approval_id(intent.ref) else None
        case _:
            return None


def unknown(id_: str) -> Ruling:
    """The ruling about an answer that nobody waits for."""
    return refuse(APPROVAL_UNKNOWN, "Nothing of that id waits for your answer.", id_)


def with_approvals(rules: Mapping[str, Rule], needs: Needs, may_answer: MayAnswer = same_owner) -> dict[str, Rule]:
    """The same rules, and one that lets acts wait. The world must be a JSON object, and `/approvals` is theirs.

    An act that would be refused anyway is refused at once, and nobody is asked. Raises `RegistrationError` if a rule is
    named `approvals` already.
    """
    if APPROVALS in rules:
        raise RegistrationError(f"The rule {APPROVALS!r} is the one that keeps approvals.")
    desk = _Desk(needs, may_answer)

    def approvals(view: object, intents: tuple[Intent, ...]) -> Ruling:
        return _ruling(view, desk.sort_out(view, intents)) if intents else accept()

    return {**{name: _behind(rule, desk) for name, rule in rules.items()}, APPROVALS: approvals}


def _behind(rule: Rule, desk: _Desk) -> Rule:
    def judged(view: object, intents: tuple[Intent, ...]) -> Ruling:
        if not intents:
            return rule(view, intents)
        turn = desk.sort_out(view, intents)
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
    answers: Mapping[str, tuple[PendingApproval, bool]]
    """By id."""
    unknown: tuple[str, ...]
    """The ids of answers that nobody waits for."""


@frozen
class _Desk:
    needs: Needs
    may_answer: MayAnswer

    def sort_out(self, view: object, intents: tuple[Intent, ...]) -> _Turn:
        everything: list[Intent] = []
        done: list[Intent] = []
        held: list[tuple[Intent, str]] = []
        answers: dict[str, tuple[PendingApproval, bool]] = {}
        unknown: list[str] = []
        for intent in intents:
            yes = answer_in(intent)
            if yes is None:
                question = self._question(view, intent)
                everything.append(intent)
                if question is None:
                    done.append(intent)
                else:
                    held.append((intent, question))
            elif intent.ref in answers or (approval := self._asked_of(view, intent)) is None:
                unknown.append(intent.ref)
            else:
                answers[intent.ref] = (approval, yes)
                if yes:
                    everything.append(approval.act)
                    done.append(approval.act)
        return _Turn(tuple(everything), tuple(done), tuple(held), answers, tuple(unknown))

    def _question(self, view: object, intent: Intent) -> str | None:
        question = self.needs(view, intent)
        if question is None:
            return None
        is_text = isinstance(question, str)  # pyright: ignore[reportUnnecessaryIsInstance] - a host may lie
        if not is_text or not 0 < len(question) <= MAX_QUESTION_CHARS:
            raise TypeError(f"a question is a text of 1 to {MAX_QUESTION_CHARS} characters")
        return question

    def _asked_of(self, view: object, answer: Intent) -> PendingApproval | None:
        approval = find_approval(view, answer.ref)
        return approval if approval is not None and self.may_answer(approval, answer.session_id) else None


# -- what becomes of it


def _ruling(view: object, turn: _Turn) -> Ruling:
    if turn.unknown:
        return unknown(turn.unknown[0])
    asked = _asked(view, turn)
    refusal = _refusal(view, turn, asked) if asked else None
    if refusal is not None:
        return refusal
    settled = [patch.remove(f"/{APPROVALS}/pending/{id_}") for id_ in turn.answers]
    artifacts = [_artifact(APPROVED if yes else DENIED, each) for each, yes in turn.answers.values()]
    artifacts += [_artifact(PENDING, each) for each in asked]
    return accept(*settled, *_changes(view, asked), artifacts=artifacts)


def _asked(view: object, turn: _Turn) -> list[PendingApproval]:
    if not turn.held:
        return []
    return [
        PendingApproval(f"a-{number:06d}", question, intent, intent.session_id)
        for number, (intent, question) in enumerate(turn.held, start=next_number(view))
    ]


def _refusal(view: object, turn: _Turn, asked: list[PendingApproval]) -> Ruling | None:
    """Why these acts may not wait, if they may not."""
    for each in asked:
        if len(canonical(each.intent.payload)) > MAX_ACT_BYTES:
            message = f"An act that waits has a payload of no more than {MAX_ACT_BYTES} bytes."
            return refuse("approval_too_large", message, each.intent.ref)
    others = [each for each in pending_approvals(view) if each.id not in turn.answers]
    owner = owner_of(asked[0].session_id)
    own = [each for each in others if owner_of(each.session_id) == owner]
    twice = _twice([*own, *asked])
    if twice is not None:
        return refuse("approval_pending", "The same act waits for an answer already.", twice)
    if len(others) + len(asked) > MAX_PENDING:
        return refuse("approvals_full", f"No more than {MAX_PENDING} acts may wait for an answer.")
    if len(own) + len(asked) > MAX_PENDING_OF_ONE:
        return refuse("approvals_full", f"No more than {MAX_PENDING_OF_ONE} acts of yours may wait for an answer.")
    return None


def _twice(waiting: Iterable[PendingApproval]) -> str | None:
    """The id under which an act waits that is there again."""
    ids: dict[tuple[IntentType, str | None], str] = {}
    for each in waiting:
        id_ = ids.setdefault((each.intent.type, check_intent(each.intent).payload_digest), each.id)
        if id_ != each.id:
            return id_
    return None


def _changes(view: object, asked: list[PendingApproval]) -> list[PatchOp]:
    if not asked:
        return []
    first = next_number(view)
    # Nothing was asked before: then the place is not there yet.
    made = [patch.add(f"/{APPROVALS}", {"asked": 0, "pending": {}})] if first == 1 else []
    added = [patch.add(f"/{APPROVALS}/pending/{each.id}", written_down(each)) for each in asked]
    return [*made, *added, patch.replace(f"/{APPROVALS}/asked", first - 1 + len(asked))]


def _artifact(kind: str, approval: PendingApproval) -> Artifact:
    return Artifact(kind, {"id": approval.id, "question": approval.question})
