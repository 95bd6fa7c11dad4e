"""Room: observers read every event once, at their own pace, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import Detached
from footlights.testing import cancel_everywhere
from footlights_transports.views.kgent import room as kgent_room
from footlights_transports.views.kgent.pure.messages import ChatEvent, ChatMessage, InvalidMessage
from footlights_transports.views.kgent.pure.wire import AFTER_DONE
from footlights_transports.views.kgent.room import MAX_BEHIND, MAX_KEPT, Dialogue, Observer, Room

if TYPE_CHECKING:
    from footlights.testing import Trial


def begin(room: Room, name: str, *, forgotten: bool = False) -> Dialogue:
    return room.begin(ChatMessage("user", "Hello?", 1.0, correlation_id=name), lambda: forgotten)


def event(sequence: int, event_type: str = "chunk") -> ChatEvent:
    return ChatEvent(event_type, {"n": sequence}, sequence, 1.0)  # type: ignore[arg-type]


def perform(room: Room, name: str) -> Dialogue:
    """A dialogue of three events."""
    dialogue = begin(room, name)
    room.add(dialogue, event(1))
    room.end(dialogue, [event(2, "message"), event(3, "done")])
    return dialogue


def data(*sequences: int) -> list[bytes]:
    kinds = {1: "chunk", 2: "message", 3: "done"}
    return [event(each, kinds[each]).encode() for each in sequences]


async def test_an_observer_gets_new_events() -> None:
    room = Room()
    observer = room.observe({})
    perform(room, "a")
    assert await observer.next_batch() == data(1, 2, 3)
    perform(room, "b")
    assert await observer.next_batch() == data(1, 2, 3)


async def test_an_observer_gets_finished_dialogues_only_if_it_names_one() -> None:
    room = Room()
    for name in "abc":
        perform(room, name)
    late = room.observe({})
    late.end()
    assert await late.next_batch() == []
    back = room.observe({"b": 2})
    assert await back.next_batch() == [*data(3), *data(1, 2, 3)]
    back.end()
    assert await back.next_batch() == []


async def test_a_forgotten_dialogue_is_unknown() -> None:
    assert Room().observe({"a": 1, "b": AFTER_DONE}).unknown == {"a": 1}


async def test_an_observer_that_has_done_gets_nothing_more_of_the_dialogue() -> None:
    room = Room()
    perform(room, "a")
    still_open = begin(room, "b")
    back = room.observe({"a": AFTER_DONE, "b": AFTER_DONE})
    room.add(still_open, event(1))
    perform(room, "c")
    assert await back.next_batch() == data(1, 2, 3)
    room.end(still_open)
    back.end()
    assert await back.next_batch() == []


async def test_an_ending_observer_reads_open_dialogues_to_their_end() -> None:
    room = Room()
    dialogue = begin(room, "a")
    observer = room.observe({})
    observer.end()
    perform(room, "b")
    room.add(dialogue, event(1))
    assert await observer.next_batch() == data(1)
    room.end(dialogue, [event(2, "message"), event(3, "done")])
    assert await observer.next_batch() == data(2, 3)
    assert await observer.next_batch() == []


async def test_an_observer_too_far_behind_is_detached() -> None:
    room = Room()
    slow, fast = room.observe({}), room.observe({})
    for number in range(MAX_BEHIND + 1):
        perform(room, str(number))
        assert await fast.next_batch() == data(1, 2, 3)
    with pytest.raises(Detached):
        await slow.next_batch()


async def test_open_dialogues_do_not_count_as_lag() -> None:
    room = Room()
    observer = room.observe({})
    dialogues = [begin(room, str(number)) for number in range(2 * MAX_BEHIND)]
    for dialogue in dialogues:
        room.add(dialogue, event(1))
    assert len(await observer.next_batch()) == 2 * MAX_BEHIND
    assert len(await room.observe({}).next_batch()) == 2 * MAX_BEHIND


async def test_an_observer_still_gets_a_dialogue_that_the_room_forgot() -> None:
    room = Room()
    observer = room.observe({})
    dialogue = begin(room, "a", forgotten=True)
    room.add(dialogue, event(1))
    room.end(dialogue, [event(2, "message"), event(3, "done")])
    assert room.observe({"a": 0}).unknown == {"a": 0}
    assert await observer.next_batch() == data(1, 2, 3)


def test_a_correlation_id_is_used_once_until_it_is_forgotten() -> None:
    room = Room()
    perform(room, "a")
    with pytest.raises(InvalidMessage):
        begin(room, "a")
    room = Room()
    room.end(begin(room, "a", forgotten=True))
    begin(room, "a")


def test_a_room_keeps_a_bounded_number_and_size_of_dialogues(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    for number in range(MAX_KEPT + 5):
        perform(room, str(number))
    assert room.observe({"4": 0, "5": 0}).unknown == {"4": 0}
    monkeypatch.setattr(kgent_room, "MAX_KEPT_BYTES", 2 * perform(room, "last").size)
    room.forget()
    assert room.observe({str(MAX_KEPT + 3): 0, str(MAX_KEPT + 4): 0, "last": 0}).unknown == {str(MAX_KEPT + 3): 0}


def test_an_open_dialogue_is_never_forgotten() -> None:
    room = Room()
    begin(room, "open")
    for number in range(MAX_KEPT + 5):
        perform(room, str(number))
    assert room.observe({"open": 0}).unknown == {}


def test_open_dialogues_do_not_count_as_finished_ones() -> None:
    room = Room()
    for number in range(MAX_KEPT + 5):
        begin(room, f"open {number}")
    perform(room, "finished")
    assert room.observe({"finished": 0}).unknown == {}


def test_the_dialogue_that_ended_first_is_forgotten_first() -> None:
    room = Room()
    early = begin(room, "early")
    for number in range(MAX_KEPT):
        perform(room, str(number))
    room.end(early)
    perform(room, "late")
    assert room.observe({"early": 0, "1": 0, "2": 0}).unknown == {"1": 0}


async def test_an_observer_that_resumes_all_dialogues_may_get_more_before_it_reads() -> None:
    room = Room()
    for number in range(MAX_KEPT):
        perform(room, str(number))
    back = room.observe({"0": 0})
    perform(room, "new")
    assert await back.next_batch() == data(1, 2, 3) * (MAX_KEPT + 1)


def test_a_room_is_empty_without_dialogues_and_observers() -> None:
    room = Room()
    states = [room.is_empty]
    observer = room.observe({})
    states.append(room.is_empty)
    for _ in range(2):
        observer.leave()
        states.append(room.is_empty)
    begin(room, "a")
    assert [*states, room.is_empty] == [True, False, True, True, False]


def test_the_failure_of_a_dialogue() -> None:
    room = Room()
    assert perform(room, "a").failure == []
    failed = begin(room, "b")
    assert failed.failure == []
    room.end(failed, [event(1), event(2, "error"), event(3, "done")])
    assert failed.failure == failed.encoded[1:]


def test_a_read_canceled_anywhere_loses_nothing() -> None:
    async def scenario(trial: Trial) -> None:
        room = Room()
        observer = room.observe({})
        heard: list[bytes] = []

        async def tell() -> None:
            for name in "ab":
                await trio.sleep(1)
                dialogue = begin(room, name)
                for each in (event(1), event(2, "message"), event(3, "done")):
                    await trio.sleep(1)
                    room.add(dialogue, each)
                room.end(dialogue)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell)
            with trio.CancelScope() as patience:
                trial.aim(patience.cancel)
                await listen(observer, heard)
            trial.disarm()
            await listen(observer, heard)
        assert heard == data(1, 2, 3) * 2

    async def listen(observer: Observer, heard: list[bytes]) -> None:
        while len(heard) < 6:
            heard += await observer.next_batch()

    assert cancel_everywhere(scenario, orders=2, pairs=10).points > 10
