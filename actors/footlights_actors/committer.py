"""Committer of a stage: judges every ended turn and every commit of the host exactly once, in the order of arrival.

A batch consists of the turns that were queued while the previous batch was written. It is judged in a thread, against
the last durable world plus the earlier turns of the batch, then written in one transaction, and announced only when
that is durable. When the ledger cannot write, the whole batch fails closed and the world stays unchanged. A large batch
is announced while the next one is judged.

Why a thread of its own, and not that of the ledger: what the rules of a game take is the game's affair. While they
judge, the event loop streams, and the ledger answers subscribers that resume and records tools, also when a rule never
returns. It costs one more way to a thread and back for each batch.

A rule cannot be stopped. When the stage closes and a rule has not returned, its thread is left alone, nothing of its
batch is written, and the turns are in doubt.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from itertools import repeat
from typing import TYPE_CHECKING

import trio
from attrs import evolve
from trio.lowlevel import enable_ki_protection

from footlights.authority import JudgeRequest, judge, refuse, sealed
from footlights.authority.judge import asks_rules
from footlights.authority.record import commit_final
from footlights.errors import LedgerUnavailable
from footlights.events import CommitOutcome, Issue
from footlights.failures import report
from footlights.turn.timeline import CommitTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from footlights.authority import CommitRecord, Intent, Judgement, Ledger, Rule, Ruling, TurnRequest, World
    from footlights.cast import Submission
    from footlights.limits import Limits

log = logging.getLogger("footlights.committer")

MAX_BATCH = 256
_ANNOUNCED_AT_ONCE = 64
_JUDGED_AT_ONCE = 16
_OVERDUE_AFTER = 1.0
"""Seconds beyond its budget after which a rule that has not returned is reported."""
_THE_WORLD = "the world"
"""Reported in place of a rule when a world of the host's own kind does not return."""


