"""Lifecycle: the table of what may follow what in a turn.

Pure: no I/O, no clock, no payloads but the ids of open tools. A step that is not in the table raises
`IllegalTransition` and changes nothing. The diagram in the docs is generated from this table.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from footlights.errors import IllegalTransition

if TYPE_CHECKING:
    from collections.abc import Mapping


class TurnState(StrEnum):
    """The states of a turn."""

    NEW = "new"
    """Nothing was emitted yet."""
    ACCEPTED = "accepted"
    """The input was received; the turn waits in the session's queue."""
    RUNNING = "running"
    """The actors are at work; no model event and no text was emitted yet."""
    SELECTED = "selected"
    """A model was chosen and is not ready yet."""
    LOADING = "loading"
    """The chosen model is loading, with progress events."""
    READY = "ready"
    """The chosen model is ready, and nothing was said or done with it: another one may still take its place."""
    PERFORMING = "performing"
    """Text may be emitted."""
    USING_TOOLS = "using_tools"
    """At least one tool is open; text may be emitted meanwhile."""
    STOPPING = "stopping"
    """An interruption was decided; open tools still have to report."""
    STOPPED = "stopped"
    """An interruption was decided and nothing is open: only the terminal event is missing."""
    INTERRUPTED = "interrupted"
    """`turn_interrupted` was emitted; the committer will fail the turn closed."""
    FINAL = "final"
    """`turn_final` was emitted; the committer judges the turn's intents."""
    COMMITTED = "committed"
    """`commit_final` was emitted. Nothing follows."""
    IN_DOUBT = "in_doubt"
    """The stage closed while the commit was in doubt. Only the ledger can tell, after a restart."""


class Step(StrEnum):
    """The steps of a turn: one for each event type, and those that emit no event.

    The result of the last open tool is a step of its own, so that "a tool is open" is a state of the table and not a
    flag beside it. So is a `model_selected` that replaces a model that failed, because it may not follow a token.
    """

    TURN_ACCEPTED = "turn_accepted"
    RUN = "run"
    MODEL_SELECTED = "model_selected"
    MODEL_FALLBACK = "model_fallback"
    MODEL_LOADING = "model_loading"
    MODEL_READY = "model_ready"
    TOKEN_DELTA = "token_delta"
    TOOL_CALL_STARTED = "tool_call_started"
    TOOL_CALL_RESULT = "tool_call_result"
    LAST_TOOL_CALL_RESULT = "last_tool_call_result"
    STOP = "stop"
    TURN_INTERRUPTED = "turn_interrupted"
    TURN_FINAL = "turn_final"
    COMMIT_FINAL = "commit_final"
    LOSE_SIGHT = "lose_sight"


