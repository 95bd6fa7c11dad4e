"""The tool runner of a turn: it runs what the model asks for, and settles every call with the stream.

Tools run as tasks of the stage, not of the turn. When the turn is interrupted, a running tool may finish: it
has `tool_cancel_grace` to do so, then it is reported as canceled and left to run on, its result discarded.
A `cancel_safe` tool is cancelled instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from footlights.errors import ToolError
from footlights.events import ErrorInfo, ToolCallResult, ToolCallStarted
from footlights.models import ToolExchange, ToolRequest
from footlights_actors.tool_call import ToolCall

if TYPE_CHECKING:
    from footlights.cast import Services
    from footlights.tools import Tool
    from footlights.turn import Turn


@enable_ki_protection
async def run_tools(
    turn: Turn,
    services: Services,
    rounds: trio.MemoryReceiveChannel[tuple[ToolRequest, ...]],
    results: trio.MemorySendChannel[tuple[ToolExchange, ...]],
) -> None:
    calls = 0
    async for requests in rounds:
        exchanges: dict[int, ToolExchange] = {}
        async with trio.open_nursery() as nursery:
            for number, request in enumerate(requests, start=calls + 1):
                nursery.start_soon(_run_one, turn, services, number, request, exchanges)
        calls += len(requests)
        await results.send(tuple(exchanges[number] for number in sorted(exchanges)))


@enable_ki_protection
async def _run_one(
    turn: Turn, services: Services, number: int, request: ToolRequest, exchanges: dict[int, ToolExchange]
) -> None:
    tool_call_id = f"call-{number}"
    tool = services.cast.tools.get(request.tool_name)
    if tool is None:
        exchanges[number] = _refuse(turn, tool_call_id, request)
    else:
        exchanges[number] = await _run_tool(turn, services, tool_call_id, tool, request)


def _refuse(turn: Turn, tool_call_id: str, request: ToolRequest) -> ToolExchange:
    error = ErrorInfo("unknown_tool", "There is no such tool.")
    turn.start_tool(ToolCallStarted(tool_call_id, "unknown"))
    turn.end_tool(ToolCallResult(tool_call_id, "unknown", canceled=False, error=error))
    return ToolExchange(request, None, error.message)


async def _run_tool(
    turn: Turn, services: Services, tool_call_id: str, tool: Tool, request: ToolRequest
) -> ToolExchange:
    call = ToolCall(turn, services, tool_call_id, tool, request)
    turn.start_tool(ToolCallStarted(tool_call_id, tool.name))
    services.start_tool(call.run, f"tool {tool.name} of {turn.turn_id}")
    try:
        await call.done.wait()
    except trio.Cancelled:
        call.discard()
        with trio.move_on_after(services.limits.tool_cancel_grace, shield=True):
            await call.done.wait()
        turn.end_tool(call.canceled_result())
        raise
    if turn.is_stopping:  # the interruption overtook a result that was on its way
        turn.end_tool(call.canceled_result())
    else:
        turn.end_tool(call.result(), call.context.staged)
    if call.crash is not None:
        raise ToolError("The tool failed.") from call.crash
    return call.exchange()
