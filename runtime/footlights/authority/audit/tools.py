"""Audit of tool steps: their digests, their chain, and their order for each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.authority import chain
from footlights.authority.audit.reader import Altered
from footlights.authority.digest import NotCanonical
from footlights.authority.tool_steps import NEXT_STEPS, ToolStep

if TYPE_CHECKING:
    from footlights.authority.audit.reader import ToolRow


class ToolsWalk:
    """The state of the audit of tool steps. `kept_head` is the tools head of an earlier audit."""

    def __init__(self, kept_head: str | None) -> None:
        self._kept_head = kept_head
        self.head_position: int | None = None
        self._epoch = 1
        self._last_steps: dict[str, ToolStep] = {}
        self.position = 0
        self.head = ""

    def begin(self, genesis_digest: str) -> None:
        self._arrive(0, chain.seed(genesis_digest))

    def take(self, row: ToolRow, last_epoch: int) -> None:
        expected = self.position + 1
        if row.position > expected:
            raise Altered(_place(expected), "It is missing.")
        # Not named by its key, which may contain text of a model.
        place = _place(row.position)
        if row.position < expected:
            raise Altered(place, "No step has such a number.")
        if row.digest != self._linked(row):
            raise Altered(place, "It is not what was written, or not chained to the step before it.")
        if not self._epoch <= row.epoch <= last_epoch:
            raise Altered(place, f"It is said to be of epoch {row.epoch}, which it cannot be.")
        if row.step not in NEXT_STEPS[self._last_steps.get(row.key)]:
            raise Altered(place, "A tool cannot take this step after the one that it took last.")
        self._last_steps[row.key] = ToolStep(row.step)
        self._epoch = row.epoch
        self._arrive(row.position, row.digest)

    def _linked(self, row: ToolRow) -> str | None:
        try:
            return chain.link_tool(self.head, row.position, row.epoch, row.key, row.step)
        except NotCanonical:
            return None

    def _arrive(self, position: int, head: str) -> None:
        self.position = position
        self.head = head
        if head == self._kept_head:
            self.head_position = position

    def end(self, last_digest: str) -> None:
        if last_digest != self.head:
            raise Altered(
                "tools",
                f"Step {self.position} is not the last that was written: some were taken out or put in at the end.",
            )
        if self._kept_head is not None and self.head_position is None:
            raise Altered(
                "tools",
                "The head that was kept elsewhere is not among their steps: these were cut before it, or written anew.",
            )


def _place(position: int) -> str:
    return f"tool step {position}"