class AuthorityCommitter:
    def __init__(self, ledger: Ledger, world: World, limits: Limits) -> None:
        self.world = world
        self._world_digest = world.digest()
        self._ledger = ledger
        self._rule_budget = limits.rule_budget
        self._patience = limits.rule_budget + _OVERDUE_AFTER
        self._in_hand = 0
        self._unannounced: deque[tuple[Submission, CommitRecord, CommitTimes]] = deque()
        """While it has any, a task announces them."""
        # The channel has room for every open turn, and for as many commits of the host: submitting can never fail.
        self._send, self._receive = trio.open_memory_channel["Submission"](2 * limits.max_open_turns)
        # Written by the thread, read by the loop. The clock is the run's, read directly: threads may do that.
        self._asked: str | None = None
        self._asked_at = 0.0
        self._clock: Callable[[], float] = lambda: 0.0
        self._judging = trio.Event()
        """Set while a batch is judged."""
        self._limiter = trio.CapacityLimiter(1)

    @property
    def waiting(self) -> int:
        return self._in_hand + self._receive.statistics().current_buffer_used

    @property
    def overdue_rule(self) -> str | None:
        asked = self._asked  # before the time, which only grows
        return asked if self._clock() >= self._asked_at + self._patience else None

    def submit_nowait(self, turn: Submission) -> None:
        # After a crash of the committer its turns are in doubt, and the stage reports that at shutdown.
        with suppress(trio.BrokenResourceError):
            self._send.send_nowait(turn)

    def close(self) -> None:
        self._send.close()

    @enable_ki_protection
    async def run(self) -> None:
        self._clock = trio.lowlevel.current_clock().current_time
        async with self._receive, trio.open_nursery() as nursery:
            nursery.start_soon(self._report_overdue, name="overdue rules")
            async for turn in self._receive:
                queued = min(MAX_BATCH - 1, self._receive.statistics().current_buffer_used)
                batch = [turn, *[self._receive.receive_nowait() for _ in range(queued)]]
                self._in_hand += len(batch)
                settled = await self._commit(batch)
                is_announcing = bool(self._unannounced)
                self._unannounced.extend(settled)
                if is_announcing:
                    continue
                if len(self._unannounced) <= _ANNOUNCED_AT_ONCE:
                    self._announce_some()
                else:  # what the players do about it comes after the next batch, which waits already
                    nursery.start_soon(self._announce, name="commits announced")
            nursery.cancel_scope.cancel(reason="the last turn is settled")

    async def _report_overdue(self) -> None:
        reported: float | None = None
        while True:
            await self._judging.wait()
            await trio.sleep_until(self._asked_at + self._patience)
            if self.overdue_rule is None:
                continue  # by now another rule is asked
            if self._asked_at != reported:
                reported = self._asked_at
                log.error("%s has not returned: no turn can be committed meanwhile", self.overdue_rule)
            await trio.sleep(self._patience)

    async def _commit(self, batch: list[Submission]) -> Iterable[tuple[Submission, CommitRecord, CommitTimes]]:
        heads = await self._heads(batch)
        judged_from = self._clock()
        records, world = await self._judge(batch, heads or {})
        times = CommitTimes(judged_from, self._clock())
        requests = tuple(turn.request for turn in batch if turn.request is not None)
        if heads is not None and await self._write(records, world, requests):
            self.world, self._world_digest = world, records[-1].world_after
        else:
            records = [_not_written(record) for record in records]
        return zip(batch, records, repeat(times))

    @enable_ki_protection
    async def _announce(self) -> None:
        self._announce_some()
        while self._unannounced:
            await trio.lowlevel.cancel_shielded_checkpoint()  # what is durable is announced whatever happens
            self._announce_some()

    def _announce_some(self) -> None:
        for _ in range(min(_ANNOUNCED_AT_ONCE, len(self._unannounced))):
            turn, record, times = self._unannounced.popleft()
            turn.settle(commit_final(record), times)
            self._in_hand -= 1

    async def _heads(self, batch: list[Submission]) -> dict[str, str] | None:
        """The last digests of the batch's sessions; None if the ledger cannot be read."""
        try:
            return dict(await self._ledger.last_digests(dict.fromkeys(turn.session_id for turn in batch)))
        except LedgerUnavailable:
            return None

    async def _write(self, records: list[CommitRecord], world: World, requests: tuple[TurnRequest, ...]) -> bool:
        try:
            await self._ledger.append(records, world, requests)
        except LedgerUnavailable:
            return False
        return True

    async def _judge(self, batch: list[Submission], heads: dict[str, str]) -> tuple[list[CommitRecord], World]:
        if len(batch) <= _JUDGED_AT_ONCE and not any(map(_asks_rules, batch)):
            return self._judged(batch, heads)[:2]  # no code of the game runs: it is done before a thread could begin
        self._asked_at, self._asked = self._clock(), _THE_WORLD
        self._judging.set()
        records, world, failed = await trio.to_thread.run_sync(
            self._judged, batch, heads, abandon_on_cancel=True, limiter=self._limiter, thread_name="footlights judge"
        )
        self._judging, self._asked = trio.Event(), None
        while failed:  # popped, because the exceptions refer to frames that refer to this list
            turn, judgement = failed.pop(0)
            for what, error in judgement.failures:
                report(log, f"{what} failed in {turn.turn_id} of {turn.session_id}", error)
            del judgement
        return records, world

    # -- in the thread

    def _judged(
        self, batch: list[Submission], heads: dict[str, str]
    ) -> tuple[list[CommitRecord], World, list[tuple[Submission, Judgement]]]:
        world, world_digest = self.world, self._world_digest
        records: list[CommitRecord] = []
        failed: list[tuple[Submission, Judgement]] = []
        for turn in batch:
            self._asked_at = self._clock()
            cut = turn.interruption
            request = JudgeRequest(
                turn.session_id,
                turn.turn_id,
                None if cut is None else cut.reason,
                tuple(turn.staged),
                turn.mode_decision,
                None if cut is None or cut.error is None else cut.error.code,
                turn.why,
                turn.about,
            )
            previous = heads.get(turn.session_id)
            judgement = judge(request, world, turn.cast.rules, previous, world_digest=world_digest, ask=self._ask)
            world, world_digest = judgement.world, judgement.record.world_after
            heads[turn.session_id] = judgement.record.commit_digest
            records.append(judgement.record)
            if judgement.failures:
                failed.append((turn, judgement))
            del judgement  # breaks the reference cycle of its exceptions and this frame
        return records, world, failed

    def _ask(self, name: str, rule: Rule, view: object, intents: tuple[Intent, ...]) -> Ruling:
        """Ask a rule and measure it, from the end of the one before. It cannot be stopped, so it fails the turn."""
        began, self._asked = self._asked_at, name
        ruling = rule(view, intents)
        self._asked_at, self._asked = self._clock(), _THE_WORLD
        took = self._asked_at - began
        if took <= self._rule_budget:
            return ruling
        log.error("the rule %s took %.3f s, its budget is %.3f s", name, took, self._rule_budget)
        return refuse("rule_overran", "The rule took longer than it may.", name)


def _asks_rules(turn: Submission) -> bool:
    return turn.interruption is None and asks_rules(turn.staged, turn.cast.rules)


def _not_written(record: CommitRecord) -> CommitRecord:
    """The record to announce when the ledger could not write: failed closed, and not part of any chain."""
    issue = Issue("ledger_unavailable", "The ledger could not write. Nothing of the turn was committed.")
    return sealed(
        evolve(
            record,
            outcome=CommitOutcome.FAIL_CLOSED,
            issues=(*record.issues, issue),
            changes=(),
            artifacts=(),
            world_after=record.world_before,
            previous=None,
        )
    )
