"""Sessions of a gateway: what it remembers and for how long, consent, failures and cancellation of dialogues."""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import weakref
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from attrs import Factory, define

from footlights import BudgetConfig, Limits, Persona, SessionClosed, SessionParams, open_stage
from footlights.errors import InvalidCommand
from footlights.testing import cancel_everywhere
from footlights.turn.turn import Turn
from footlights_actors import Pause, Say, ScriptedModel, standard_cast
from footlights_actors.sealed.keys import new_key
from footlights_kit.quiesce import Gate as ThreadGate
from footlights_transports.access.policy import User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.kgent.gateway import SWEEP, KgentGateway
from footlights_transports.views.kgent.pure.messages import ChatMessage, InvalidMessage
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.wire import PerturbQuery
from footlights_transports.views.kgent.pure.writer import DialogueWriter
from footlights_transports.views.kgent.sender import KEEPING
from footlights_transports.views.kgent.store import ContentStore
from tests.kit.peers.kgent_peer import lawful, only
from tests.kit.views.kgent_kit import HungLedger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from trio.testing import MockClock

    from footlights.testing import Trial
    from footlights_transports.views.kgent.gateway import Keeper
    from footlights_transports.views.kgent.room import Dialogue
    from footlights_transports.views.kgent.sender import Sender

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
    """A store in memory that may be slow or fail."""

    kept: list[tuple[str, str, str, str]] = Factory(list[tuple[str, str, str, str]])
    error: Exception | None = None
    seconds: float = 0
    expired_at: list[float] = Factory(list[float])

    async def expire(self) -> None:
        self.expired_at.append(trio.current_time())
        if self.error is not None:
            raise self.error

    async def keep(self, session_id: str, turn_id: str, said: str, answered: str) -> None:
        await trio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        self.kept.append((session_id, turn_id, said, answered))


async def test_old_content_is_deleted_every_hour_also_if_it_fails(quiet_clock: MockClock) -> None:
    notebook = Notebook(error=ValueError("no disk"))
    async with open_gateway(keeper=notebook):
        began = trio.current_time()
        await trio.sleep(7_201)
    assert [each - began for each in notebook.expired_at] == [0, 3_600, 7_200]


@asynccontextmanager
async def open_gateway(
    model: ScriptedModel | None = None,
    config: ChatFluxConfig | None = None,
    keeper: Keeper | None = None,
    personas: dict[str, Persona] | None = None,
    budget: BudgetConfig | None = None,
) -> AsyncGenerator[KgentGateway]:
    cast = standard_cast(model or ScriptedModel(lambda _: [Say("Well.")]), personas=personas, budget=budget)
    async with open_stage(cast) as stage, trio.open_nursery() as nursery:
        gateway = KgentGateway(
            SessionAccess(stage),
            config,
            keeper=keeper,
            budget=budget,
            wall_clock=lambda: 1_700_000_000.0,
        )
        await nursery.start(gateway.keep)
        yield gateway
        nursery.cancel_scope.cancel()


async def perform(sender: Sender, name: str) -> Dialogue:
    dialogue = sender.perturb(said(name))
    await dialogue.over.wait()
    return dialogue


@pytest.mark.shows("gateway-84")
async def test_a_conversation_lasts_as_long_as_its_session(quiet_clock: MockClock) -> None:
    async with open_gateway() as gateway:
        first = gateway.enter(ANN, "default", PerturbQuery())
        conversation = first.conversation
        assert gateway.enter(ANN, "default", PerturbQuery()).conversation is conversation
        assert gateway.enter(BOB, "default", PerturbQuery()).conversation is not conversation
        named = gateway.enter(ANN, "default", PerturbQuery("diary")).conversation
        assert named is not conversation
        assert gateway.enter(ANN, "default", PerturbQuery("diary")).conversation is named
        await first.chat.session.close()
        assert gateway.enter(ANN, "default", PerturbQuery()).conversation is not conversation


