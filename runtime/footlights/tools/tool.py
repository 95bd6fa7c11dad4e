"""Tool: a function that a model may call, with its promise about cancellation.

A tool may read the world and stage intents; it cannot write the world. By default a running tool is not cancelled:
when its turn is interrupted it may finish, and its intents are discarded. A tool that declares `cancel_safe` is
cancelled instead, and must declare its side effects.

`footlights.tool` makes one from a typed function; `Tool` itself does not validate arguments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from enum import StrEnum
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import trio
from attrs import field, frozen

from footlights.authority.approvals import answer_in
from footlights.authority.intents import Intent, check_intent
from footlights.bad_return import check_kind
from footlights.errors import InvalidCommand, RegistrationError
from footlights.speaker import Speaker
from footlights.tools.artifact_notes import ArtifactNote
from footlights.wire.values import Unfit, json_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from footlights.authority.world import World
    from footlights.events import JsonValue

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

_T = TypeVar("_T")


class SideEffects(StrEnum):
    """Declares when a tool may have changed something outside. Staging intents is not a side effect."""

    NONE = "none"
    """It changes nothing outside."""
    MARKED = "marked"
    """None until it calls `context.begin_side_effects()`."""
    IMMEDIATE = "immediate"
    """As soon as it has started."""


@frozen
class ToolReturn:
    """The result of a tool."""

    value: JsonValue
    """The value for the model."""
    summary: str | None = None
    """One sentence that may be shown to people."""
    reads: tuple[ArtifactNote, ...] = field(default=(), converter=tuple[ArtifactNote, ...], kw_only=True)
    """Notes of artifacts that it read, for display."""
    generates: tuple[ArtifactNote, ...] = field(default=(), converter=tuple[ArtifactNote, ...], kw_only=True)
    """Notes of artifacts that it generated, for display. The `ref` of an `Artifact` identifies one to be committed."""


class ToolContext:
    """The runtime as a running tool sees it. Usable from the stage's thread and from worker threads of trio."""

    __slots__ = (
        "_reserve_intent",
        "_side_effects",
        "_staged",
        "_thread",
        "_world",
        "persona",
        "session_id",
        "speaker",
        "tool_call_id",
        "turn_id",
    )

    def __init__(
        self,
        session_id: str,
        turn_id: str,
        tool_call_id: str,
        world: World,
        reserve_intent: Callable[[int], bool],
        *,
        persona: str = "default",
        speaker: Speaker | None = None,
    ) -> None:
        """`reserve_intent` takes the size of an intent and returns whether it counts; it raises at a limit."""
        self.persona = persona
        """The name of the persona that called the tool."""
        self.speaker = Speaker(session_id) if speaker is None else speaker
        """The player of the session, with what the host says about it."""
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
        """The world as it was committed when the tool was called, read-only."""
        return self._in_stage_thread(self._world.view)

    def request_commit(self, intent: Intent) -> None:
        """Stage an intent. It is judged at the end of the turn, if neither the tool nor the turn fails.

        Raises `InvalidCommand` for an invalid intent, and for an answer to an approval: models call tools, and models
        must not approve. Raises `Busy` or `TooLarge` if a limit of the turn is reached.
        """
        size = check_intent(intent).size
        if answer_in(intent) is not None:
            raise InvalidCommand("A tool answers no approval: the turn's params do, or a workload of the host's.")
        self._in_stage_thread(lambda: self._stage(intent, size))

    def begin_side_effects(self) -> None:
        """Declare that side effects may happen from now on."""
        self._side_effects = True  # a single assignment, safe from any thread

    @property
    def staged(self) -> tuple[Intent, ...]:
        """The intents staged so far."""
        return tuple(self._staged)

    @property
    def side_effects_begun(self) -> bool:
        """Whether it called `begin_side_effects`."""
        return self._side_effects

    def _stage(self, intent: Intent, size: int) -> None:
        if self._reserve_intent(size):
            self._staged.append(intent)

    def _in_stage_thread(self, act: Callable[[], _T]) -> _T:
        """Turn and world are not thread-safe: only the stage's thread uses them."""
        return act() if get_ident() == self._thread else trio.from_thread.run_sync(act)


ToolFunction: TypeAlias = "Callable[[Mapping[str, JsonValue], ToolContext], Awaitable[ToolReturn | JsonValue]]"
"""Runs a tool. A plain JSON value counts as a `ToolReturn` without a summary."""


def _unchanged(arguments: Any) -> Any:
    return arguments


@frozen(kw_only=True)
class Tool:
    """A function that a model may call. Raises `RegistrationError` for an invalid declaration."""

    name: str
    """1 to 64 lower-case letters, digits or `_`, a letter first."""
    run: ToolFunction
    """Called with the arguments and a `ToolContext`. Raises `ToolError` to tell the model why it refuses."""
    description: str = ""
    """Its description for the model."""
    parameters: Mapping[str, JsonValue] = field(factory=lambda: {"type": "object"}, hash=False)
    """Its parameters for the model: a JSON Schema of an object."""
    read_arguments: Callable[[Any], Mapping[str, Any]] = _unchanged
    """Converts the model's arguments for `run` and `idempotency_key`. Raises `ToolError` if they do not fit. By default
    they are passed unchanged."""
    cancel_safe: bool = False
    """Whether it is cancelled when its turn is interrupted. Otherwise it may finish, and its result is discarded."""
    side_effects: SideEffects | None = None
    """Its declared side effects; None counts as immediate."""
    timeout: float | None = None
    """Timeout of a call in seconds. The call is then cancelled, and its result is the error `tool_timeout`."""
    idempotency_key: Callable[[Mapping[str, Any]], str] | None = None
    """Calls with the same key run once, for as long as the ledger keeps the key. By default each call has its own key.
    The ledger records it, so build it from ids, never from text of players or models."""

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


def checked_tools(tools: object) -> tuple[Tool, ...]:
    """The tools in a list. Raises `RegistrationError`: a host need not be typed."""
    check_kind("A list of tools", tools, Iterable)
    listed = tuple(cast("Iterable[Tool]", tools))
    for each in listed:
        check_kind("A tool, which @tool makes of a function,", each, Tool)
    return listed
