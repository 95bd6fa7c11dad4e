"""A session with a conversation, and checks of its events."""

from __future__ import annotations

import json
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen

from footlights import Stage, open_stage
from footlights.authority import MemoryLedger
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports.views.kgent.conversation import Conversation
from footlights_transports.views.kgent.pure.record import TurnType
from footlights_transports.views.kgent.pure.templates import NO_TEMPLATES
from footlights_transports.views.kgent.responder import Responder
from footlights_transports.views.kgent.template_workloads import with_templates
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from footlights import BudgetConfig, InteractionSession, Limits, Persona, Prompt
    from footlights.authority import World
    from footlights.authority.ledger.protocol import TurnRequest
    from footlights.authority.record import CommitRecord
    from footlights.models.model import Model
    from footlights_actors import Line
    from footlights_transports.views.kgent.pure.messages import ChatEvent, DialogueMode
    from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
    from footlights_transports.views.kgent.pure.templates import Templates

ASKED = "What should I focus on?"
PRECOMPUTED: dict[str, Any] = json.loads((ROOT / "tests/fixtures/chat/soul_dialogue.json").read_text(encoding="utf-8"))
ANSWERED: str = PRECOMPUTED["output"]["content"]


@frozen
class Room:
    """One session of a stage, its responder and its conversation."""

    stage: Stage
    session: InteractionSession
    responder: Responder
    conversation: Conversation

    @property
    def speeches(self) -> list[str]:
        """The SPEECH turns of the trace."""
        return [each.content for each in self.conversation.trace.events if each.turn_type is TurnType.SPEECH]


class HungLedger(MemoryLedger):
    """An append never returns."""

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        await trio.sleep_forever()


def saying(*lines: Line, pace: float = 0.0) -> ScriptedModel:
    """A pace makes each word a separate piece."""
    return ScriptedModel(lambda _: lines or [Say(ANSWERED)], pace=pace)


def scripted(script: Callable[[Prompt], Iterable[Line]]) -> ScriptedModel:
    return ScriptedModel(script)


@asynccontextmanager
async def open_room(
    model: Model | None = None,
    config: ChatFluxConfig | None = None,
    *,
    templates: Templates = NO_TEMPLATES,
    personas: dict[str, Persona] | None = None,
    agent: str | None = None,
    budget: BudgetConfig | None = None,
    limits: Limits | None = None,
    wall_clock: Callable[[], float] = lambda: 1_700_000_000.0,
) -> AsyncGenerator[Room]:
    cast = with_templates(standard_cast(model or saying(), personas=personas, budget=budget), templates)
    async with open_stage(cast, limits=limits) as stage:
        session = stage.start()
        responder = Responder(session, agent, personas=stage.personas, templates=templates)
        yield Room(stage, session, responder, Conversation(responder, config, budget=budget, wall_clock=wall_clock))


async def talk(conversation: Conversation, said: str = ASKED, mode: DialogueMode | None = None) -> list[ChatEvent]:
    """One complete dialogue, checked."""
    async with aclosing(conversation.dialogue_stream(said, mode)) as events:
        return lawful([event async for event in events])


def lawful(events: list[ChatEvent]) -> list[ChatEvent]:
    """Check what holds for every dialogue."""
    assert [each.sequence for each in events] == list(range(1, len(events) + 1))
    assert [each.event_type for each in events].count("done") == 1
    assert events[-1].event_type == "done"
    chunks = [each.payload for each in events if each.event_type == "chunk"]
    assert events[-1].payload["total_chunks"] == len(chunks)
    assert len({each.payload["correlation_id"] for each in events}) == 1
    messages = [each.payload for each in events if each.event_type == "message"]
    errors = [each for each in events if each.event_type == "error"]
    assert len(messages) + len(errors) <= 1
    assert any(each["final"] for each in chunks) or not messages
    for message in messages:
        assert message["content"] == text(events)
        assert [each["final"] for each in chunks] == [False] * (len(chunks) - 1) + [True]
    return events


def text(events: list[ChatEvent]) -> str:
    return "".join(str(each.payload["content"]) for each in events if each.event_type == "chunk")


def kinds(events: list[ChatEvent]) -> list[str]:
    return [each.event_type for each in events]


def payload(events: list[ChatEvent], event_type: str) -> dict[str, Any]:
    (found,) = [each.payload for each in events if each.event_type == event_type]
    return dict(found)