@pytest.mark.shows("gateway-75")
async def test_a_session_is_forgotten_when_it_ends(quiet_clock: MockClock) -> None:
    async with open_gateway() as gateway:
        sender = gateway.enter(ANN, "default", PerturbQuery())
        await perform(sender, "a")
        with pytest.raises(InvalidMessage):
            sender.perturb(said("a"))
        assert sender.conversation is not None
        assert len(sender.conversation.trace) == 1
        room = gateway.room(ANN, "default")
        await trio.sleep(2 * SWEEP)
        assert gateway.room(ANN, "default") is room
        await sender.chat.session.close()
        assert gateway.room(ANN, "default").observe({"a": 0}).unknown == {"a": 0}, "at once, and not at the next sweep"
        with pytest.raises(SessionClosed):
            sender.perturb(said("b"))
        await trio.sleep(2 * SWEEP)
        assert [sender.conversation] == [None], "the trace is gone too, though a client may still be connected"
        with pytest.raises(SessionClosed):
            sender.perturb(said("c"))


@pytest.mark.shows("gateway-77")
async def test_dialogues_are_forgotten_with_their_session_despite_an_observer(quiet_clock: MockClock) -> None:
    async with open_gateway() as gateway:
        sender = gateway.enter(ANN, "default", PerturbQuery())
        observer = gateway.room(ANN, "default").observe({})
        dialogue = weakref.ref(await perform(sender, "a"))
        await observer.next_batch()
        await sender.chat.session.close()
        await trio.sleep(2 * SWEEP)
        gc.collect()
        assert dialogue() is None


async def test_a_session_that_begins_again_remembers_nothing(
    quiet_clock: MockClock,
) -> None:
    async with open_gateway() as gateway:
        first = gateway.enter(ANN, "default", PerturbQuery("diary"))
        await perform(first, "a")
        await first.chat.session.close()
        again = gateway.enter(ANN, "default", PerturbQuery("diary"))
        assert first.conversation is None
        assert again.conversation is not None
        assert len(again.conversation.trace) == 0
        await trio.sleep(2 * SWEEP)
        assert gateway.enter(ANN, "default", PerturbQuery("diary")).conversation is again.conversation


async def test_clients_without_a_session_name_share_one_for_each_consent(quiet_clock: MockClock) -> None:
    async with open_gateway() as gateway:
        queries = [PerturbQuery(remote_models=each) for each in (None, False, True)]
        found = [gateway.enter(ANN, "default", query) for query in queries]
        assert len({each.session_id for each in found}) == 3
        assert [each.chat.remote_models for each in found] == [None, False, True]
        await trio.sleep(2 * SWEEP)
        assert [gateway.enter(ANN, "default", each).chat for each in queries] == [each.chat for each in found]
        await found[1].chat.session.close()
        await trio.sleep(2 * SWEEP)
        assert gateway.enter(ANN, "default", queries[1]).chat is not found[1].chat
        assert gateway.enter(ANN, "default", queries[2]).chat is found[2].chat


async def test_a_client_without_a_session_name_gets_a_new_one_while_the_old_one_closes() -> None:
    cast, limits = standard_cast(ScriptedModel(lambda _: [Say("Well.")])), Limits(shutdown_deadline=1.0)
    async with open_stage(cast, ledger=HungLedger(), limits=limits) as stage, trio.open_nursery() as nursery:
        gateway = KgentGateway(SessionAccess(stage))
        await nursery.start(gateway.keep)
        first = gateway.enter(ANN, "default", PerturbQuery())
        first.perturb(said("a"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(first.chat.session.close)
        await trio.testing.wait_all_tasks_blocked()
        assert gateway.enter(ANN, "default", PerturbQuery()).session_id != first.session_id
        with pytest.raises(SessionClosed):
            gateway.enter(ANN, "default", PerturbQuery(first.session_id)).perturb(said("b"))
        nursery.cancel_scope.cancel()


async def test_retained_turns_hold_no_input() -> None:
    async with open_gateway() as gateway:
        sender = gateway.enter(ANN, "default", PerturbQuery("retained"))
        await perform(sender, "a")
        retained = [each for each in gc.get_objects() if isinstance(each, Turn) and each.session_id == "ann:retained"]
        assert [each.input for each in retained] == [""]


async def test_an_empty_room_is_dropped(quiet_clock: MockClock) -> None:
    async with open_gateway() as gateway:
        room = gateway.room(ANN, "default")
        observer = room.observe({})
        await trio.sleep(2 * SWEEP)
        assert gateway.room(ANN, "default") is room
        observer.leave()
        await trio.sleep(2 * SWEEP)
        assert gateway.room(ANN, "default") is not room


async def test_a_gateway_that_does_not_run_begins_nothing() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: []))) as stage:
        gateway = KgentGateway(SessionAccess(stage))
        with pytest.raises(SessionClosed):
            gateway.enter(ANN, "default", PerturbQuery()).perturb(said("a"))


