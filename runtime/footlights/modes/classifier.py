"""A second opinion about a message, from a model or from anything else, behind the same record.

A classifier can be wrong, slow to load or broken. Whatever it says is recorded with its id; if it fails, the rules'
answer stands and the record says so. It cannot lift a ban that the message itself states, nor hide that something would
be deleted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from attrs import evolve, field, frozen
from attrs.converters import optional

from footlights.errors import RegistrationError
from footlights.modes.record import Assistance, Condition, Confirmation, IntentKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.modes.record import Intent
    from footlights.modes.rules import IntentRules

_BAD_ID = "A classifier's id is lower-case letters, digits and . _ : / @ -."
_ID = re.compile(r"[a-z0-9][a-z0-9_.:/@-]{0,127}")


def _strings(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(each) for each in given)


def _conditions(given: Iterable[str]) -> tuple[Condition, ...]:
    return tuple(Condition(each) for each in given)


@frozen(kw_only=True)
class Classification:
    """What a classifier thinks that a message asks for. Raises `ValueError` for what is no answer."""

    kind: IntentKind = field(converter=IntentKind)
    """Words or work."""
    activities: tuple[str, ...] = field(default=(), converter=_strings)
    """What work: only activities that the rules know."""
    conditions: tuple[Condition, ...] = field(default=(), converter=_conditions)
    """What it takes; for work, at least that work was requested."""
    confirmation: Confirmation | None = field(default=None, converter=optional(Confirmation))
    """Why one should ask first."""


class Classifier(Protocol):
    """Says what a message asks for. The same message must always get the same answer."""

    @property
    def id(self) -> str:
        """Its name and version, as the record keeps it."""
        ...

    def classify(self, message: str, intent: Intent) -> Classification | None:
        """Its opinion, given what the rules found; None if it has none."""
        ...


def consult(classifier: Classifier, message: str, intent: Intent, rules: IntentRules) -> Intent:
    """The intent after this classifier was asked. Raises only `RegistrationError`, for an id that cannot be kept."""
    classifier_id = check_classifier_id(classifier)
    failed = _assisted(intent, classifier_id, Assistance.FAILED)
    try:
        return heed(classifier.classify(message, intent), classifier_id, intent, rules)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a boundary: a classifier of any kind may fail in any way
        return failed


def heed(answer: Classification | None, classifier_id: str, intent: Intent, rules: IntentRules) -> Intent:
    """The intent after this answer was given. A host that asks a model first, on its own time, calls it itself."""
    if answer is None:
        return _assisted(intent, classifier_id, Assistance.ABSTAINED)
    if not set(answer.activities) <= rules.activities:
        return _assisted(intent, classifier_id, Assistance.FAILED)
    if intent.vetoes:
        return _assisted(intent, classifier_id, Assistance.OVERRULED)
    executes = answer.kind is IntentKind.EXECUTION
    met = {Condition.WORK_REQUESTED, *answer.conditions} if executes else set[Condition]()
    destructive = intent.confirmation is Confirmation.DESTRUCTIVE
    return evolve(
        _assisted(intent, classifier_id, Assistance.USED),
        kind=answer.kind,
        activities=answer.activities if executes else (),
        conditions=tuple(each for each in Condition if each in met),
        confirmation=Confirmation.DESTRUCTIVE if destructive else answer.confirmation,
    )


def check_classifier_id(classifier: Classifier) -> str:
    """Its id. Raises `RegistrationError` for one that cannot be kept, or that cannot be had."""
    try:
        return _checked(classifier.id)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a boundary: it may be a property that fails in any way
        raise RegistrationError(_BAD_ID) from None


def _checked(classifier_id: str) -> str:
    if not _ID.fullmatch(classifier_id):
        raise RegistrationError(_BAD_ID)
    return classifier_id


def _assisted(intent: Intent, classifier_id: str, assistance: Assistance) -> Intent:
    return evolve(intent, classifier=_checked(classifier_id), assistance=assistance)
