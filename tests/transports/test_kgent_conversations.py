"""What a gateway remembers and for how long, what becomes of a dialogue that fails, and of one that is cut off."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from attrs import Factory, define

from footlights import SessionClosed, open_stage
from footlights.chat import ChatFluxConfig, ChatMessage, InvalidMessage
from footlights.errors import InvalidCommand
from footlights.testing import cancel_everywhere
from footlights_actors import Pause, Say, ScriptedModel, standard_cast
from footlights_actors.kgent_flux import KgentFlux
from footlights_transports.desk import FrontDesk
from footlights_transports.dialects.kgent import PerturbWish
from footlights_transports.gate import Gate, User
from footlights_transports.kgent_gateway import SWEEP, KgentGateway, TooManyMessages, UnknownAgent

from .kgent_peer import lawful, only

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

    from footlights.testing import Trial
    from footlights_transports.kgent_gateway import Conversation
    from footlights_transports.kgent_room import Dialogue

ANN, BOB = User("ann"), User("bob")
SECRET = "xyzzy-said"


def said(name: str, content: str = SECRET) -> ChatMessage:
    return ChatMessage("user", content, 1.0, correlation_id=name)


def frames(dialogue: Dialogue) -> list[dict[str, Any]]:
    return lawful(
        [
            {"event_type": e.event_type, "payload": e.payload, "sequence": e.sequence, "timestamp": e.timestamp}
            for e in dialogue.events
        ]
    )


@define
class Notebook:
    """Keeps what it is given, and may fail."""

    kept: list[tuple[str, str, str, str]] = Factory(list[tuple[str, str, str, str]])
    error: Exception | None = None

    async def keep(self, session_id: str, turn_id: str, said: str, answered: str) -> None:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        self.kept.append((session_id, turn_id, said, answered))


@asynccontextmanager
async def open_gateway(
    model: ScriptedModel | None = None, config: ChatFluxConfig | None = None, keeper: Notebook | None = None
) -> AsyncGenerator[KgentGateway]:
    cast = standard_cast(model or ScriptedModel(lambda _: [Say("Well.")]))
    async with open_stage(cast) as stage, trio.open_nursery() as nursery:
        gateway = KgentGateway(FrontDesk(stage, Gate()), config, keeper=keeper, wall_clock=lambda: 1_700_000_000.0)
        await nursery.start(gateway.keep)
        yield gateway
        nursery.cancel_scope.cancel()


async def perform(gateway: KgentGateway, conversation: Conversation, name: str) -> Dialogue:
    dialogue = gateway.perturb(conversation, said(name))
    await dialogue.over.wait()
    return dialogue


async def test_a_conversation_goes_on_until_its_session_ends(quiet_clock: MockClock) -> None:
    async with open_gateway() as gateway:
        first = gateway.enter(ANN, "default", PerturbWish())
        assert gateway.enter(ANN, "default", PerturbWish()) is first
        assert gateway.enter(BOB, "default", PerturbWish()) is not first
        named = gateway.enter(ANN, "default", PerturbWish("diary"))
        assert named is not first
        assert gateway.enter(ANN, "default", PerturbWish("diary")) is named
        await first.session.close()
        assert gateway.enter(ANN, "default", PerturbWish()) is not first


async def test_what_belongs_to_a_session_is_forgotten_with_it(quiet_clock: MockClock) -> None:
    async with open_gateway() as gateway:
        conversation = gateway.enter(ANN, "default", PerturbWish())
        await perform(gateway, conversation, "a")
        with pytest.raises(InvalidMessage):
            gateway.perturb(conversation, said("a"))
        flux = conversation.flux
        assert flux is not None
        assert len(flux.trace) == 1
        room = gateway.room(ANN, "default")
        await trio.sleep(2 * SWEEP)
        assert gateway.room(ANN, "default") is room
        await conversation.session.close()
        assert gateway.room(ANN, "default").observe({"a": 0}).unknown == ["a"], "at once, and not at the next sweep"
        with pytest.raises(SessionClosed):
            gateway.perturb(conversation, said("b"))
        await trio.sleep(2 * SWEEP)
        assert [conversation.flux] == [None], "the trace is gone too, though somebody may still be connected"
        with pytest.raises(SessionClosed):
            gateway.perturb(conversation, said("c"))


async def test_a_room_that_nobody_needs_goes(quiet_clock: MockClock) -> None:
    async with open_gateway() as gateway:
        room = gateway.room(ANN, "default")
        observer = room.observe({})
        await trio.sleep(2 * SWEEP)
        assert gateway.room(ANN, "default") is room
        observer.leave()
        await trio.sleep(2 * SWEEP)
        assert gateway.room(ANN, "default") is not room


async def test_an_agent_that_is_not_there_is_unknown() -> None:
    async with open_gateway() as gateway:
        with pytest.raises(UnknownAgent):
            gateway.room(ANN, "nobody")
        with pytest.raises(UnknownAgent):
            gateway.enter(ANN, "nobody", PerturbWish())
        assert gateway.desk.open_sessions() == []


async def test_a_client_that_sends_too_much_is_told_the_truth_about_when_it_may_go_on(quiet_clock: MockClock) -> None:
    async with open_gateway(config=ChatFluxConfig(messages_per_minute=6, message_burst=3)) as gateway:
        conversation = gateway.enter(ANN, "default", PerturbWish())
        for name in "abc":
            await perform(gateway, conversation, name)
        with pytest.raises(TooManyMessages) as refused:
            gateway.perturb(conversation, said("d"))
        await trio.sleep(refused.value.retry_after - 1)
        with pytest.raises(TooManyMessages):
            gateway.perturb(conversation, said("d"))
        await trio.sleep(1)
        gateway.perturb(conversation, said("d"))
        other = gateway.enter(BOB, "default", PerturbWish())
        gateway.perturb(other, said("d"))


async def test_a_gateway_without_a_home_begins_nothing() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: []))) as stage:
        gateway = KgentGateway(FrontDesk(stage, Gate()))
        with pytest.raises(SessionClosed):
            gateway.perturb(gateway.enter(ANN, "default", PerturbWish()), said("a"))


async def test_a_dialogue_that_fails_in_an_unknown_way_ends_and_hurts_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_gateway() as gateway:
        conversation = gateway.enter(ANN, "default", PerturbWish())
        with monkeypatch.context() as broken:
            broken.setattr(KgentFlux, "_told", lambda *_: [][1])
            dialogue = await perform(gateway, conversation, "a")
        assert only(frames(dialogue), "error")[0]["code"] == "LLM_UNAVAILABLE"
        assert "a dialogue failed: IndexError" in caplog.text
        assert SECRET not in caplog.text
        assert only(frames(await perform(gateway, conversation, "b")), "message")


# -- what is kept


async def test_nothing_is_kept_without_consent() -> None:
    notebook = Notebook()
    async with open_gateway(keeper=notebook) as gateway:
        for wish in (PerturbWish(), PerturbWish("no", keep_content=False)):
            await perform(gateway, gateway.enter(ANN, "default", wish), wish.session or "a")
    assert notebook.kept == []


async def test_with_consent_completed_dialogues_are_kept(quiet_clock: MockClock) -> None:
    notebook = Notebook()
    model = ScriptedModel(lambda prompt: [Say("Well."), Pause(99 if "wait" in prompt.user else 0)])
    async with open_gateway(model, keeper=notebook) as gateway:
        conversation = gateway.enter(ANN, "default", PerturbWish("diary", keep_content=True))
        await perform(gateway, conversation, "a")
        late = gateway.perturb(conversation, said("b", "wait for it"))
        await late.over.wait()
        assert only(frames(late), "error")[0]["code"] == "STREAM_TIMEOUT"
        await trio.sleep(1)
        with pytest.raises(InvalidCommand):
            gateway.enter(ANN, "default", PerturbWish("diary", keep_content=False))
        assert gateway.enter(ANN, "default", PerturbWish("diary", keep_content=True)) is conversation
    assert notebook.kept == [("ann:diary", "t1-000001", SECRET, "Well.")]


async def test_nobody_may_agree_where_nothing_is_kept() -> None:
    async with open_gateway() as gateway:
        with pytest.raises(InvalidCommand):
            gateway.enter(ANN, "default", PerturbWish(keep_content=True))
        gateway.enter(ANN, "default", PerturbWish(keep_content=False))


async def test_what_cannot_be_kept_is_logged_without_a_word_of_it(
    caplog: pytest.LogCaptureFixture, quiet_clock: MockClock
) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_gateway(keeper=Notebook(error=OSError(SECRET))) as gateway:
        conversation = gateway.enter(ANN, "default", PerturbWish(keep_content=True))
        assert only(frames(await perform(gateway, conversation, "corr-7")), "message")
        await trio.sleep(1)
    assert "t1-000001 could not be kept: OSError" in caplog.text
    assert SECRET not in caplog.text
    assert "corr-7" not in caplog.text


# -- cut off anywhere


def test_a_dialogue_ends_lawfully_wherever_its_gateway_is_canceled() -> None:
    outcomes: set[str] = set()

    async def scenario(trial: Trial) -> None:
        model = ScriptedModel(lambda _: [Say("Well, let me"), Pause(0.2), Say(" think.")], pace=0.01)
        config = ChatFluxConfig(buffer_chunks=1)
        async with open_stage(standard_cast(model), wall_clock=trio.current_time) as stage:
            gateway = KgentGateway(FrontDesk(stage, Gate()), config, wall_clock=lambda: 1_700_000_000.0)
            async with trio.open_nursery() as nursery:
                home = trio.CancelScope()

                async def keep(task_status: trio.TaskStatus[None]) -> None:
                    with home:
                        await gateway.keep(task_status)

                await nursery.start(keep)
                conversation = gateway.enter(ANN, "default", PerturbWish())
                assert conversation.flux is not None
                observer = gateway.room(ANN, "default").observe({})
                trial.aim(home.cancel)
                dialogue = gateway.perturb(conversation, said("a"))
                observer.end()
                heard: list[bytes] = []
                while batch := await observer.next_batch():
                    heard += batch
                trial.disarm()
                told = frames(dialogue)
                assert heard == [entry.data for entry in dialogue.entries]
                assert len(conversation.flux.trace.events) == len(only(told, "message"))
                outcomes.add(str(told[-2]["payload"].get("code", told[-2]["event_type"])))
                home.cancel()

    assert cancel_everywhere(scenario, orders=2, pairs=5).points > 20
    assert outcomes == {"message", "SESSION_EXPIRED"}
