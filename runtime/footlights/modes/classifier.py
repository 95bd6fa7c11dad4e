"""Classifier: a second opinion about a message, from a model or from other code of the host.

The record holds the id of the classifier and what became of its answer. If it fails, the answer of the rules stands. It
cannot lift a ban that the message itself states, nor hide that something would be deleted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from attrs import evolve, field, frozen
from attrs.converters import optional

from footlights.errors import RegistrationError
from footlights.modes.record import Activity, Assistance, Condition, Confirmation, IntentKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.modes.record import Intent

_BAD_ID = "A classifier's id is lower-case letters, digits and . _ : / @ -."
_ID = re.compile(r"[a-z0-9][a-z0-9_.:/@-]{0,127}")


def _strings(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(each) for each in given)


def _conditions(given: Iterable[str]) -> tuple[Condition, ...]:
    return tuple(Condition(each) for each in given)


@frozen(kw_only=True)
class Classification:
    """A classifier's opinion of what a message asks for. Raises `ValueError` for values that do not exist."""

    kind: IntentKind = field(converter=IntentKind)
    """Conversation or work."""
    activities: tuple[str, ...] = field(default=(), converter=_strings)
    """The kinds of work: members of `Activity`."""
    conditions: tuple[Condition, ...] = field(default=(), converter=_conditions)
    """The conditions for execution that it meets. Work always meets `work_requested`."""
    confirmation: Confirmation | None = field(default=None, converter=optional(Confirmation))
    """The reason to ask before executing."""


class Classifier(Protocol):
    """Code that says what a message asks for. It must give the same answer for the same message."""

    @property
    def id(self) -> str:
        """Its name and version, for the record."""
        ...

    def classify(self, message: str, intent: Intent) -> Classification | None:
        """Its opinion, given what the rules found; None to abstain."""
        ...


def consult(classifier: Classifier, message: str, intent: Intent) -> Intent:
    """The intent after asking this classifier. Raises only `RegistrationError`, for an id that cannot be recorded."""
    classifier_id = check_classifier_id(classifier)
    try:
        return heed(classifier.classify(message, intent), classifier_id, intent)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a boundary: a classifier of any kind may fail in any way
        return _assisted(intent, classifier_id, Assistance.FAILED)


def heed(answer: Classification | None, classifier_id: str, intent: Intent) -> Intent:
    """The intent after this answer. A host that asked a model beforehand calls it directly."""
    if answer is None:
        return _assisted(intent, classifier_id, Assistance.ABSTAINED)
    if not set(answer.activities) <= set(Activity):
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
    """Its id. Raises `RegistrationError` if the id cannot be recorded or read."""
    try:
        return _checked(classifier.id)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a boundary: a property may fail in any way
        raise RegistrationError(_BAD_ID) from None


def _checked(classifier_id: str) -> str:
    if not _ID.fullmatch(classifier_id):
        raise RegistrationError(_BAD_ID)
    return classifier_id


def _assisted(intent: Intent, classifier_id: str, assistance: Assistance) -> Intent:
    return evolve(intent, classifier=_checked(classifier_id), assistance=assistance)
