"""One call of one tool, as a task of the stage: it may outlive its turn, never the stage.

It is never run twice. A tool with side effects is entered into the ledger before it begins and again when it has
ended; one that was begun and of which nothing more is known may have had its effect, so it is not run again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson
import trio

from footlights.errors import LedgerUnavailable, ToolError
from footlights.events import ErrorInfo, ToolCallResult
from footlights.failures import describe
from footlights.models import ToolExchange
from footlights.tools import SideEffects, ToolContext, ToolReturn

if TYPE_CHECKING:
    from footlights.cast import Services
    from footlights.models import ToolRequest
    from footlights.tools import Tool
    from footlights.turn import Turn

MAX_SUMMARY_CHARS = 500

log = logging.getLogger("footlights.tools")


class ToolCall:
    def __init__(self, turn: Turn, services: Services, tool_call_id: str, tool: Tool, request: ToolRequest) -> None:
        self.context = ToolContext(
            turn.session_id,
            turn.turn_id,
            tool_call_id,
            services.world,
            services.limits.max_intents_per_turn,
        )
        self.done = trio.Event()
        self.crash: Exception | None = None
        self._tool = tool
        self._request = request
        self._ledger = services.ledger
        self._max_bytes = services.limits.max_event_bytes
        self._scope = trio.CancelScope()
        self._answer = ToolReturn(None)
        self._error: ErrorInfo | None = None

    # -- for the turn

    def discard(self) -> None:
        """The turn was interrupted. Only a tool that declared itself safe is cancelled for that."""
        if self._tool.cancel_safe:
            self._scope.cancel(reason="its turn was interrupted")

    def result(self) -> ToolCallResult:
        return ToolCallResult(
            self.context.tool_call_id,
            self._tool.name,
            canceled=False,
            summary=self._answer.summary,
            error=self._error,
        )

    def canceled_result(self) -> ToolCallResult:
        return ToolCallResult(
            self.context.tool_call_id,
            self._tool.name,
            canceled=True,
            side_effects_may_have_occurred=self._tool.may_have_had_side_effects(self.context),
        )

    def exchange(self) -> ToolExchange:
        return ToolExchange(self._request, self._answer.value, None if self._error is None else self._error.message)

    # -- as a task

    async def run(self) -> None:
        try:
            began = await self._claim()
            if began:
                with self._scope:
                    await self._attempt()
        finally:
            self.done.set()
        if began:
            await self._record()

    async def _attempt(self) -> None:
        """The supervision boundary of a tool: what it raises becomes a result, and hurts only its turn."""
        try:
            answer = await self._tool.run(self._request.arguments, self.context)
            self._answer = self._checked(answer if isinstance(answer, ToolReturn) else ToolReturn(answer))
        except ToolError as error:
            self._fail(error.code, str(error))
        except Exception as error:  # noqa: BLE001 - see above
            self.crash = error
            self._fail("tool_error", "The tool failed.")
            # Not log.exception: the text of the exception may quote what was said.
            log.error("%s in %s: %s", self._tool.name, self.context.turn_id, describe(error))

    def _checked(self, answer: ToolReturn) -> ToolReturn:
        try:
            size = len(orjson.dumps(answer.value))
        except TypeError:
            raise ToolError("The tool's result is not JSON.") from None
        if size > self._max_bytes:
            raise ToolError("The tool's result is too large.")
        summary = answer.summary
        return answer if summary is None else ToolReturn(answer.value, summary[:MAX_SUMMARY_CHARS])

    def _fail(self, code: str, message: str) -> None:
        self.context.staged.clear()
        self._error = ErrorInfo(code, message[:MAX_SUMMARY_CHARS])

    # -- the tool ledger

    @property
    def _key(self) -> str:
        if self._tool.idempotency_key is not None:
            return f"{self._tool.name}:{self._tool.idempotency_key(self._request.arguments)}"
        return f"{self.context.session_id}/{self.context.turn_id}/{self.context.tool_call_id}"

    async def _claim(self) -> bool:
        """Whether the tool may begin. The claim is durable before it does."""
        if self._tool.side_effects is SideEffects.NONE:
            return True
        try:
            earlier = await self._ledger.begin_tool(self._key)
        except LedgerUnavailable:
            self._fail(LedgerUnavailable.code, "The tool was not run: the ledger cannot record it.")
            return False
        if earlier is not None:
            self._fail("already_run", f"The tool was run before with this key; it is {earlier.state}.")
        return earlier is None

    async def _record(self) -> None:
        if self._tool.side_effects is SideEffects.NONE:
            return
        if self._scope.cancelled_caught and self._tool.may_have_had_side_effects(self.context):
            return  # unknown it stays
        failed = self._error is not None or self._scope.cancelled_caught
        try:
            await self._ledger.complete_tool(self._key, "error" if failed else "ok")
        except LedgerUnavailable:
            log.error("%s in %s ended, and the ledger could not record it", self._tool.name, self.context.turn_id)
