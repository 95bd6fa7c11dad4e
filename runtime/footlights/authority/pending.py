"""Pending approvals, as the world stores them under `/approvals`, with a counter for their ids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, cast

from attrs import evolve, frozen

from footlights.authority.intents import Intent

if TYPE_CHECKING:
    from footlights.events import JsonValue

APPROVALS = "approvals"
"""The name of the rule that keeps them, and of their member in the world."""

_ID = re.compile(r"a-[0-9]{6,15}")


@frozen
class PendingApproval:
    """An act that is held until its answer."""

    id: str
    question: str
    intent: Intent
    """The held intent."""
    session_id: str
    """The session that staged it."""

    @property
    def act(self) -> Intent:
        """The intent to judge if the answer is yes. Its `ref` is the approval's id, because its call is over."""
        return evolve(self.intent, ref=self.id, session_id=self.session_id)


def is_approval_id(value: object) -> bool:
    """Whether this has the form of an approval's id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def pending_approvals(view: object) -> tuple[PendingApproval, ...]:
    """The pending approvals in this view of a world, the oldest first."""
    waiting = sorted(_place(view)["pending"].items(), key=lambda item: _number(item[0]))
    return tuple(_read(id_, each) for id_, each in waiting)


def find_approval(view: object, id_: str) -> PendingApproval | None:
    """The pending approval with this id, or None."""
    written = _place(view)["pending"].get(id_)
    return None if written is None else _read(id_, written)


def next_number(view: object) -> int:
    """The number of the next approval."""
    return _place(view)["asked"] + 1


def written_down(approval: PendingApproval) -> JsonValue:
    """The approval as the world stores it."""
    intent = approval.intent
    written: dict[str, JsonValue] = {
        "type": intent.type.value,
        "ref": intent.ref,
        "payload": intent.payload,
        "payload_digest": intent.payload_digest,
    }
    return {"question": approval.question, "intent": written, "session_id": approval.session_id}


class _Place(TypedDict):
    asked: int
    """The number of approvals so far."""
    pending: Mapping[str, Any]


def _place(view: object) -> _Place:
    world: Mapping[str, _Place] = cast("Mapping[str, _Place]", view) if isinstance(view, Mapping) else {}
    return world.get(APPROVALS, {"asked": 0, "pending": {}})


def _number(id_: str) -> int:
    return int(id_.removeprefix("a-"))


def _read(id_: str, written: Mapping[str, Any]) -> PendingApproval:
    asked_by: str = written["session_id"]
    return PendingApproval(id_, written["question"], Intent(**written["intent"], session_id=asked_by), asked_by)