TRANSITIONS: Mapping[TurnState, Mapping[Step, TurnState]] = MappingProxyType(
    {
        TurnState.NEW: {Step.TURN_ACCEPTED: TurnState.ACCEPTED},
        TurnState.ACCEPTED: {
            Step.RUN: TurnState.RUNNING,
            Step.STOP: TurnState.STOPPED,
        },
        TurnState.RUNNING: {
            Step.MODEL_SELECTED: TurnState.SELECTED,
            Step.MODEL_FALLBACK: TurnState.SELECTED,
            Step.TOKEN_DELTA: TurnState.PERFORMING,
            Step.TOOL_CALL_STARTED: TurnState.USING_TOOLS,
            Step.TURN_FINAL: TurnState.FINAL,
            Step.STOP: TurnState.STOPPED,
        },
        TurnState.SELECTED: {
            Step.MODEL_FALLBACK: TurnState.SELECTED,
            Step.MODEL_LOADING: TurnState.LOADING,
            Step.MODEL_READY: TurnState.READY,
            Step.STOP: TurnState.STOPPED,
        },
        TurnState.LOADING: {
            Step.MODEL_FALLBACK: TurnState.SELECTED,
            Step.MODEL_LOADING: TurnState.LOADING,
            Step.MODEL_READY: TurnState.READY,
            Step.STOP: TurnState.STOPPED,
        },
        TurnState.READY: {
            Step.MODEL_SELECTED: TurnState.SELECTED,
            Step.MODEL_FALLBACK: TurnState.SELECTED,
            Step.TOKEN_DELTA: TurnState.PERFORMING,
            Step.TOOL_CALL_STARTED: TurnState.USING_TOOLS,
            Step.TURN_FINAL: TurnState.FINAL,
            Step.STOP: TurnState.STOPPED,
        },
        TurnState.PERFORMING: {
            Step.MODEL_SELECTED: TurnState.SELECTED,
            Step.TOKEN_DELTA: TurnState.PERFORMING,
            Step.TOOL_CALL_STARTED: TurnState.USING_TOOLS,
            Step.TURN_FINAL: TurnState.FINAL,
            Step.STOP: TurnState.STOPPED,
        },
        TurnState.USING_TOOLS: {
            Step.TOKEN_DELTA: TurnState.USING_TOOLS,
            Step.TOOL_CALL_STARTED: TurnState.USING_TOOLS,
            Step.TOOL_CALL_RESULT: TurnState.USING_TOOLS,
            Step.LAST_TOOL_CALL_RESULT: TurnState.PERFORMING,
            Step.STOP: TurnState.STOPPING,
        },
        TurnState.STOPPING: {
            Step.TOOL_CALL_RESULT: TurnState.STOPPING,
            Step.LAST_TOOL_CALL_RESULT: TurnState.STOPPED,
        },
        TurnState.STOPPED: {Step.TURN_INTERRUPTED: TurnState.INTERRUPTED},
        TurnState.INTERRUPTED: {Step.COMMIT_FINAL: TurnState.COMMITTED, Step.LOSE_SIGHT: TurnState.IN_DOUBT},
        TurnState.FINAL: {Step.COMMIT_FINAL: TurnState.COMMITTED, Step.LOSE_SIGHT: TurnState.IN_DOUBT},
        TurnState.COMMITTED: {},
        TurnState.IN_DOUBT: {},
    }
)


_TABLE = {state: dict(steps) for state, steps in TRANSITIONS.items()}
"""The same as plain dicts, which are faster to read."""


SPEAKING = frozenset(state for state, steps in _TABLE.items() if steps.get(Step.TOKEN_DELTA) is state)
"""States that a token does not change, so that the hot path need not take the step."""


class Lifecycle:
    """The state of one turn. `open_tools` maps the id of each open call to the name of its tool."""

    __slots__ = ("_tools_seen", "open_tools", "state")

    def __init__(self) -> None:
        self.state = TurnState.NEW
        self.open_tools: dict[str, str] = {}
        self._tools_seen: set[str] = set()

    def advance(self, step: Step) -> None:
        following = _TABLE[self.state].get(step)
        if following is None:
            raise IllegalTransition(f"A turn that is {self.state} cannot take the step {step}.")
        self.state = following

    def may(self, step: Step) -> bool:
        return step in _TABLE[self.state]

    def start_tool(self, tool_call_id: str, tool_name: str) -> None:
        if tool_call_id in self._tools_seen:
            raise IllegalTransition(f"The tool call id {tool_call_id!r} was used in this turn before.")
        self.advance(Step.TOOL_CALL_STARTED)
        self._tools_seen.add(tool_call_id)
        self.open_tools[tool_call_id] = tool_name

    def end_tool(self, tool_call_id: str, tool_name: str) -> None:
        if self.open_tools.get(tool_call_id) != tool_name:
            raise IllegalTransition(f"No call {tool_call_id!r} of a tool {tool_name!r} is open.")
        last = len(self.open_tools) == 1
        self.advance(Step.LAST_TOOL_CALL_RESULT if last else Step.TOOL_CALL_RESULT)
        del self.open_tools[tool_call_id]


def diagram() -> str:
    """The table as a Mermaid state diagram, for the docs."""
    lines = ["stateDiagram-v2", f"    [*] --> {TurnState.NEW}"]
    for state, steps in TRANSITIONS.items():
        targets: dict[TurnState, list[Step]] = {}
        for step, target in steps.items():
            targets.setdefault(target, []).append(step)
        lines += [f"    {state} --> {target}: {', '.join(names)}" for target, names in targets.items()]
    lines += [f"    {state} --> [*]" for state, steps in TRANSITIONS.items() if not steps]
    return "\n".join(lines) + "\n"
