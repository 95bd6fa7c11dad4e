"""Approvals: acts that are held in the world until the decision of a later turn settles them.

    rules = with_approvals({"till": till}, needs)

`needs` marks the intents that require an approval. A turn that stages one commits, and the act is recorded under
`/approvals/pending` instead of being done. The answer is a turn of its own, with a `decision` intent that names the
id. If the answer is yes, the rules judge the act again, in the world of that moment, and do it; if it is no, the act is
dropped. Only the owner that asked may answer, unless the host decides otherwise. A refused answer leaves the act
pending. A settled act is removed, so nothing is done twice.

The world counts the ids, so the same turns give the same ids everywhere, and no id is used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import evolve, frozen

from footlights.authority import patch
from footlights.authority.approval_news import ApprovalNews, ApprovalState
from footlights.authority.digest import canonical
from footlights.authority.intents import Intent, IntentType, check_intent
from footlights.authority.pending import (
    APPROVALS,
    PendingApproval,
    find_approval,
    is_approval_id,
    next_number,
    pending_approvals,
    written_down,
)
from footlights.authority.rules import Rule, Ruling, accept, every_turn, refuse, wants_every_turn
from footlights.errors import RegistrationError
from footlights.ids import HOST, owner_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.authority.patch import PatchOp

APPROVAL_UNKNOWN = "approval_unknown"
"""The issue code of an answer to an approval that does not exist, is settled, or belongs to another owner."""
MAX_PENDING = 100
"""Maximum pending approvals; a turn that asks for more is refused with `approvals_full`."""
MAX_PENDING_OF_ONE = 10
"""Maximum pending approvals of one owner."""
MAX_ACT_BYTES = 16_000
"""An act with a larger payload is refused with `approval_too_large`."""
MAX_QUESTION_CHARS = 500

Needs: TypeAlias = Callable[[Any, Intent], str | None]
"""The question to ask before this intent is done in this world; None if it needs no approval.

It must be as pure as a rule. The question and the intent are recorded and shown, so neither may quote people or models.
"""
MayAnswer: TypeAlias = Callable[[PendingApproval, str], bool]
"""Whether a turn of the session with this id may answer. It must be as pure as a rule."""
MayAnswerAbout: TypeAlias = Callable[[PendingApproval, str, Mapping[str, Any]], bool]
"""The same, which is also told what the host said about the player of that session."""


def same_owner(approval: PendingApproval, session_id: str) -> bool:
    """The owner that asked may answer: the same session, or one of the same user if the server has users."""
    return owner_of(approval.session_id) == owner_of(session_id)


def anybody(_approval: PendingApproval, _session_id: str) -> bool:
    """Every session may answer."""
    return True


def decisions(answers: Mapping[str, bool]) -> tuple[Intent, ...]:
    """The intents that give these answers, by the ids of approvals."""
    return tuple(Intent(IntentType.DECISION, id_, {"approve": yes}) for id_, yes in answers.items())


def answer_in(intent: Intent) -> bool | None:
    """The answer to an approval, or None for any other intent. Other decisions are for the host's own rules."""
    match intent.payload:
        case {"approve": bool(yes), **others} if not others and intent.type is IntentType.DECISION:
            return yes if is_approval_id(intent.ref) else None
        case _:
            return None


def unknown(id_: str) -> Ruling:
    """The ruling about an answer to an approval that is not pending."""
    return refuse(APPROVAL_UNKNOWN, "Nothing of that id waits for your answer.", id_)


def with_approvals(rules: Mapping[str, Rule], needs: Needs, may_answer: MayAnswer = same_owner) -> dict[str, Rule]:
    """The same rules, and one that holds acts. The world must be a JSON object, whose `/approvals` is reserved.

    An act that the rules would refuse is refused at once, without a question. Raises `RegistrationError` if a rule has
    the name `approvals`.
    """
    if APPROVALS in rules:
        raise RegistrationError(f"The name {APPROVALS!r} is reserved for the rule that keeps approvals.")
    return _all_behind(rules, _Sorter(needs, lambda approval, session_id, _about: may_answer(approval, session_id)))


def _all_behind(rules: Mapping[str, Rule], sorter: _Sorter) -> dict[str, Rule]:
    return {**{name: _behind(rule, sorter) for name, rule in rules.items()}, APPROVALS: _ApprovalRule(sorter)}


def with_held(
    rules: Mapping[str, Rule], name: str, rule: Rule, needs: Needs, may_answer: MayAnswerAbout
) -> dict[str, Rule]:
    """The same rules, and one more, whose intents wait for an approval as `needs` says, beside those that wait already.

    An answer has to be allowed by `may_answer` and by what allows answers already.
    Raises `RegistrationError` if a rule has that name.
    """
    if name in rules:
        raise RegistrationError(f"The name {name!r} is reserved for a rule of the runtime.")
    known = rules.get(APPROVALS)
    if not isinstance(known, _ApprovalRule):
        own = _Sorter(needs, lambda act, by, about: same_owner(act, by) and may_answer(act, by, about))
        return _all_behind({**rules, name: rule}, own)
    before = known.sorter
    sorter = _Sorter(
        lambda view, intent: before.needs(view, intent) or needs(view, intent),
        lambda act, by, about: before.may_answer(act, by, about) and may_answer(act, by, about),
    )
    return {**rules, name: _behind(rule, sorter), APPROVALS: _ApprovalRule(sorter)}


