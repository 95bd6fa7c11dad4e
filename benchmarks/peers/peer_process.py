"""A peer's process, spoken to in lines of JSON. Nothing of it outlives the block that opened it."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

PATIENCE = 120.0
"""Seconds. No lap takes so long, even on a machine that is busy."""

_ROOT = Path(__file__).parents[1]


class PeerFailed(Exception):
    """It ended, or did not answer in time. Its stderr has said why."""


class PeerProcess:
    def __init__(self, name: str, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._name = name
        self._orders = process.stdin
        self._answers = process.stdout
        self._unread = b""
        self.packages: dict[str, str] = {}

    async def greet(self) -> None:
        self.packages = (await self._answer())["packages"]

    async def order(self, **order: str | int) -> dict[str, Any]:
        """Raises PeerFailed."""
        try:
            await self._orders.send_all(json.dumps(order).encode() + b"\n")
        except trio.BrokenResourceError:
            raise PeerFailed(f"{self._name} has ended.") from None
        return await self._answer()

    async def aclose(self) -> None:
        await self._orders.aclose()
        await self._answers.aclose()

    async def _answer(self) -> dict[str, Any]:
        with trio.move_on_after(PATIENCE) as patience:
            while b"\n" not in self._unread:
                more = await self._answers.receive_some()
                if not more:
                    raise PeerFailed(f"{self._name} ended without an answer.")
                self._unread += more
        if patience.cancelled_caught:
            raise PeerFailed(f"{self._name} did not answer for {PATIENCE:.0f} seconds.")
        line, _, self._unread = self._unread.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def open_peer(name: str, command: Sequence[str]) -> AsyncGenerator[PeerProcess, None]:
    """A peer that has greeted. Raises PeerFailed."""
    process = await trio.lowlevel.open_process(
        command, stdin=PIPE, stdout=PIPE, env={**os.environ, "PYTHONPATH": str(_ROOT)}
    )
    peer = PeerProcess(name, process)
    try:
        await peer.greet()
        yield peer
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            await peer.aclose()
