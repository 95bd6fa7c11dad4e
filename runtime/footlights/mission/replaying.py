"""A recorded sequence of callouts, decided again. The same sequence gives the same decisions, in any process.

Each entry is a request as others make it (`read_callout`), with two differences: its `policy_ts_ms` is the time it is
decided at (without it, that of the entry before), and `voice_fails` says whether its voice failed, if it had one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.errors import InvalidCommand
from footlights.mission.history import History
from footlights.mission.policy import decide, voice_failed
from footlights.mission.requests import read_callout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from footlights.mission.policy import Decision


def replay(entries: Iterable[Mapping[str, object]], history: History | None = None) -> Iterator[Decision]:
    """The decisions, one for each entry. Raises `InvalidCommand` at an entry that makes no sense."""
    history = history or History()
    time_ms = 0
    for number, entry in enumerate(entries, start=1):
        fails = entry.get("voice_fails", False)
        if type(fails) is not bool:
            raise InvalidCommand("voice_fails: must be true or false")
        fields = {name: value for name, value in entry.items() if name != "voice_fails"}
        request = read_callout(fields, f"event-{number:06d}")
        time_ms = time_ms if request.policy_ts_ms is None else request.policy_ts_ms
        decision = decide(request.event, request.context, history, time_ms)
        if fails and decision.speak and not request.dry_run:
            decision = voice_failed(decision, decision.history, time_ms)
        if not request.dry_run:
            history = decision.history
        yield decision