async def test_an_unexpected_failure_ends_one_dialogue(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_gateway() as gateway:
        sender = gateway.enter(ANN, "default", PerturbQuery())
        with monkeypatch.context() as broken:
            broken.setattr(DialogueWriter, "take", lambda *_: [][1])
            dialogue = await perform(sender, "a")
        assert only(frames(dialogue), "error")[0]["code"] == "LLM_UNAVAILABLE"
        assert "dialogue failed: IndexError" in caplog.text
        assert SECRET not in caplog.text
        assert only(frames(await perform(sender, "b")), "message")


# -- stored content


@pytest.mark.shows("gateway-77")
async def test_nothing_is_stored_without_consent() -> None:
    notebook = Notebook()
    async with open_gateway(keeper=notebook) as gateway:
        for query in (PerturbQuery(), PerturbQuery("no", keep_content=False)):
            sender = gateway.enter(ANN, "default", query)
            await perform(sender, query.session or "a")
    assert notebook.kept == []


async def test_consent_to_store_is_given_when_a_session_begins() -> None:
    async with open_gateway(
        keeper=Notebook(), personas={"muse": Persona(text="Hm."), "sage": Persona(text="Oh.")}
    ) as gateway:
        gateway.access.start(ANN, SessionParams(session_id="native"))
        gateway.enter(ANN, "muse", PerturbQuery("chat"))
        gateway.enter(ANN, "muse", PerturbQuery("diary", keep_content=True))
        for agent in ("muse", "sage"):
            for session in ("native", "chat"):
                with pytest.raises(InvalidCommand, match="what it agreed to stands"):
                    gateway.enter(ANN, agent, PerturbQuery(session, keep_content=True))
            gateway.enter(ANN, agent, PerturbQuery("diary", keep_content=True))


async def test_a_client_may_repeat_the_consent_of_its_session() -> None:
    async with open_gateway() as gateway:
        sender = gateway.enter(ANN, "default", PerturbQuery("chat", remote_models=False))
        assert gateway.enter(ANN, "default", PerturbQuery("chat", remote_models=False)).chat is sender.chat
        with pytest.raises(InvalidCommand):
            gateway.enter(ANN, "default", PerturbQuery("chat", remote_models=True))


async def test_a_stored_session_without_a_name_gets_a_unique_id() -> None:
    names: set[str] = set()
    for _ in range(2):
        async with open_gateway(keeper=Notebook()) as gateway:
            names.add(gateway.enter(User(), "default", PerturbQuery(keep_content=True)).session_id)
    assert len(names) == 2


async def test_conversations_of_one_session_share_its_tokens(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("one two three four five")])
    config = ChatFluxConfig(session_tokens=5, session_tokens_seconds=1e6)
    budget = BudgetConfig(whisper_max=5, dialogue_max=5, deep_max=5)
    personas = {"muse": Persona(text="Hm."), "sage": Persona(text="Oh.")}
    async with open_gateway(model, config, personas=personas, budget=budget) as gateway:
        first = await perform(gateway.enter(ANN, "muse", PerturbQuery("one")), "a")
        assert only(frames(first), "message")
        second = await perform(gateway.enter(ANN, "sage", PerturbQuery("one")), "b")
        assert only(frames(second), "error")[0]["code"] == "RATE_LIMITED"
        other = await perform(gateway.enter(ANN, "sage", PerturbQuery("two")), "c")
        assert only(frames(other), "message")


async def test_completed_dialogues_are_stored_with_consent(quiet_clock: MockClock) -> None:
    notebook = Notebook()
    model = ScriptedModel(lambda prompt: [Say("Well."), Pause(99 if "wait" in prompt.user else 0)])
    async with open_gateway(model, keeper=notebook) as gateway:
        sender = gateway.enter(ANN, "default", PerturbQuery("diary", keep_content=True))
        await perform(sender, "a")
        late = sender.perturb(said("b", "wait for it"))
        await late.over.wait()
        assert only(frames(late), "error")[0]["code"] == "STREAM_TIMEOUT"
        await trio.sleep(1)
        assert gateway.enter(ANN, "default", PerturbQuery("diary", keep_content=True)).chat is sender.chat
    assert notebook.kept == [("ann:diary", "t1-000001", SECRET, "Well.")]


