"""Laws of tool calls: each has a unique id and exactly one result, before the turn ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from footlights.events import ToolCallResult, ToolCallStarted
    from footlights.laws.gap_places import Hidden
    from footlights.laws.law_texts import Report


class Tools:
    def __init__(self, report: Report, hidden: Hidden) -> None:
        self._report = report
        self._hidden = hidden
        self._open: dict[str, tuple[int, str]] = {}
        """The seq and the tool of each call without a result."""
        self._answered: set[str] = set()

    def started(self, seq: int, payload: ToolCallStarted) -> None:
        call = payload.tool_call_id
        if call in self._open or call in self._answered:
            self._report("tool_unique", seq, "starts a call under an id that was used before")
        else:
            self._open[call] = (seq, payload.tool_name)

    def result(self, seq: int, payload: ToolCallResult) -> None:
        call = payload.tool_call_id
        if call in self._answered:
            self._report("tool_once", seq, "is the second result of its call")
            return
        self._answered.add(call)
        if call not in self._open:
            if not self._hidden.take(0):
                self._report("tool_partner", seq, "is the result of a call that was not started")
            return
        started, tool = self._open.pop(call)
        if tool != payload.tool_name:
            self._report("tool_partner", seq, f"names another tool than the call of seq {started}")

    def ended(self, seq: int) -> None:
        for started, _ in self._open.values():
            if not self._hidden.take(started):
                self._report("tool_open", seq, f"ends the turn while the call of seq {started} has no result")