def asks(rules: Mapping[str, Rule], view: object, intents: Iterable[Intent]) -> bool:
    """Whether one of these intents would wait for an approval, if the rules accept it in this world."""
    rule = rules.get(APPROVALS)
    return isinstance(rule, _ApprovalRule) and any(rule.sorter.needs(view, each) is not None for each in intents)


def answered(
    rules: Mapping[str, Rule], view: object, session_id: str, about: Mapping[str, Any], answers: Mapping[str, bool]
) -> list[tuple[PendingApproval, bool]]:
    """What these answers are about, as far as it is pending and this session, of this player, may answer."""
    rule = rules.get(APPROVALS)
    if not isinstance(rule, _ApprovalRule):
        return []
    found = [(rule.sorter.asked_of(view, id_, session_id, about), yes) for id_, yes in answers.items()]
    return [(approval, yes) for approval, yes in found if approval is not None]


@frozen
class _ApprovalRule:
    """The rule that holds acts."""

    sorter: _Sorter

    def __call__(self, view: object, intents: tuple[Intent, ...]) -> Ruling:
        return _ruling(view, self.sorter.sort_out(view, intents))


def _behind(rule: Rule, sorter: _Sorter) -> Rule:
    def judged(view: object, intents: tuple[Intent, ...]) -> Ruling:
        if not intents:
            return rule(view, intents)
        turn = sorter.sort_out(view, intents)
        if not turn.held:
            return rule(view, turn.all)
        # An act that the rule refuses needs no question.
        with_all = rule(view, turn.all)
        return with_all if with_all.issues else rule(view, turn.done)

    return every_turn(judged) if wants_every_turn(rule) else judged


# -- intents of a turn


@frozen
class _Turn:
    all: tuple[Intent, ...]
    """All intents, with approved acts in place of their answers."""
    done: tuple[Intent, ...]
    """The same without the held intents."""
    held: tuple[tuple[Intent, str], ...]
    """The intents that need an approval, each with its question."""
    answers: Mapping[str, tuple[PendingApproval, bool]]
    """By id."""
    unknown: tuple[str, ...]
    """The ids of answers to approvals that are not pending."""


@frozen
class _Sorter:
    needs: Needs
    may_answer: MayAnswerAbout

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
            elif intent.ref in answers or (approval := self._answered_by(view, intent)) is None:
                unknown.append(intent.ref)
            else:
                answers[intent.ref] = (approval, yes)
                if yes:
                    act = _act_of(approval, intent)
                    everything.append(act)
                    done.append(act)
        return _Turn(tuple(everything), tuple(done), tuple(held), answers, tuple(unknown))

    def _question(self, view: object, intent: Intent) -> str | None:
        question = self.needs(view, intent)
        if question is None:
            return None
        is_text = isinstance(question, str)  # pyright: ignore[reportUnnecessaryIsInstance] - a host may lie
        if not is_text or not 0 < len(question) <= MAX_QUESTION_CHARS:
            raise TypeError(f"a question is a text of 1 to {MAX_QUESTION_CHARS} characters")
        return question

    def _answered_by(self, view: object, answer: Intent) -> PendingApproval | None:
        return self.asked_of(view, answer.ref, answer.session_id, answer.about)

    def asked_of(self, view: object, id_: str, session_id: str, about: Mapping[str, Any]) -> PendingApproval | None:
        """The pending approval, if this session may answer it. The host may answer everything."""
        approval = find_approval(view, id_)
        may_answer = approval is not None and (session_id == HOST or self.may_answer(approval, session_id, about))
        return approval if may_answer else None


def _act_of(approval: PendingApproval, answer: Intent) -> Intent:
    """The approved act, for the rules. The world does not hold who asked for it, only in which session."""
    act = approval.act
    return evolve(act, about=answer.about) if act.session_id == answer.session_id else act


# -- the ruling


def _ruling(view: object, turn: _Turn) -> Ruling:
    if turn.unknown:
        return unknown(turn.unknown[0])
    asked = _asked(view, turn)
    refusal = _refusal(view, turn, asked) if asked else None
    if refusal is not None:
        return refusal
    settled = [patch.remove(f"/{APPROVALS}/pending/{id_}") for id_ in turn.answers]
    told = [_news(each, ApprovalState.APPROVED if yes else ApprovalState.DENIED) for each, yes in turn.answers.values()]
    told += [_news(each, ApprovalState.PENDING) for each in asked]
    return accept(*settled, *_changes(view, asked), artifacts=[each.artifact for each in told])


def _asked(view: object, turn: _Turn) -> list[PendingApproval]:
    if not turn.held:
        return []
    return [
        PendingApproval(f"a-{number:06d}", question, intent, intent.session_id)
        for number, (intent, question) in enumerate(turn.held, start=next_number(view))
    ]


def _refusal(view: object, turn: _Turn, asked: list[PendingApproval]) -> Ruling | None:
    """The refusal of acts that may not be held, or None."""
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
    """The id of the first act that occurs a second time."""
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
    # The first approval creates the object.
    made = [patch.add(f"/{APPROVALS}", {"asked": 0, "pending": {}})] if first == 1 else []
    added = [patch.add(f"/{APPROVALS}/pending/{each.id}", written_down(each)) for each in asked]
    return [*made, *added, patch.replace(f"/{APPROVALS}/asked", first - 1 + len(asked))]


def _news(approval: PendingApproval, state: ApprovalState) -> ApprovalNews:
    return ApprovalNews(approval.id, approval.question, state)
