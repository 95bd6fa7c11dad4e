"""The turn with nothing but trio: a task for each stage, a memory channel between neighbours.

This is what a careful program would do by hand: a turn is a nursery, so leaving it proves that nothing of it runs any
more, and cancelling is its scope's `cancel`. The channels have a few places, because without any every token costs
two switches at each hop; more of them gained nothing. Nothing is numbered, kept for replay, limited or committed: it is
the floor under what any framework on trio could do with as many hops. With one stage it is one channel, the least
there can be.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

import trio
from trio.testing import wait_all_tasks_blocked

from peers.kit import TEXT, TOKEN, TOKENS, Cancelled, Consumer, Played, serve, stages_asked_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.kit import Manner

Event: TypeAlias = tuple[str, str]
"""Its kind, and its text."""
Send: TypeAlias = "trio.MemorySendChannel[Event]"
Receive: TypeAlias = "trio.MemoryReceiveChannel[Event]"

_BUFFER = 8


class TrioChannel:
    def __init__(self, stages: int) -> None:
        self._stages = stages

    def play(self, turns: int, manner: Manner) -> Played:
        return trio.run(self._play, turns, manner)

    def cancel(self, turns: int) -> Cancelled:
        return trio.run(self._cancel, turns)

    def hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        return trio.run(self._hold, turns, weigh)

    async def _play(self, turns: int, manner: Manner) -> Played:
        consumer = Consumer()
        consumer.start()
        for _ in range(turns):
            async with trio.open_nursery() as turn:
                await self._listen(turn, consumer, manner)
            consumer.check()
        consumer.stop()
        return consumer.played

    async def _cancel(self, turns: int) -> Cancelled:
        cancelled = Cancelled()
        consumer = Consumer()
        for _ in range(turns):
            halfway = trio.Event()
            asked: list[float] = []
            async with trio.open_nursery() as host:
                async with trio.open_nursery() as turn:
                    host.start_soon(_cancel_when, halfway, turn.cancel_scope, asked)
                    await self._listen(turn, consumer, "endless", halfway)
                # The nursery is left when all of the turn has ended, so the consumer knows and the model is closed.
                over = perf_counter()
            cancelled.note(asked[0], over, over)
        return cancelled

    async def _hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        before = weigh()
        async with trio.open_nursery() as players:
            for _ in range(turns):
                players.start_soon(self._stay)
            await wait_all_tasks_blocked()
            after = weigh()
            players.cancel_scope.cancel()
        return before, after

    async def _stay(self) -> None:
        async with trio.open_nursery() as turn:
            await self._listen(turn, Consumer(), "stalled")

    async def _listen(
        self, turn: trio.Nursery, consumer: Consumer, manner: Manner, halfway: trio.Event | None = None
    ) -> None:
        consumer.ask()
        async for kind, text in self._begin(turn, manner):
            if kind == "token":
                consumer.hear(text)
                if halfway is not None and not halfway.is_set() and consumer.has_heard_half:
                    halfway.set()
            else:
                consumer.take()

    def _begin(self, turn: trio.Nursery, manner: Manner) -> Receive:
        send, receive = trio.open_memory_channel[Event](_BUFFER)
        turn.start_soon(_generate, manner, send)
        for _ in range(self._stages - 1):
            send, following = trio.open_memory_channel[Event](_BUFFER)
            turn.start_soon(_pass_on, receive, send)
            receive = following
        return receive


async def _generate(manner: Manner, send: Send) -> None:
    async with send:
        await send.send(("accepted", ""))
        waits = manner in {"yielding", "endless"}
        said = 0
        while said < TOKENS or manner == "endless":
            await send.send(("token", TOKEN))
            said += 1
            if waits:
                await trio.lowlevel.checkpoint()
        if manner == "stalled":
            await trio.sleep_forever()
        await send.send(("final", TEXT))


async def _pass_on(receive: Receive, send: Send) -> None:
    async with receive, send:
        async for event in receive:
            await send.send(event)


async def _cancel_when(halfway: trio.Event, scope: trio.CancelScope, asked: list[float]) -> None:
    await halfway.wait()
    asked.append(perf_counter())
    scope.cancel()


if __name__ == "__main__":
    serve(TrioChannel(stages_asked_for()), ["trio"])
