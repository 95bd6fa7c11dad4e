"""Tool group: steps of tools that are written together, each decided as if it were alone.

Each write reaches the disk before its call returns, and most of its time is spent there. So steps that arrive while
another write is under way wait together, and the first call that gets the ledger writes them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import define

from footlights.authority.ledger.protocol import ToolRecord, ToolState
from footlights.authority.tool_steps import ToolStep
from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from footlights.authority.ledger.protocol import TurnRequest
    from footlights.errors import FootlightsError

MAX_STEPS = 256


@define(eq=False)
class WaitingStep:
    """A call that takes a step, and its answer."""

    key: str
    step: ToolStep
    request: TurnRequest | None = None
    known: ToolRecord | None = None
    """An earlier claim of the key, for a call that begins a tool."""
    refused: FootlightsError | None = None

    def decide(self, known: ToolRecord | None) -> bool:
        """Whether the step is to be written, if this is known of its key. Raises `InvalidCommand`."""
        if self.step is ToolStep.STARTED:
            self.known = known
            return known is None
        if self.step is ToolStep.RELEASED:
            return known is not None and known.state is ToolState.STARTED
        if known is None or known.state not in (ToolState.STARTED, self.step):
            raise InvalidCommand("That tool was never begun, or it has ended otherwise.")
        return known.state is ToolState.STARTED

    @property
    def leaves(self) -> ToolRecord | None:
        """What is known of the key when the step was written."""
        return None if self.step is ToolStep.RELEASED else ToolRecord(self.key, ToolState(self.step))


class ToolGroup:
    def __init__(self) -> None:
        self.steps: list[WaitingStep] = []
        self.has_writer = False
        self.begun = False
        """The write was begun: no step can be added or taken back."""
        self.attempted = trio.Event()
        """The write has returned: it succeeded, failed, or is in doubt."""
        self.decided = False
        self.failed: BaseException | None = None
        self._changed = trio.Event()

    @property
    def takes_more(self) -> bool:
        return not self.begun and len(self.steps) < MAX_STEPS

    def decide(self, failed: BaseException | None) -> None:
        self.decided, self.failed = True, failed

    def release(self) -> None:
        """The writer has left: the group is decided, or another call goes on."""
        self.has_writer = False
        self._changed.set()
        self._changed = trio.Event()

    async def wait(self) -> None:
        """Wait until the writer has left."""
        await self._changed.wait()
