"""Shielded for ever, mended."""

import trio


async def peer(bye: trio.Event, answer: trio.Event) -> None:
    await bye.wait()
    answer.set()


async def goodbye(bye: trio.Event, answer: trio.Event) -> None:
    bye.set()
    with trio.move_on_after(0.5, shield=True):
        await answer.wait()


async def scenario() -> None:
    bye, answer = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer, bye, answer)
        try:
            await trio.sleep(0.01)  # the work
        finally:
            await goodbye(bye, answer)
