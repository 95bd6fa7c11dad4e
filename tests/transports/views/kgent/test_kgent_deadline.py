"""Deadline of an answer: it does not run while other turns of the session come first."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import Limits, RateLimitError, TurnParams, open_stage
from footlights_actors import Fail, Pause, Say, standard_cast
from footlights_transports.views.kgent.conversation import Conversation, session_tokens
from footlights_transports.views.kgent.deadline import MAX_PAUSE, PausableDeadline
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.responder import COMMIT_PATIENCE, Responder
from tests.kit.views.kgent_kit import ASKED, HungLedger, kinds, open_room, payload, scripted, talk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trio.testing import MockClock

    from footlights import InteractionSession, Prompt
    from footlights_actors import Line

LONG: list[Line] = [Say("Once "), Pause(20), Say("upon "), Pause(20), Say("a time.")]


def script(prompt: Prompt) -> Iterable[Line]:
    if "tale" in prompt.user:
        return LONG
    return [Pause(8), Say("At last.")] if "slowly" in prompt.user else [Say("Yes.")]


async def test_waiting_for_native_turns_does_not_count(
    quiet_clock: MockClock,
) -> None:
    config = ChatFluxConfig(stream_timeout=10.0)
    async with open_room(scripted(script), config) as room:
        began = trio.current_time()
        room.session.begin_turn("Tell me a tale.")
        assert kinds(await talk(room.conversation, "Will you answer slowly?"))[-2:] == ["message", "done"]
        assert trio.current_time() - began == pytest.approx(48)
        room.session.begin_turn("Tell me a tale.")
        room.session.begin_turn("And one more tale.")
        room.session.begin_turn("Meanwhile", TurnParams(busy="concurrent"))
        assert room.session.cancel(room.session.begin_turn("Never mind."))
        assert kinds(await talk(room.conversation, "Will you answer slowly?"))[-2:] == ["message", "done"]
        assert trio.current_time() - began == pytest.approx(48 + 88)


async def test_the_deadline_runs_as_soon_as_the_turn_does(quiet_clock: MockClock) -> None:
    async with open_room(scripted(script), ChatFluxConfig(stream_timeout=5.0)) as room:
        began = trio.current_time()
        room.session.begin_turn("Tell me a tale.")
        events = await talk(room.conversation, "Will you answer slowly?")
        assert payload(events, "error")["code"] == "STREAM_TIMEOUT"
        assert trio.current_time() - began == pytest.approx(45)


async def test_conversations_of_one_session_do_not_use_each_others_time(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(stream_timeout=50.0)
    async with open_room(scripted(script), config) as room, trio.open_nursery() as nursery:
        tokens = session_tokens(config)
        first, second = (Conversation(Responder(room.session), config, tokens=tokens) for _ in range(2))
        nursery.start_soon(talk, first, "Please tell me a tale.")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(talk, first, "Please tell me another tale.")
        for _ in range(3):
            assert kinds(await talk(second, "Will you answer slowly?"))[-2:] == ["message", "done"]


async def test_a_dialogue_behind_one_that_waits_is_not_refused(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(stream_timeout=2.0)
    async with open_room(scripted(script), config) as room, trio.open_nursery() as nursery:
        began = trio.current_time()
        room.session.begin_turn("Tell me a tale.")
        heard: list[list[str]] = []

        async def ask() -> None:
            heard.append(kinds(await talk(room.conversation))[-2:])

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        await ask()
        assert trio.current_time() - began == pytest.approx(40)
        assert heard == [["message", "done"]] * 2


async def test_a_dialogue_canceled_while_it_waits_holds_up_the_next_for_a_limited_time(
    quiet_clock: MockClock,
) -> None:
    async with open_room(scripted(script), ChatFluxConfig(stream_timeout=2.0)) as room, trio.open_nursery() as nursery:
        room.session.begin_turn("Tell me a tale.")
        async with aclosing(room.conversation.dialogue_stream(ASKED)) as held:
            nursery.start_soon(_cancel_soon, room.session)
            assert (await anext(held)).event_type == "done"
            began = trio.current_time()
            error = payload(await talk(room.conversation), "error")
            assert (error["code"], error["retry_after_seconds"]) == ("RATE_LIMITED", 2 + COMMIT_PATIENCE)
            assert trio.current_time() - began < 30


async def _cancel_soon(session: InteractionSession) -> None:
    await trio.sleep(1)
    session.cancel()


async def test_a_retry_counts_and_waiting_for_other_turns_meanwhile_does_not(quiet_clock: MockClock) -> None:
    asked = 0

    def busy_script(prompt: Prompt) -> Iterable[Line]:
        nonlocal asked
        if "tale" in prompt.user:
            return LONG
        asked += 1
        return [Fail(RateLimitError("later", retry_after=1.0)) if asked == 1 else Say("Yes.")]

    async with open_room(scripted(busy_script), ChatFluxConfig(stream_timeout=10.0)) as room:
        async with trio.open_nursery() as nursery:

            async def tell() -> None:
                await trio.sleep(0.5)
                room.session.begin_turn("Tell me a tale.")

            nursery.start_soon(tell)
            assert kinds(await talk(room.conversation))[-2:] == ["message", "done"]
        assert asked == 2


async def test_the_wait_for_a_stuck_turn_is_bounded(quiet_clock: MockClock) -> None:
    limits = Limits(shutdown_deadline=1.0)
    async with open_stage(standard_cast(scripted(script)), ledger=HungLedger(), limits=limits) as stage:
        conversation = Conversation(Responder(stage.start()), ChatFluxConfig(stream_timeout=20.0))
        stage.session(conversation.responder.session.session_id).begin_turn("Yes or no?")
        began = trio.current_time()
        for number in (1, 2):
            assert payload(await talk(conversation), "error")["code"] == "STREAM_TIMEOUT"
            assert trio.current_time() - began <= number * (600 + 20 + COMMIT_PATIENCE)


async def test_a_paused_deadline_goes_on_from_where_it_was(quiet_clock: MockClock) -> None:
    deadline, began = PausableDeadline(10.0), trio.current_time()
    assert (deadline.at, deadline.latest, deadline.is_paused) == (began + 10, began + 10, False)
    await trio.sleep(4)
    deadline.pause()
    deadline.pause()
    assert deadline.is_paused
    await trio.sleep(100)
    assert deadline.at == began + 110, "as if it went on now"
    assert deadline.latest == began + 10 + MAX_PAUSE
    deadline.resume()
    deadline.resume()
    await trio.sleep(1)
    assert (deadline.at, deadline.latest, deadline.is_paused) == (began + 110, began + 110, False)
