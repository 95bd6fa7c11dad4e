"""Shielded for ever.

The goodbye waits for an answer in a shield with an hour's timeout, but the peer that should answer is cancelled too.
"""

import trio


async def peer(bye: trio.Event, answer: trio.Event) -> None:
    await bye.wait()
    answer.set()


async def goodbye(bye: trio.Event, answer: trio.Event) -> None:
    bye.set()
    with trio.move_on_after(3600, shield=True):
        await answer.wait()  # here


async def scenario() -> None:
    bye, answer = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer, bye, answer)
        try:
            await trio.sleep(0.01)  # the work
        finally:
            await goodbye(bye, answer)
