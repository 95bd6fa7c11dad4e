"""Run: the log of one narrated turn, and what it says as a whole.

    id: 4
    event: tool_start
    data: {"type":"tool_start",...}

The `id` of an event is its place in the log, so a client that reconnects with it continues after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.modes import Candidate, ExecutionPolicy
from footlights.params import Mode
from footlights_transports.views.base.run_log import RunLog
from footlights_transports.views.dexi.pure.events import DexiEvent, OutputDelta, to_json
from footlights_transports.views.dexi.pure.recollection import FIRST_RECALLED, Recollection

if TYPE_CHECKING:
    from footlights.events import JsonValue
    from footlights_transports.access.policy import User
    from footlights_transports.views.dexi.pure.narration import Narrator


class Run(RunLog[DexiEvent]):
    """A narrated run."""

    def __init__(
        self,
        user: User,
        session_id: str,
        turn_id: str,
        narrator: Narrator,
        wall_time: float,
        decision: dict[str, JsonValue],
    ) -> None:
        """`decision` is the record of the mode decision."""
        super().__init__(user, session_id, turn_id, narrator, wall_time)
        self._decision = decision
        self.first_id = FIRST_RECALLED if isinstance(narrator, Recollection) else 0
        """The id of its first event."""

    @property
    def allow(self) -> dict[str, JsonValue] | None:
        """What to send with the request so that it is executed, if it was not."""
        denied = (self._decision.get("mode"), self._decision.get("candidate")) == (Mode.CHAT, Candidate.EXECUTION)
        return {"execution_policy": ExecutionPolicy.AUTO.value} if denied else None

    def answer(self) -> dict[str, JsonValue]:
        """The whole run as one JSON object."""
        message = "".join(each.event.content for each in self.entries if isinstance(each.event, OutputDelta))
        return {
            "mode": self._decision["mode"],
            "run_id": self.run_id,
            "message": message,
            "allow": self.allow,
            "events": [to_json(each.event) for each in self.entries],
        }

    def description(self) -> dict[str, JsonValue]:
        """The session and turn of the run, and the record of its mode decision."""
        return {
            "run_id": self.run_id,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "is_over": self.is_over,
            "allow": self.allow,
            "decision": self._decision,
        }
