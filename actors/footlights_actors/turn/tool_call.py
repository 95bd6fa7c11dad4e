"""Tool call: one call of one tool, as a task of the stage, which may outlive its turn.

A call never runs twice. A tool with side effects claims its key in the ledger before it starts, and the ledger records
its outcome. A key that was claimed and has no outcome may have had its effect, so its tool is not run again; a tool
that was stopped before it had any effect releases its key.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Literal

import orjson
import trio
from attrs import evolve

from footlights.authority.approvals import asks
from footlights.authority.digest import NotCanonical, canonical
from footlights.authority.pending import APPROVALS
from footlights.authority.values import snapshot
from footlights.bad_return import BadReturn
from footlights.errors import LedgerFenced, LedgerUnavailable, TooLarge, ToolError
from footlights.events import ErrorInfo, ToolCallResult
from footlights.failures import code_of, contained, leaves, name_of, report
from footlights.models.model import ToolExchange
from footlights.tools.artifact_notes import artifacts_ext, summary_of
from footlights.tools.decorator import not_awaited
from footlights.tools.tool import SideEffects, ToolContext, ToolReturn
from footlights.wire import payload_size
from footlights.wire.values import Unfit, json_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.authority import Intent
    from footlights.cast import Services
    from footlights.events import Ext, JsonValue
    from footlights.models.model import ToolRequest
    from footlights.tools.tool import Tool
    from footlights.turn.turn import Turn

_WAITS = "It waits for the player's approval. Say so, and do not say that it is done."
_NOT_ASYNC = "The tool's run is not async. Write it with async def, or make the tool with @tool."

log = logging.getLogger("footlights.tools")


class Phase(Enum):
    """Phase of a call. Calls move only downwards in this list."""

    WAITING = auto()
    """Its arguments are validated and its key is claimed; the tool has not started."""
    NEVER_STARTED = auto()
    """The tool has not started, and will not."""
    RUNNING = auto()
    """The tool runs, and its result counts."""
    RESULT_IGNORED = auto()
    """The tool may still run, but its result does not count."""
    ENDED = auto()
    """The tool has ended."""


_AFTER_IGNORING = {Phase.WAITING: Phase.NEVER_STARTED, Phase.RUNNING: Phase.RESULT_IGNORED}
_AFTER_END = {Phase.WAITING: Phase.NEVER_STARTED, Phase.RUNNING: Phase.ENDED, Phase.RESULT_IGNORED: Phase.ENDED}


class CallState:
    """The phase of one call, which decides whether intents of its tool still count.

    The tool's context refers to this object instead of the call, which refers to the context: that would be a
    reference cycle.
    """

    __slots__ = ("_turn", "phase")

    def __init__(self, turn: Turn) -> None:
        self.phase = Phase.WAITING
        self._turn = turn

    def ignore_result(self) -> None:
        self.phase = _AFTER_IGNORING.get(self.phase, self.phase)

    def end(self) -> None:
        self.phase = _AFTER_END.get(self.phase, self.phase)

    def reserve_intent(self, size: int) -> bool:
        """Whether an intent of the tool still counts. After an interruption of the turn it is discarded."""
        counts = self.phase is Phase.RUNNING and not self._turn.is_interrupted
        if counts:
            self._turn.reserve_intent(size)
        return counts


class ToolCall:
    def __init__(
        self, turn: Turn, services: Services, tool_call_id: str, tool: Tool | None, request: ToolRequest
    ) -> None:
        self.tool_call_id = tool_call_id
        self.tool_name = "unknown" if tool is None else tool.name
        self.answered = trio.Event()
        self.crash: BaseException | None = None
        """The exception of the tool. It refers back to this call, so the tool runner clears it after use."""
        self._tool = tool
        self._request = request
        self._state = CallState(turn)
        self._context = ToolContext(
            turn.session_id,
            turn.turn_id,
            tool_call_id,
            services.committed_world,
            self._state.reserve_intent,
            persona=turn.persona_name,
            speaker=turn.speaker,
        )
        self._ledger = services.ledger
        self._turn_request = turn.request
        self._max_bytes = services.limits.max_event_bytes
        self._scope = trio.CancelScope()
        self._claimed: str | None = None
        self._outcome: Literal["ok", "error"] = "error"
        self._answer = ToolReturn(None)
        self._artifacts: Ext | None = None
        self._awaits_approval = False
        self._rules = turn.cast.rules
        self._error: ErrorInfo | None = None

    # -- for the turn

    @property
    def timeout(self) -> float:
        return math.inf if self._tool is None or self._tool.timeout is None else self._tool.timeout

    def refuse(self, code: str, message: str) -> None:
        """End the call with this error. A tool that has not started never will."""
        self._state.ignore_result()
        self._fail(code, message)
        self.answered.set()

    def time_out(self) -> None:
        """End the call by its timeout, and cancel the tool. If it continues all the same, that has no effect."""
        self.refuse("tool_timeout", "The tool took longer than it may.")
        self._scope.cancel(reason="the tool's timeout has expired")

    def turn_interrupted(self) -> None:
        """Do not start the tool any more. A running tool is cancelled only if it is `cancel_safe`."""
        self._state.ignore_result()
        if self._tool is not None and self._tool.cancel_safe:
            self._scope.cancel(reason="its turn was interrupted")

    def end_without_tool(self) -> ToolCallResult:
        """The result of a call whose turn ends before its tool does."""
        self.turn_interrupted()
        return self.canceled_result()

    @property
    def staged(self) -> tuple[Intent, ...]:
        return self._context.staged if self._error is None else ()

    def result(self) -> ToolCallResult:
        return self._result_with(self._answer.summary, self._artifacts, self._error)

    def _result_with(self, summary: str | None, notes: Ext | None, error: ErrorInfo | None = None) -> ToolCallResult:
        return ToolCallResult(
            self.tool_call_id,
            self.tool_name,
            canceled=False,
            summary=summary,
            error=error,
            awaits_approval=self._awaits_approval and error is None,
            ext=notes,
        )

    def canceled_result(self) -> ToolCallResult:
        return ToolCallResult(
            self.tool_call_id,
            self.tool_name,
            canceled=True,
            side_effects_may_have_occurred=self._may_have_side_effects(),
        )

    def exchange(self) -> ToolExchange:
        if self._error is not None:
            return ToolExchange(self._request, None, self._error.message)
        value = self._answer.value
        if self._awaits_approval:
            value = {**(value if isinstance(value, dict) else {"result": value}), "not_done_yet": _WAITS}
        return ToolExchange(self._request, value, None)

    # -- as a task

    async def run(self) -> None:
        """The supervision boundary of a tool: its exceptions become a result, and affect only its turn."""
        assert self._tool is not None, "a call of an unknown tool is refused"
        try:
            # Outside the scope, because closing the scope raises if the tool left a scope of its own open.
            with contained(self._record_failure), self._scope:
                await self._call(self._tool)
        finally:
            self._state.end()
            self.answered.set()
        if self._claimed is not None:
            await self._record(self._tool, self._claimed)

    async def _call(self, tool: Tool) -> None:
        arguments = tool.read_arguments(self._request.arguments)
        if await self._claim(tool, arguments) and self._state.phase is Phase.WAITING:
            self._state.phase = Phase.RUNNING
            running = tool.run(arguments, self._context)
            if not hasattr(running, "__await__"):  # a tool need not be typed
                raise BadReturn(_NOT_ASYNC, tool.run)
            answer = await running
            if hasattr(answer, "__await__"):
                raise not_awaited(answer, tool.run)
            self._succeed(answer)

    def _record_failure(self, error: BaseException) -> None:
        members = list(leaves(error))
        for refusal in members:
            if isinstance(refusal, ToolError):
                self._fail(code_of(refusal), _said_by(refusal))
        crashes = [each for each in members if not isinstance(each, ToolError)]
        if crashes:
            if self._state.phase in _AFTER_IGNORING:  # otherwise the tool runner no longer waits for it
                self.crash = crashes[0]
            hint = next((each for each in crashes if isinstance(each, BadReturn)), None)
            self._fail("tool_error", "The tool failed." if hint is None else str(hint))
            for crash in crashes:
                report(log, f"the tool {self.tool_name} failed in {self._context.turn_id}", crash)

    def _succeed(self, answer: ToolReturn | JsonValue) -> None:
        given = answer if isinstance(answer, ToolReturn) else ToolReturn(answer)
        checked, artifacts = self._checked(given), _checked_artifacts(given)
        with contained(
            lambda _: None
        ):  # the code of the host fails again when the turn is judged, and is reported then
            self._awaits_approval = self._error is None and self._asks()
        if checked.summary or artifacts:
            self._check_size(self._result_with(checked.summary, artifacts))
        self._outcome = "ok"
        if self._error is None:
            self._answer, self._artifacts = checked, artifacts

    def _asks(self) -> bool:
        """Whether what the tool staged would wait for an approval. The last word has the commit of the turn."""
        if not self._context.staged or APPROVALS not in self._rules:
            return False
        speaker = self._context.speaker
        staged = [evolve(each, session_id=speaker.session_id, about=speaker.about) for each in self._context.staged]
        return asks(self._rules, self._context.world, staged)

    def _checked(self, answer: ToolReturn) -> ToolReturn:
        try:
            value = json_value(snapshot(answer.value))  # it may have views of the world in it
        except (Unfit, TooLarge):
            assert self._tool is not None, "only a tool answers"
            told = f"The tool's result is not JSON: {_what_is_not_json(answer.value)}."
            report(log, f"the tool {self.tool_name} failed in {self._context.turn_id}", BadReturn(told, self._tool.run))
            raise ToolError("The tool's result is not JSON.") from None
        if len(orjson.dumps(value)) > self._max_bytes:
            raise ToolError("The tool's result is too large.")
        if answer.summary is None:
            return ToolReturn(value)
        if not isinstance(answer.summary, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a tool may lie
            raise ToolError("The tool's summary is not text.")
        return ToolReturn(value, summary_of(answer.summary))

    def _check_size(self, result: ToolCallResult) -> None:
        if payload_size(result) > self._max_bytes:
            raise ToolError("The tool's summary and notes of artifacts are too large.")

    def _fail(self, code: str, message: str) -> None:
        """Record the first failure; a timeout counts before a later error of the tool."""
        if self._error is None:
            self._error = ErrorInfo(code, summary_of(message))

    def _may_have_side_effects(self) -> bool:
        if self._tool is None or self._state.phase in (Phase.WAITING, Phase.NEVER_STARTED):
            return False
        if self._state.phase is Phase.ENDED and self._tool.side_effects is SideEffects.MARKED:
            return self._context.side_effects_begun
        return self._tool.side_effects is not SideEffects.NONE

    # -- the tool ledger

    async def _claim(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether the tool may start. If it has side effects, its claim is durable first."""
        if tool.side_effects is SideEffects.NONE:
            return True
        key = self._key(tool, arguments)
        try:
            earlier = await self._ledger.begin_tool(key, self._turn_request)
        except LedgerUnavailable:
            self._fail(LedgerUnavailable.code, "The tool was not run: the ledger cannot record it.")
            return False
        except LedgerFenced:  # the stage closes; until then the call has failed
            self._fail(LedgerFenced.code, "The tool was not run: another stage has taken the ledger over.")
            raise
        if earlier is not None:
            self._fail("already_run", f"The tool was run before with this key; it is {earlier.state}.")
            return False
        self._claimed = key
        return True

    def _key(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        if tool.idempotency_key is None:
            return f"{self._context.session_id}/{self._context.turn_id}/{self.tool_call_id}"
        key = f"{tool.name}:{tool.idempotency_key(arguments)}"
        try:
            key.encode()
        except UnicodeEncodeError:  # the key may be built from the model's arguments
            raise ToolError("The tool was not run: its key is not valid Unicode.") from None
        return key

    async def _record(self, tool: Tool, key: str) -> None:
        def fail(error: BaseException) -> None:  # the tool has ended, but the ledger does not know
            report(log, f"the tool {tool.name} ended unrecorded in {self._context.turn_id}", error)

        with contained(fail):
            if self._state.phase is Phase.ENDED and not self._scope.cancelled_caught:
                await self._ledger.complete_tool(key, self._outcome)
            elif not self._may_have_side_effects():
                await self._ledger.release_tool(key)


def _checked_artifacts(answer: ToolReturn) -> Ext | None:
    try:
        return artifacts_ext(answer.reads, answer.generates)
    except Unfit as error:
        raise ToolError(f"The tool's notes of artifacts {error}.") from None


def _said_by(error: BaseException) -> str:
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a boundary: an error that cannot even be printed
        return "The tool failed."


def _what_is_not_json(value: object) -> str:
    """Without the path, in which names may stand."""
    if type(value) in (dict, list):
        with suppress(TooLarge):
            try:
                canonical(value)
            except NotCanonical as error:
                return error.reason
    return f"its type is {name_of(value)}"
