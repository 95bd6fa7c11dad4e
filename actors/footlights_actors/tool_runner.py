"""Tool runner of a turn: runs the requested tools, and sends a result for every call.

Tools run as tasks of the stage, not of the turn. When the turn is interrupted, a running tool has `tool_cancel_grace`
to end, and a `cancel_safe` one is cancelled at once. Either way it is reported as `canceled` and its result is
discarded. A tool that has not ended by then continues in the background. A tool that exceeds its `timeout` is cancelled
in any case, its result is an error, and the turn continues. Intents of tools are staged in the order of the calls,
independent of their speed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from footlights.checks import listed
from footlights.errors import Busy, ModelError, TooLarge, ToolError
from footlights.events import ToolCallStarted
from footlights.failures import tell_developer
from footlights_actors.turn.tool_call import ToolCall

if TYPE_CHECKING:
    from footlights.cast import Services
    from footlights.models.model import ToolExchange, ToolRequest
    from footlights.turn.turn import Turn

log = logging.getLogger("footlights.tools")


class ToolRunner:
    """Runs rounds of tools of one turn, in the turn's own task."""

    def __init__(self, turn: Turn, services: Services) -> None:
        self._turn = turn
        self._services = services
        self._calls_made = 0

    @enable_ki_protection
    async def run(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolExchange, ...]:
        turn, services = self._turn, self._services
        calls = [_begin(turn, services, self._calls_made + n, request) for n, request in enumerate(requests, start=1)]
        self._calls_made += len(calls)
        if len(calls) == 1:  # a nursery and a task more would cost a tenth of the turn
            await _settle(turn, services, calls[0])
        else:
            async with trio.open_nursery() as nursery:
                for call in calls:
                    nursery.start_soon(_settle, turn, services, call)
        for call in calls:
            turn.staged.extend(call.staged)
        return tuple(call.exchange() for call in calls)


def _begin(turn: Turn, services: Services, number: int, request: ToolRequest) -> ToolCall:
    # A model may request a tool that was not offered; for this persona it does not exist.
    may_use = turn.cast.persona(turn.params.persona).may_use(request.tool_name)
    tool = turn.cast.tools.get(request.tool_name) if may_use else None
    call = ToolCall(turn, services, f"call-{number}", tool, request)
    try:
        turn.start_tool(ToolCallStarted(call.tool_call_id, call.tool_name), call.end_without_tool)
    except TooLarge as error:
        raise ModelError(sentence="The model asked for more tools than a turn may hold.") from error
    if tool is None:
        call.refuse("unknown_tool", "There is no such tool.")
        _explain_unknown_tool(turn, request.tool_name)
    elif request.problem is not None:
        call.refuse("invalid_arguments", request.problem)
    else:
        try:
            services.start_tool(call.run, f"tool {tool.name} of {turn.turn_id}", turn.session_id)
        except Busy:
            call.refuse(Busy.code, "Too many tools are running.")
    return call


def _explain_unknown_tool(turn: Turn, name: str) -> None:
    """Tell the developer. The log does not have the name, which the model may have invented."""
    persona = turn.cast.persona(turn.params.persona)
    known = listed([each for each in turn.cast.tools if persona.may_use(each)])
    what = f"the model asked for an unknown tool in {turn.turn_id} of {turn.session_id}"
    tell_developer(log, what, ToolError(f"There is no tool {name[:64]!r} for {turn.persona_name}; there are: {known}."))
    log.warning("%s; there are: %s", what, known)


@enable_ki_protection
async def _settle(turn: Turn, services: Services, call: ToolCall) -> None:
    try:
        await _wait_for_result(turn, services, call)
    finally:
        call.crash = None


async def _wait_for_result(turn: Turn, services: Services, call: ToolCall) -> None:
    try:
        with trio.move_on_after(call.timeout):
            await call.answered.wait()
    except trio.Cancelled:
        # The turn was interrupted, or a sibling crashed; only this task grants the grace period.
        call.turn_interrupted()
        with trio.move_on_after(services.limits.tool_cancel_grace, shield=True):
            await call.answered.wait()
        if not turn.has_ended:
            turn.end_tool(call.canceled_result())
        raise
    if not call.answered.is_set():
        call.time_out()
    if turn.is_interrupted:  # the interruption came before this result was sent
        turn.end_tool(call.canceled_result())
        return
    if turn.screen is not None:
        turn.screen.note(call.exchange().value)
    turn.end_tool(call.result())
    if call.crash is not None:
        raise ToolError("The tool failed.") from call.crash
