"""twisted: a `StageThread` in a program on Twisted. Calls are Deferreds, fired in the reactor's thread.

stage = StageThread(cast).open()
session = await answer(stage.start_soon())      # in a coroutine, or with `addCallback`
answer(session.begin_turn_soon("A room?"))
async for event in read(session): ...           # in a coroutine: Deferred.fromCoroutine(...)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import Deferred

from footlights_transports.embed.reading import Reading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from concurrent.futures import Future

    from footlights_transports.embed.reading import Source

T = TypeVar("T")


def answer(ticket: Future[T]) -> Deferred[T]:
    """A Deferred for the result of a call: what a variant that ends in `_soon` returns.

    Cancelling it withdraws the call if that has not begun; otherwise the call is made all the same. A reactor that has
    stopped fires no Deferred.
    """
    from twisted.internet import reactor as imported  # this chooses the reactor, if the host has not chosen one

    reactor: Any = imported  # which has no types

    def withdraw(_: Deferred[T]) -> None:
        ticket.cancel()

    deferred: Deferred[T] = Deferred(withdraw)

    def fire() -> None:
        if deferred.called:  # it was cancelled
            return
        try:
            result = ticket.result()
        except BaseException:  # noqa: BLE001 - every error of the call is that of the Deferred
            deferred.errback()
        else:
            deferred.callback(result)

    ticket.add_done_callback(lambda _: reactor.callFromThread(fire))
    return deferred


def read(source: Source[T]) -> AsyncIterator[T]:
    """Iterate over the events of a session, or over a feed of commits, until it ends. Raises what `poll` raises.

    Cancelling loses nothing, and the next iteration goes on where this one was left. While one coroutine waits here,
    another is refused with `InvalidCommand`.
    """
    return Reading(source, answer)
