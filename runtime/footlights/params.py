"""What a host says when it starts a session or begins a turn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import cast

from attrs import field, frozen

from footlights.authority.pending import is_approval_id
from footlights.checks import check_text, member
from footlights.errors import InvalidCommand
from footlights.models.budget import BudgetTier
from footlights.models.model import DEFAULT_TEMPERATURE

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_NUMBERED = re.compile(r"s\d+-\d+")
_NO_ANSWERS: Mapping[str, bool] = MappingProxyType({})

_WHAT_ANSWERS_ARE = "approvals must be true or false for ids like a-000001."

MAX_ANSWERS = 32
"""How many approvals one turn may answer."""


class BusyRule(StrEnum):
    """What a new turn does when the session has open turns."""

    QUEUE = "queue"
    """Accepted now, runs after them."""
    INTERRUPT = "interrupt"
    """They are interrupted (`barge_in`); it runs as soon as they are settled."""
    REJECT = "reject"
    """Refused with `busy`."""
    CONCURRENT = "concurrent"
    """Runs beside them."""


class Mode(StrEnum):
    """What a turn may do."""

    CHAT = "chat"
    """Words only: no tools."""
    EXECUTION = "execution"
    """Words and tools."""


def _busy_rule(value: str) -> BusyRule:
    return member(BusyRule, "busy", value)


def _mode(value: str) -> Mode:
    return member(Mode, "mode", value)


def _tier(value: str) -> BudgetTier:
    return member(BudgetTier, "tier", value)


def _answers(value: object) -> Mapping[str, bool]:
    if not isinstance(value, Mapping):
        raise InvalidCommand(_WHAT_ANSWERS_ARE)
    return MappingProxyType(dict(cast("Mapping[str, bool]", value)))


@frozen(kw_only=True)
class SessionParams:
    """How to start a session. Raises `InvalidCommand` for a name that cannot be one."""

    session_id: str | None = None
    """The host's own name for the session; without one the stage numbers it."""
    remote_models: bool | None = None
    """Whether what is said in it may be told to models elsewhere; without an answer the cast's default holds."""

    def __attrs_post_init__(self) -> None:
        if self.remote_models not in (None, False, True):
            raise InvalidCommand("remote_models must be true or false.")
        if self.session_id is None:
            return
        if type(self.session_id) is not str:
            raise InvalidCommand("session_id must be a plain string.")
        if _NUMBERED.fullmatch(self.session_id):
            raise InvalidCommand("A session_id like s1-000001 is one that the stage gives out itself.")
        if not _SESSION_ID.fullmatch(self.session_id):
            raise InvalidCommand(
                "session_id must be 1 to 128 letters, digits or . _ : @ - and begin with a letter or digit."
            )


@frozen(kw_only=True)
class TurnParams:
    """How to begin a turn. Raises `InvalidCommand` for what cannot be, such as another `busy`, `mode` or `tier`."""

    busy: BusyRule = field(default=BusyRule.QUEUE, converter=_busy_rule)
    """What to do when the session has open turns."""
    mode: Mode = field(default=Mode.EXECUTION, converter=_mode)
    """Whether tools may be used."""
    model: str | None = None
    """The id of the model to use; without one the cast chooses."""
    persona: str | None = None
    """The name of the persona that speaks; without one the cast's first."""
    tier: BudgetTier = field(default=BudgetTier.DIALOGUE, converter=_tier)
    """How much it may say."""
    temperature: float = field(default=DEFAULT_TEMPERATURE)
    """How freely the model picks its words: 0 to 2."""
    workload: str | None = None
    """The name of a registered workload; without one the standard NPC turn runs."""
    approvals: Mapping[str, bool] = field(default=_NO_ANSWERS, converter=_answers, hash=False)
    """Answers to what waits for an approval: by its id, whether to do it."""

    def __attrs_post_init__(self) -> None:
        for name in ("model", "persona", "workload"):
            if (value := getattr(self, name)) is not None:
                check_text(name, value)
        if type(self.temperature) not in (int, float) or not 0 <= self.temperature <= 2:
            raise InvalidCommand("temperature must be a number from 0 to 2.")
        if len(self.approvals) > MAX_ANSWERS:
            raise InvalidCommand(f"A turn answers no more than {MAX_ANSWERS} approvals.")
        if not all(is_approval_id(id_) and type(yes) is bool for id_, yes in self.approvals.items()):
            raise InvalidCommand(_WHAT_ANSWERS_ARE)
