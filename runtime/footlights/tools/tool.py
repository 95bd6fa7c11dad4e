"""Tools: what a model may ask the game to do, and what each of them promises about being cancelled.

A tool may read the world and stage intents; it cannot write the world. A running tool is not cancelled by
default: when its turn is interrupted it may finish, and what it staged is discarded. A tool that declares
`cancel_safe` is cancelled instead, and must say what its side effects are.

`footlights.tool` makes one from a typed function; `Tool` itself takes the arguments as they come.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import trio
from attrs import field, frozen

from footlights.authority.approvals import answer_in
from footlights.authority.intents import Intent, check_intent
from footlights.errors import InvalidCommand, RegistrationError
from footlights.wire.values import Unfit, json_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from footlights.authority.world import World
    from footlights.events import JsonValue
    from footlights.tools.artifact_notes import ArtifactNote

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

_T = TypeVar("_T")


class SideEffects(StrEnum):
    """When a tool may have changed something outside of itself. Staging intents is no side effect."""

    NONE = "none"
    """It changes nothing outside of itself."""
    MARKED = "marked"
    """None until it calls `context.begin_side_effects()`."""
    IMMEDIATE = "immediate"
    """They may have happened as soon as it started."""


def _notes(given: Iterable[ArtifactNote]) -> tuple[ArtifactNote, ...]:
    return tuple(given)


@frozen
class ToolReturn:
    """A tool's answer."""

    value: JsonValue
    """For the model."""
    summary: str | None = None
    """One sentence that may be shown to people."""
    reads: tuple[ArtifactNote, ...] = field(default=(), converter=_notes, kw_only=True)
    """What it consulted, to be shown too."""
    generates: tuple[ArtifactNote, ...] = field(default=(), converter=_notes, kw_only=True)
    """What it made, to be shown too. What it asks the rules to keep is named by the `ref` of its `Artifact`."""


class ToolContext:
    """What a running tool may know and do, from the stage's own thread or from one that trio started for it."""

    __slots__ = (
        "_reserve_intent",
        "_side_effects",
        "_staged",
        "_thread",
        "_world",
        "session_id",
        "tool_call_id",
        "turn_id",
    )

    def __init__(
        self, session_id: str, turn_id: str, tool_call_id: str, world: World, reserve_intent: Callable[[int], bool]
    ) -> None:
        """`reserve_intent` takes the size of an intent and says whether it counts, or raises if there is no room."""
        self.session_id = session_id
        self.turn_id = turn_id
        self.tool_call_id = tool_call_id
        self._staged: list[Intent] = []
        self._side_effects = False
        self._world = world
        self._reserve_intent = reserve_intent
        self._thread = get_ident()

    @property
    def world(self) -> Any:
        """The world as it was committed when the tool was called: a copy, so nothing done to it counts."""
        return self._at_home(self._world.view)

    def request_commit(self, intent: Intent) -> None:
        """Stage an intent. It is judged at the end of the turn, if the tool and the turn both end well.

        Raises `InvalidCommand` for one that cannot be judged, and for an answer to an approval: models call tools, and
        models approve nothing. Raises `Busy` or `TooLarge` if the turn has staged all that it may.
        """
        size = check_intent(intent).size
        if answer_in(intent) is not None:
            raise InvalidCommand("A tool answers no approval: the turn's params do, or a workload of the host's.")
        self._at_home(lambda: self._stage(intent, size))

    def begin_side_effects(self) -> None:
        """Say that from now on the outside may have changed."""
        self._side_effects = True  # one assignment: safe from any thread

    @property
    def staged(self) -> tuple[Intent, ...]:
        """What it asked for so far."""
        return tuple(self._staged)

    @property
    def side_effects_begun(self) -> bool:
        """Whether it called `begin_side_effects`."""
        return self._side_effects

    def _stage(self, intent: Intent, size: int) -> None:
        if self._reserve_intent(size):
            self._staged.append(intent)

    def _at_home(self, act: Callable[[], _T]) -> _T:
        """In the thread of the stage, whoever calls: the turn and the world are used by no other."""
        return act() if get_ident() == self._thread else trio.from_thread.run_sync(act)


ToolFunction: TypeAlias = "Callable[[Mapping[str, JsonValue], ToolContext], Awaitable[ToolReturn | JsonValue]]"
"""A plain JSON value is returned as a `ToolReturn` without a summary."""


def _as_they_are(arguments: Any) -> Any:
    return arguments


@frozen(kw_only=True)
class Tool:
    """Something a model may ask the game to do. Raises `RegistrationError` if it cannot work."""

    name: str
    """1 to 64 lower-case letters, digits or `_`, a letter first."""
    run: ToolFunction
    """Called with the arguments and a `ToolContext`. Raises `ToolError` to tell the model why it will not."""
    description: str = ""
    """What it does, told to the model."""
    parameters: Mapping[str, JsonValue] = field(factory=lambda: {"type": "object"}, hash=False)
    """What it takes, told to the model: a JSON Schema of an object."""
    read_arguments: Callable[[Any], Mapping[str, Any]] = _as_they_are
    """Makes the arguments for `run` and `idempotency_key` from what a model asked with. Raises `ToolError` if they
    do not fit. By default they are taken as they are."""
    cancel_safe: bool = False
    """Whether it is cancelled when its turn is interrupted. If not, it may finish, and is discarded."""
    side_effects: SideEffects | None = None
    """What it declares; undeclared counts as immediate."""
    timeout: float | None = None
    """How many seconds a call may take. Then it is answered with the error `tool_timeout`, and cancelled."""
    idempotency_key: Callable[[Mapping[str, Any]], str] | None = None
    """Calls with the same key run once, for as long as the ledger remembers the key. Without it each call has a
    key of its own. The ledger keeps it: make it of ids, never of what somebody said."""

    def __attrs_post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise RegistrationError(
                f"The tool name {self.name!r} must be 1 to 64 lower-case letters, digits or _, a letter first."
            )
        if self.cancel_safe and self.side_effects is None:
            raise RegistrationError(f"The tool {self.name} is cancel_safe, so it must declare side_effects.")
        if self.timeout is not None and (isinstance(self.timeout, bool) or not 0 < self.timeout < math.inf):
            raise RegistrationError(f"The timeout of the tool {self.name} must be a number of seconds above 0.")
        _check_parameters(self.name, self.parameters)


def _check_parameters(name: str, parameters: Mapping[str, JsonValue]) -> None:
    try:
        json_value(dict(parameters))
    except Unfit as error:
        raise RegistrationError(f"The parameters of the tool {name} {error}.") from None
    if parameters.get("type") != "object":
        raise RegistrationError(f'The parameters of the tool {name} must be a JSON Schema with "type": "object".')
