"""Committer of a stage: judges every ended turn and every commit of the host exactly once, in the order of arrival.

A batch consists of the turns that were queued while the previous batch was written. It is judged against the last
durable world plus the earlier turns of the batch, written in one transaction, and announced only when that is durable.
When the ledger cannot write, the whole batch fails closed and the world stays unchanged.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING

import trio
from attrs import evolve
from trio.lowlevel import enable_ki_protection

from footlights.authority import JudgeRequest, RuleBook, judge, refuse, sealed
from footlights.authority.record import commit_final
from footlights.errors import LedgerUnavailable
from footlights.events import CommitOutcome, Issue
from footlights.failures import report

if TYPE_CHECKING:
    from footlights.authority import CommitRecord, Intent, Judgement, Ledger, Rule, Ruling, TurnRequest, World
    from footlights.cast import Submission
    from footlights.limits import Limits

log = logging.getLogger("footlights.committer")

MAX_BATCH = 256
_JUDGED_BETWEEN_CHECKPOINTS = 16


class AuthorityCommitter:
    def __init__(self, ledger: Ledger, world: World, limits: Limits) -> None:
        self.world = world
        self._world_digest = world.digest()
        self._ledger = ledger
        self._rule_budget = limits.rule_budget
        self._rules = self._timed = RuleBook()
        """The rules that were used last, without and with their time budget."""
        self._in_hand = 0
        # The channel has room for every open turn, and for as many commits of the host: submitting can never fail.
        self._send, self._receive = trio.open_memory_channel["Submission"](2 * limits.max_open_turns)

    @property
    def waiting(self) -> int:
        return self._in_hand + self._receive.statistics().current_buffer_used

    def submit_nowait(self, turn: Submission) -> None:
        # After a crash of the committer its turns are in doubt, and the stage reports that at shutdown.
        with suppress(trio.BrokenResourceError):
            self._send.send_nowait(turn)

    def close(self) -> None:
        self._send.close()

    @enable_ki_protection
    async def run(self) -> None:
        async with self._receive:
            async for turn in self._receive:
                batch = [turn, *self._queued(MAX_BATCH - 1)]
                self._in_hand = len(batch)
                await self._commit(batch)
                self._in_hand = 0

    def _queued(self, limit: int) -> list[Submission]:
        ready = min(limit, self._receive.statistics().current_buffer_used)
        return [self._receive.receive_nowait() for _ in range(ready)]

    async def _commit(self, batch: list[Submission]) -> None:
        heads = await self._heads(batch)
        records, world = await self._judge(batch, heads or {})
        requests: tuple[TurnRequest, ...] = ()
        for turn in batch:
            if turn.request is not None:
                requests += (turn.request,)
        if heads is not None and await self._write(records, world, requests):
            self.world, self._world_digest = world, records[-1].world_after
        else:
            records = [_not_written(record) for record in records]
        for turn, record in zip(batch, records, strict=True):
            turn.settle(commit_final(record))

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
        world, world_digest = self.world, self._world_digest
        records: list[CommitRecord] = []
        for turn in batch:
            if len(records) % _JUDGED_BETWEEN_CHECKPOINTS == _JUDGED_BETWEEN_CHECKPOINTS - 1:
                await trio.lowlevel.checkpoint()
            cut = turn.interruption
            request = JudgeRequest(
                turn.session_id,
                turn.turn_id,
                None if cut is None else cut.reason,
                tuple(turn.staged),
                turn.mode_decision,
                None if cut is None or cut.error is None else cut.error.code,
                turn.why,
                turn.speaker,
            )
            previous = heads.get(turn.session_id)
            judgement = judge(request, world, self._timed_rules(turn.rules), previous, world_digest=world_digest)
            world, world_digest = judgement.world, judgement.record.world_after
            heads[turn.session_id] = judgement.record.commit_digest
            records.append(judgement.record)
            if judgement.failures:
                _report(turn, judgement)
            del judgement  # breaks the reference cycle of its exceptions and this frame
        return records, world

    def _timed_rules(self, rules: RuleBook) -> RuleBook:
        if rules is not self._rules:
            self._timed = RuleBook({name: _timed(name, rule, self._rule_budget) for name, rule in rules.items()})
            self._rules = rules
        return self._timed


def _report(turn: Submission, judgement: Judgement) -> None:
    for what, error in judgement.failures:
        report(log, f"{what} failed in {turn.turn_id} of {turn.session_id}", error)


def _timed(name: str, rule: Rule, budget: float) -> Rule:
    """The rule with a time budget. A rule cannot be stopped, so it is measured and fails the turn afterwards."""

    @wraps(rule)
    def timed(view: object, intents: tuple[Intent, ...]) -> Ruling:
        began = trio.current_time()
        ruling = rule(view, intents)
        took = trio.current_time() - began
        if took <= budget:
            return ruling
        log.error("the rule %s took %.3f s, its budget is %.3f s", name, took, budget)
        return refuse("rule_overran", "The rule took longer than it may.", name)

    return timed


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
