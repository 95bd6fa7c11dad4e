"""Tools: what a model may ask the game to do, and what each of them promises about being cancelled.

A tool may read the world and stage intents; it cannot write the world. A running tool is not cancelled by
default: when its turn is interrupted it may finish, and what it staged is discarded. A tool that declares
`cancel_safe` is cancelled instead, and must say what its side effects are.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from footlights.authority.intents import Intent, check_intent
from footlights.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from footlights.authority.world import World
    from footlights.events import JsonValue

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class SideEffects(StrEnum):
    """When a tool may have changed something outside of itself. Staging intents is no side effect."""

    NONE = "none"
    """It changes nothing outside of itself."""
    MARKED = "marked"
    """None until it calls `context.begin_side_effects()`."""
    IMMEDIATE = "immediate"
    """They may have happened as soon as it started."""


@frozen
class ToolReturn:
    """A tool's answer."""

    value: JsonValue
    """For the model."""
    summary: str | None = None
    """One sentence that may be shown to people."""


class ToolContext:
    """What a running tool may know and do."""

    __slots__ = ("_reserve_intent", "_side_effects", "_staged", "_world", "session_id", "tool_call_id", "turn_id")

    def __init__(
        self, session_id: str, turn_id: str, tool_call_id: str, world: World, reserve_intent: Callable[[], None]
    ) -> None:
        self.session_id = session_id
        self.turn_id = turn_id
        self.tool_call_id = tool_call_id
        self._staged: list[Intent] = []
        self._side_effects = False
        self._world = world
        self._reserve_intent = reserve_intent

    @property
    def world(self) -> Any:
        """The world as it was committed when the tool was called: a copy, so nothing done to it counts."""
        return self._world.view()

    def request_commit(self, intent: Intent) -> None:
        """Stage an intent. It is judged at the end of the turn, if the tool and the turn both end well."""
        check_intent(intent)
        self._reserve_intent()
        self._staged.append(intent)

    def begin_side_effects(self) -> None:
        """Say that from now on the outside may have changed."""
        self._side_effects = True

    @property
    def staged(self) -> tuple[Intent, ...]:
        """What it asked for so far."""
        return tuple(self._staged)

    @property
    def side_effects_begun(self) -> bool:
        """Whether it called `begin_side_effects`."""
        return self._side_effects


ToolFunction: TypeAlias = "Callable[[Mapping[str, JsonValue], ToolContext], Awaitable[ToolReturn | JsonValue]]"
"""A plain JSON value is returned as a `ToolReturn` without a summary."""


@frozen(kw_only=True)
class Tool:
    """Something a model may ask the game to do. Raises `RegistrationError` if it cannot work."""

    name: str
    """1 to 64 lower-case letters, digits or `_`, a letter first."""
    run: ToolFunction
    """Called with the arguments and a `ToolContext`. Raises `ToolError` to tell the model why it will not."""
    description: str = ""
    """What it does, told to the model."""
    cancel_safe: bool = False
    """Whether it is cancelled when its turn is interrupted. If not, it may finish, and is discarded."""
    side_effects: SideEffects | None = None
    """What it declares; undeclared counts as immediate."""
    idempotency_key: Callable[[Mapping[str, JsonValue]], str] | None = None
    """Calls with the same key run once, for as long as the ledger remembers the key. Without it each call has a
    key of its own. The ledger keeps it: make it of ids, never of what somebody said."""

    def __attrs_post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise RegistrationError(
                f"The tool name {self.name!r} must be 1 to 64 lower-case letters, digits or _, a letter first."
            )
        if self.cancel_safe and self.side_effects is None:
            raise RegistrationError(f"The tool {self.name} is cancel_safe, so it must declare side_effects.")
