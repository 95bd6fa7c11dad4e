"""Parameters of a session and of a turn, as the host passes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from string import ascii_letters, digits
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from attrs import field, frozen

from footlights.authority.pending import is_approval_id
from footlights.checks import check_text, member
from footlights.errors import InvalidCommand
from footlights.models.budget import BudgetTier
from footlights.models.prompts import Fact
from footlights.models.sampling import NO_SAMPLING, Sampling
from footlights.speaker import checked_about

if TYPE_CHECKING:
    from footlights.events import JsonValue

MAX_SESSION_ID_CHARS = 128
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_NUMBERED = re.compile(r"s\d+-\d+")
_QUOTED = "q."
_UNQUOTED = frozenset(ascii_letters + digits + ".-")
_NO_ANSWERS: Mapping[str, bool] = MappingProxyType({})
_NOTHING: Mapping[str, JsonValue] = MappingProxyType({})

_BAD_ANSWERS = "approvals must be true or false for ids like a-000001."

MAX_ANSWERS = 32
"""The most approvals that one turn may answer."""


class BusyRule(StrEnum):
    """Treatment of a new turn while the session has open turns."""

    QUEUE = "queue"
    """The turn is accepted and runs after them."""
    INTERRUPT = "interrupt"
    """They are interrupted (`barge_in`); the turn runs as soon as they are settled."""
    REJECT = "reject"
    """The turn is refused with `busy`."""
    CONCURRENT = "concurrent"
    """The turn runs beside them."""


class Mode(StrEnum):
    """Capabilities of a turn."""

    CHAT = "chat"
    """Text only, no tools."""
    EXECUTION = "execution"
    """Text and tools."""


def _busy_rule(value: str) -> BusyRule:
    return member(BusyRule, "busy", value)


def _mode(value: str) -> Mode:
    return member(Mode, "mode", value)


def _tier(value: str) -> BudgetTier:
    return member(BudgetTier, "tier", value)


def _answers(value: object) -> Mapping[str, bool]:
    if not isinstance(value, Mapping):
        raise InvalidCommand(_BAD_ANSWERS)
    return MappingProxyType(dict(cast("Mapping[str, bool]", value)))


def _facts(value: object) -> tuple[Fact, ...]:
    facts = tuple(cast("Iterable[object]", value)) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(each, Fact) for each in facts):
        raise InvalidCommand("facts must be a list of Fact.")
    return cast("tuple[Fact, ...]", facts)


def _about(value: object) -> Mapping[str, JsonValue]:
    return value if value is _NOTHING else checked_about(value)  # pyright: ignore[reportReturnType] - _NOTHING is one


def quote_session_id(own_id: str) -> str:
    """A session id for any text that a host names its sessions by, such as `bob#7`.

    A text that is a valid session id stays as it is. In any other, what a session id may not have is replaced by `_`
    and its UTF-8 bytes in hexadecimal digits, and `q.` is put before it: `q.bob_237`. Different texts give different
    ids. Raises `InvalidCommand` if the text is empty, not a string, or too long for a session id.
    """
    check_text("A session id", own_id)
    if _SESSION_ID.fullmatch(own_id) and not _NUMBERED.fullmatch(own_id) and not own_id.startswith(_QUOTED):
        return own_id
    quoted = _QUOTED + "".join(each if each in _UNQUOTED else _hexadecimal(each) for each in own_id)
    if not own_id or len(quoted) > MAX_SESSION_ID_CHARS:
        raise InvalidCommand(f"A session id must have 1 to {MAX_SESSION_ID_CHARS} characters when it is quoted.")
    return quoted


def _hexadecimal(character: str) -> str:
    return "".join(f"_{byte:02x}" for byte in character.encode(errors="surrogatepass"))


@frozen(kw_only=True)
class SessionParams:
    """Parameters of a session. Raises `InvalidCommand` for an invalid one."""

    session_id: str | None = None
    """The host's own id for the session; by default the stage allocates one.

    1 to 128 letters, digits or . _ : @ - beginning with a letter or digit. `quote_session_id` makes one of any text.
    """
    remote_models: bool | None = None
    """Whether the session consents to remote models; None is the cast's default."""
    about: Mapping[str, JsonValue] = field(default=_NOTHING, converter=_about, hash=False, repr=False)
    """What the host knows about the player, such as `{"name": "Bob", "class": "thief"}`: a JSON object of at most 4,096
    bytes and 8 levels. Facts, tools, workloads and rules see it, and no ledger, log or trace holds it. Its `name`, if
    that is a text, is in `turn_accepted`. It stays the same while the session is open."""

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
    """Parameters of a turn. Raises `InvalidCommand` for an invalid one."""

    busy: BusyRule = field(default=BusyRule.QUEUE, converter=_busy_rule)
    """Treatment of the turn while the session has open turns."""
    mode: Mode = field(default=Mode.EXECUTION, converter=_mode)
    """Whether the turn may use tools."""
    model: str | None = None
    """The id of the model; by default the cast chooses."""
    persona: str | None = None
    """The name of the persona; by default the first of the cast."""
    tier: BudgetTier = field(default=BudgetTier.DIALOGUE, converter=_tier)
    """The budget of output tokens."""
    sampling: Sampling = NO_SAMPLING
    """How the model chooses its tokens, and when it stops. Takes precedence over the persona and the model."""
    workload: str | None = None
    """The name of a registered workload; by default the standard NPC turn runs."""
    approvals: Mapping[str, bool] = field(default=_NO_ANSWERS, converter=_answers, hash=False)
    """Answers to pending approvals: by id, whether the action is approved."""
    facts: tuple[Fact, ...] = field(default=(), converter=_facts, hash=False, repr=False)
    """What the model is told in this turn alone, before the facts of its persona. A host gives them, and no client."""

    def __attrs_post_init__(self) -> None:
        for name in ("model", "persona", "workload"):
            if (value := getattr(self, name)) is not None:
                check_text(name, value)
        if not isinstance(self.sampling, Sampling):  # pyright: ignore[reportUnnecessaryIsInstance] - a host need not be typed
            raise InvalidCommand(f"sampling must be Sampling, and not {type(self.sampling).__name__}.")
        if len(self.approvals) > MAX_ANSWERS:
            raise InvalidCommand(f"A turn answers no more than {MAX_ANSWERS} approvals.")
        if not all(is_approval_id(id_) and type(yes) is bool for id_, yes in self.approvals.items()):
            raise InvalidCommand(_BAD_ANSWERS)
