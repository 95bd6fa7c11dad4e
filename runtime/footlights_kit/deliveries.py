"""Deliveries of a cancel: which tasks it reached, where each got its Cancelled, and what became of that.

A strike cancels scopes. From then on every step that begins with a Cancelled from one of them is a delivery, and the
end of each such scope is observed. Two things are judged without an assert:

- A scope in which a Cancelled was delivered must not end as if nothing had happened: the Cancelled was swallowed. A
  scope that passes on the cancel of an outer one, or raises anything, is in order.
- A task that has not finished with its first Cancelled must not be cancelled again in the same scope, at another line:
  its cleanup awaits without a shield. What closes itself whatever happens is in order (`aclose`, `__aexit__`), and so
  is a bare checkpoint, which loses nothing.

It costs nothing before a strike: the hooks are installed by the first one. Where tasks were is noted only in detail,
in which a case that failed is run again; otherwise every cleanup that is cancelled again is suspected.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import trio
from attrs import Factory, define

from footlights_kit.places import Waiting
from footlights_kit.trio_hooks import is_cancelled, is_reached, pending_cancel, scopes_around, watched_scopes
from footlights_kit.verdicts import CancelSwallowed, CleanupCut

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator

_HARMLESS = frozenset({"aclose", "aclose_forcefully", "__aexit__", "checkpoint", "checkpoint_if_cancelled"})
_NONE: frozenset[trio.CancelScope] = frozenset()


@define(eq=False)
class _Struck:
    """A scope that a strike cancelled."""

    scope: trio.CancelScope
    delivered: dict[trio.lowlevel.Task, Waiting | None] = Factory(dict[trio.lowlevel.Task, "Waiting | None"])
    """Where each task got it, in detail."""


@define(eq=False)
class Deliveries:
    """The deliveries of one run. `findings` has what was wrong, in the order in which it happened."""

    in_detail: bool = False
    watched: list[_Struck] = Factory(list[_Struck])
    findings: list[AssertionError] = Factory(list[AssertionError])
    _suspected: set[trio.lowlevel.Task] = Factory(set[trio.lowlevel.Task])
    _hooks: ExitStack = Factory(ExitStack)

    @contextmanager
    def noting(self, tasks: Collection[trio.lowlevel.Task]) -> Generator[list[trio.lowlevel.Task]]:
        """Around a strike: note the scopes that it cancels, and the tasks that it reached, in the list."""
        before = {task: set(_cancelled_scopes(task)) if is_reached(task) else _NONE for task in tasks}
        reached: list[trio.lowlevel.Task] = []
        yield reached
        for task, old in before.items():
            if is_reached(task):
                new = [scope for scope in _cancelled_scopes(task) if scope not in old]
                if not old:
                    reached.append(task)
                for scope in new:
                    self._watch(scope)

    def before_step(self, task: trio.lowlevel.Task, label: str) -> None:
        """A step that may begin with a Cancelled."""
        error = pending_cancel(task)
        if error is None:
            return
        if all(task in struck.delivered for struck in self.watched) and task in self._suspected:
            return  # a loop that goes on and on
        around = set(scopes_around(task))
        for struck in self.watched:
            if struck.scope in around:
                if task not in struck.delivered:
                    struck.delivered[task] = Waiting.of(task, label) if self.in_detail else None
                elif task not in self._suspected:
                    self._suspect(task, struck.delivered[task], Waiting.of(task, label), error)

    def _suspect(self, task: trio.lowlevel.Task, first: Waiting | None, second: Waiting, error: trio.Cancelled) -> None:
        is_harmless = second.awaited is not None and second.awaited.code.co_name in _HARMLESS
        if not is_harmless and (first is None or first.own != second.own):
            self._suspected.add(task)
            trio.lowlevel.add_instrument(_Interrupted(self.findings, error, first, second))

    def first_places(self) -> dict[str, Waiting]:
        """Where each task, by its label, got its first Cancelled."""
        places = (each for struck in reversed(self.watched) for each in struck.delivered.values())
        return {each.task: each for each in places if each is not None}

    def close(self) -> None:
        """The run has ended."""
        self._hooks.close()

    def _watch(self, scope: trio.CancelScope) -> None:
        if not self.watched:
            self._hooks.enter_context(watched_scopes(self._ended))
        if all(struck.scope is not scope for struck in self.watched):
            self.watched.append(_Struck(scope))

    def _ended(self, scope: trio.CancelScope, error: BaseException | None) -> None:
        if error is not None:
            return
        for struck in self.watched:
            if struck.scope is scope and struck.delivered:
                places = "; ".join(map(str, filter(None, struck.delivered.values())))
                self.findings.append(CancelSwallowed(f"Cancelled was delivered, and never left the scope: {places}"))


class _Interrupted(trio.abc.Instrument):
    """Waits for the end of a step that began with a second Cancelled, to see whether the first was still being handled.

    Only then is the first one the context of the second, and that is known only once the second has been raised.
    """

    def __init__(
        self, findings: list[AssertionError], error: trio.Cancelled, first: Waiting | None, second: Waiting
    ) -> None:
        self._findings = findings
        self._error: BaseException | None = error
        self._first = first
        self._second = second

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        trio.lowlevel.remove_instrument(self)
        error = self._error
        while error is not None and not isinstance(error := error.__context__, trio.Cancelled):
            pass
        if error is not None:
            where = "before" if self._first is None else self._first.where
            self._findings.append(
                CleanupCut(f"cleanup without a shield: {self._second}. The first Cancelled came {where}")
            )
        self._error = error = None  # it would keep the frames alive


def _cancelled_scopes(task: trio.lowlevel.Task) -> Iterator[trio.CancelScope]:
    return filter(is_cancelled, scopes_around(task))
