"""Commits of the host: intents that are judged outside of sessions, in a chain of their own with counted ids.

They go through the same committer, rules and ledger as turns, and wait in the same queue. At most `max_open_turns` of
them wait at a time, beside the turns; further calls wait for a place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights.authority.intents import NOTHING_KNOWN, Intent, check_intent
from footlights.errors import CommitUnknown, InvalidCommand, SessionClosed, TooLarge
from footlights.ids import HOST, turn_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from footlights.cast import Cast
    from footlights.events import CommitFinal
    from footlights.limits import Limits
    from footlights.stage.registry import SessionRegistry
    from footlights.stage.supervisor import Supervisor
    from footlights.turn.timeline import CommitTimes

MAX_WHY_CHARS = 256


class HostCommit:
    """Satisfies `footlights.cast.Submission`."""

    session_id = HOST
    interruption = mode_decision = request = None
    about = NOTHING_KNOWN

    def __init__(
        self, number: str, intents: tuple[Intent, ...], why: str, cast: Cast, on_settled: Callable[[], None]
    ) -> None:
        self.turn_id = number
        self.staged = intents
        self.why = why
        self.cast = cast
        self.commit: CommitFinal | None = None
        self.settled = trio.Event()
        self._on_settled = on_settled

    def settle(self, commit: CommitFinal, times: CommitTimes) -> None:
        self.commit = commit
        self.lose_sight()

    def lose_sight(self) -> None:
        """End the wait. Without a commit, it is in doubt."""
        self.settled.set()
        self._on_settled()


class HostCommits:
    def __init__(self, supervisor: Supervisor, registry: SessionRegistry) -> None:
        self._supervisor = supervisor
        self._registry = registry
        self._places = trio.Semaphore(registry.limits.max_open_turns)
        self._counted = 0

    async def commit(self, intents: Sequence[Intent], why: str) -> CommitFinal:
        if isinstance(intents, Intent):
            raise InvalidCommand("The intents of a commit are a list.")
        staged = tuple(intents)
        check_why(why)
        _check_intents(staged, self._registry.limits)
        self._check_open()
        await self._places.acquire()
        try:
            commit = self._submit(staged, why)
        except BaseException:
            self._places.release()
            raise
        await commit.settled.wait()
        if commit.commit is None:
            raise CommitUnknown(f"Whether {commit.turn_id} was committed is known only after a restart.")
        return commit.commit

    def _submit(self, intents: tuple[Intent, ...], why: str) -> HostCommit:
        self._check_open()
        self._counted += 1
        number, cast = turn_id(self._registry.epoch, self._counted), self._supervisor.cast
        commit = HostCommit(number, intents, why, cast, lambda: self._settled(commit))
        self._registry.host_commits.add(commit)
        self._supervisor.judge_host(commit)
        return commit

    def _settled(self, commit: HostCommit) -> None:
        self._registry.host_commits.discard(commit)
        self._registry.settling.ring()
        self._places.release()

    def _check_open(self) -> None:
        if not self._supervisor.is_open:
            raise SessionClosed("The stage is closing.")


def check_why(why: object) -> None:
    """Raises `InvalidCommand` if this cannot be recorded as the reason of a commit."""
    if type(why) is not str or not why.isprintable() or not 0 < len(why) <= MAX_WHY_CHARS:
        raise InvalidCommand(f"why must be 1 to {MAX_WHY_CHARS} printable characters.")


def _check_intents(intents: tuple[Intent, ...], limits: Limits) -> None:
    if not intents:
        raise InvalidCommand("A commit needs at least one intent.")
    if len(intents) > limits.max_intents_per_turn:
        raise TooLarge(f"A commit has at most {limits.max_intents_per_turn} intents (max_intents_per_turn).")
    if sum(check_intent(intent).size for intent in intents) > limits.max_intent_bytes_per_turn:
        raise TooLarge(
            f"Its intents have at most {limits.max_intent_bytes_per_turn} bytes (max_intent_bytes_per_turn)."
        )