@pytest.mark.shows("gateway-74")
async def test_a_failing_store_is_logged_without_content(
    caplog: pytest.LogCaptureFixture, quiet_clock: MockClock
) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_gateway(keeper=Notebook(error=OSError(SECRET))) as gateway:
        sender = gateway.enter(ANN, "default", PerturbQuery(keep_content=True))
        assert only(frames(await perform(sender, "corr-7")), "message")
        await trio.sleep(1)
    assert "t1-000001 could not be kept: OSError" in caplog.text
    assert SECRET not in caplog.text
    assert "corr-7" not in caplog.text


@pytest.mark.parametrize("seconds", [1, 100])
async def test_a_stopping_gateway_stores_completed_dialogues_within_a_timeout(
    caplog: pytest.LogCaptureFixture, quiet_clock: MockClock, seconds: float
) -> None:
    notebook = Notebook(seconds=seconds)
    async with open_gateway(keeper=notebook) as gateway:
        sender = gateway.enter(ANN, "default", PerturbQuery("diary", keep_content=True))
        await perform(sender, "a")
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(min(seconds, KEEPING))
    assert len(notebook.kept) == (seconds < KEEPING)
    assert ("t1-000001 could not be kept" in caplog.text) == (seconds > KEEPING)


@pytest.mark.parametrize("hangs", ["lock", "disk"])
async def test_a_hanging_store_does_not_keep_a_gateway_from_stopping(
    caplog: pytest.LogCaptureFixture,
    quiet_clock: MockClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hangs: str,
) -> None:
    store = ContentStore(tmp_path, [new_key()])
    policy, really = ThreadGate(), os.fsync

    def hang(descriptor: int) -> None:
        policy.wait()
        really(descriptor)

    folder = os.open(tmp_path, os.O_RDONLY)
    if hangs == "lock":
        fcntl.flock(folder, fcntl.LOCK_EX)
    else:
        monkeypatch.setattr(os, "fsync", hang)
    try:
        async with open_gateway(keeper=store) as gateway:
            sender = gateway.enter(ANN, "default", PerturbQuery("diary", keep_content=True))
            dialogues = [sender.perturb(said(each)) for each in "ab"]
            for dialogue in dialogues:
                await dialogue.over.wait()
            began = trio.current_time()
        assert trio.current_time() - began <= KEEPING
        assert [f"t1-00000{number} could not be kept" in caplog.text for number in (1, 2)] == [True, True]
        assert SECRET not in caplog.text
    finally:
        policy.open()
        os.close(folder)
    await store.keep("ann:diary", "t1-000003", "Hello?", "Yes.")
    assert [each.turn_id for each in await store.read("ann:diary")][-1] == "t1-000003"


# -- cancellation


def test_a_gateway_canceled_anywhere_ends_dialogues_and_stores_completed_ones() -> None:
    outcomes: set[str] = set()

    async def scenario(trial: Trial) -> None:
        notebook = Notebook()
        model = ScriptedModel(lambda _: [Say("Well, let me"), Pause(0.2), Say(" think.")], pace=0.01)
        config = ChatFluxConfig(buffer_chunks=1)
        async with open_stage(standard_cast(model), wall_clock=trio.current_time) as stage:
            access = SessionAccess(stage)
            gateway = KgentGateway(access, config, keeper=notebook, wall_clock=lambda: 1_700_000_000.0)
            async with trio.open_nursery() as nursery:
                home = trio.CancelScope()

                async def keep(task_status: trio.TaskStatus[None]) -> None:
                    with home:
                        await gateway.keep(task_status)

                await nursery.start(keep)
                sender = gateway.enter(ANN, "default", PerturbQuery("diary", keep_content=True))
                conversation = sender.conversation
                assert conversation is not None
                observer = gateway.room(ANN, "default").observe({})
                trial.aim(home.cancel)
                dialogue = sender.perturb(said("a"))
                observer.end()
                heard: list[bytes] = []
                while batch := await observer.next_batch():
                    heard += batch
                trial.disarm()
                told = frames(dialogue)
                assert heard == dialogue.encoded
                assert len(conversation.trace.events) == len(only(told, "message"))
                outcomes.add(str(told[-2]["payload"].get("code", told[-2]["event_type"])))
                home.cancel()
            assert len(notebook.kept) == len(only(told, "message"))

    assert cancel_everywhere(scenario, orders=2, pairs=5).points > 20
    assert outcomes == {"message", "SESSION_EXPIRED"}
