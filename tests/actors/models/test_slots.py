"""Places at a model are given out fairly, and none is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
import trio.testing

from footlights_actors.models.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Iterable


async def in_order(slots: Slots, asked: Iterable[str]) -> list[str]:
    """Who gets a place, in which order, if all of these ask and each gives its place back at once."""
    got: list[str] = []

    async def ask(name: str) -> None:
        await slots.take(name[0])
        got.append(name)
        slots.give_back()

    async with trio.open_nursery() as nursery:
        for name in asked:
            nursery.start_soon(ask, name)
            await trio.testing.wait_all_tasks_blocked()
        slots.give_back()
    return got


async def test_sessions_take_turns_and_each_keeps_its_order() -> None:
    slots = Slots(1)
    assert slots.take_now()
    assert await in_order(slots, ["a1", "a2", "a3", "b1", "c1", "b2"]) == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert (slots.taken, slots.waiting) == (0, 0)


async def test_one_owner_with_many_sessions_waits_for_another_with_one() -> None:
    slots = Slots(1)
    assert slots.take_now()
    got: list[str] = []

    async def ask(session_id: str) -> None:
        await slots.take(session_id)
        got.append(session_id)
        slots.give_back()

    async with trio.open_nursery() as nursery:
        for session_id in ("flooder:1", "flooder:2", "flooder:3", "guest:1"):
            nursery.start_soon(ask, session_id)
            await trio.testing.wait_all_tasks_blocked()
        slots.give_back()
    assert got == ["flooder:1", "guest:1", "flooder:2", "flooder:3"]
    assert slots.waiting == 0


async def test_a_newcomer_does_not_overtake_waiters() -> None:
    slots = Slots(1)
    assert slots.take_now()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(slots.take, "a")
        await trio.testing.wait_all_tasks_blocked()
        slots.give_back()
        assert not slots.take_now()
    assert slots.taken == 1


async def test_there_are_as_many_as_there_are() -> None:
    slots = Slots(2)
    await slots.take("a")
    await slots.take("a")
    assert not slots.take_now()
    assert slots.taken == 2


async def test_a_waiter_that_leaves_holds_no_slot() -> None:
    slots = Slots(1)
    assert slots.take_now()
    async with trio.open_nursery() as nursery:
        leaving = trio.CancelScope()

        async def leave() -> None:
            with leaving:
                await slots.take("a")

        nursery.start_soon(leave)
        nursery.start_soon(slots.take, "a")
        await trio.testing.wait_all_tasks_blocked()
        assert slots.waiting == 2
        leaving.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert slots.waiting == 1
        slots.give_back()
    assert (slots.taken, slots.waiting) == (1, 0)


async def test_a_slot_granted_to_a_leaving_waiter_goes_to_the_next() -> None:
    slots = Slots(1)
    assert slots.take_now()
    async with trio.open_nursery() as nursery:
        leaving = trio.CancelScope()

        async def leave() -> None:
            with leaving:
                await slots.take("a")

        nursery.start_soon(leave)
        await trio.testing.wait_all_tasks_blocked()
        leaving.cancel()
        slots.give_back()
    assert (slots.taken, slots.waiting) == (0, 0)
