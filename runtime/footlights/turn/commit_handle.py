"""Commit handle: waits for what the committer decides about one turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights.errors import CommitUnknown, UnknownTurn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights.events import CommitFinal
    from footlights.turn.turn import Turn


class CommitHandle:
    """Made by `session.finalize(turn_id)`, as often as you like."""

    __slots__ = ("_look_up", "_turn", "turn_id")

    def __init__(
        self, turn_id: str, turn: Turn | None, look_up: Callable[[str], Awaitable[CommitFinal | None]]
    ) -> None:
        self.turn_id = turn_id
        self._turn = turn
        self._look_up = look_up

    @property
    def commit(self) -> CommitFinal | None:
        """The commit, if it is known already."""
        return None if self._turn is None else self._turn.commit

    async def wait(self) -> CommitFinal:
        """Wait for the commit.

        Raises:
            CommitUnknown: the stage closed while the commit was in doubt.
            UnknownTurn: the turn is not retained, and the ledger has no commit of it.
        """
        if self._turn is None:
            return await self._find()
        await self._turn.settled.wait()
        if self._turn.commit is None:
            raise CommitUnknown(f"Whether {self.turn_id} was committed is known only after a restart.")
        return self._turn.commit

    async def _find(self) -> CommitFinal:
        await trio.lowlevel.checkpoint_if_cancelled()
        commit = await self._look_up(self.turn_id)
        if commit is None:
            raise UnknownTurn(f"The ledger holds no commit of {self.turn_id}.")
        return commit
