"""`standard_cast`: it returns a cast that works, or raises before a stage is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    Cast,
    ExtensionManager,
    InteractionContext,
    InterruptReason,
    InvalidCommand,
    ModelChoice,
    ModelError,
    ModelQuery,
    Persona,
    RegistrationError,
    SideEffects,
    Tool,
    ToolContext,
    TurnParams,
    open_stage,
)
from footlights.authority import JsonWorld, accept
from footlights.testing import take_turn
from footlights.testing.faults import slow_tool
from footlights_actors import ScriptedModel, standard_cast
from footlights_actors.committer import AuthorityCommitter
from footlights_actors.models.pool import StandardPool
from footlights_actors.turn.performance import perform
from footlights_actors.watchdog import TurnWatchdog
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from footlights.authority import PatchOp
    from footlights.events import JsonValue


def model(model_id: str) -> ScriptedModel:
    return ScriptedModel(lambda _: [], model_id=model_id)


class Work:
    async def run(self, context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()


async def nothing(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    await trio.lowlevel.checkpoint()
    return None


class CountingWorld:
    """A world of a host's own: how often it was changed."""

    def __init__(self, changes: int = 0) -> None:
        self._changes = changes

    def view(self) -> int:
        return self._changes

    def changed(self, changes: tuple[PatchOp, ...]) -> CountingWorld:
        return CountingWorld(self._changes + len(changes))

    def digest(self) -> str:
        return f"{self._changes:064x}"


def query(params: TurnParams | None = None, persona: Persona | None = None) -> ModelQuery:
    return ModelQuery(
        session_id="s1-000001",
        params=params or TurnParams(),
        persona=persona or Persona(),
        remote_models=False,
        models=(),
    )


# -- models


def test_the_first_model_is_the_default_and_a_turn_may_name_another() -> None:
    cast = standard_cast(model("a"), model("b"))
    assert cast.choose_model(query()) == ModelChoice("a", "default")
    assert cast.choose_model(query(TurnParams(model="b"))) == ModelChoice("b", "requested")
    spoken_by_b = query(persona=Persona(models=("b",)))
    assert cast.choose_model(spoken_by_b) == ModelChoice("b", "persona")


def test_only_the_runtime_chooses_a_fallback() -> None:
    with pytest.raises(RegistrationError, match="fallback"):
        ModelChoice("a", "fallback")


@pytest.mark.parametrize("models", ["odo", ["odo", "odo"]])
def test_the_models_of_a_persona_are_a_list_without_repeats(models: Sequence[str]) -> None:
    with pytest.raises(RegistrationError):
        Persona(models=models)


def test_a_cast_without_models_has_none_to_choose() -> None:
    with pytest.raises(ModelError):
        standard_cast().choose_model(query())


async def test_a_turn_without_a_model_or_a_workload_ends_in_a_model_error() -> None:
    async with open_stage(standard_cast(workloads={"work": Work()})) as stage:
        session = stage.start()
        events = await take_turn(session, "Hello?")
        assert events[1].payload == failed(
            InterruptReason.MODEL_ERROR,
            "model_error",
            sentence="This cast has no model; its turns must name a workload.",
        )
        commit = await session.finalize(session.begin_turn("Work!", TurnParams(workload="work"))).wait()
    assert commit.commit_outcome == "ok"


async def test_an_unknown_name_is_refused_with_the_known_names() -> None:
    cast = standard_cast(model("a"), model("b"), workloads={"work": Work(), "rest": Work()})
    async with open_stage(cast) as stage:
        session = stage.start()
        with pytest.raises(InvalidCommand, match=r"no model 'c'; registered: a, b\."):
            session.begin_turn("Hello?", TurnParams(model="c"))
        with pytest.raises(InvalidCommand, match=r"no workload 'c'; registered: work, rest\."):
            session.begin_turn("Hello?", TurnParams(workload="c"))


async def test_an_unknown_name_is_refused_even_if_there_are_none() -> None:
    async with open_stage(standard_cast()) as stage:
        session = stage.start()
        for params in (TurnParams(model="c"), TurnParams(workload="c")):
            with pytest.raises(InvalidCommand, match=r"registered: none\."):
                session.begin_turn("Hello?", params)


# -- names


@pytest.mark.parametrize(
    "make",
    [
        lambda: standard_cast(model("a"), model("a")),
        lambda: standard_cast(tools=[slow_tool(1), slow_tool(2)]),
        lambda: standard_cast(rules={"No Name": lambda world, intents: accept()}),
        lambda: standard_cast(workloads={"No Name": Work()}),
        lambda: Cast(
            perform=perform,
            make_committer=AuthorityCommitter,
            make_pool=StandardPool,
            make_watchdog=TurnWatchdog,
            choose_model=lambda params: ModelChoice("a", "only"),
            models={"another": model("a")},
        ),
        lambda: Cast(
            perform=perform,
            make_committer=AuthorityCommitter,
            make_pool=StandardPool,
            make_watchdog=TurnWatchdog,
            choose_model=lambda params: ModelChoice("a", "only"),
            tools={"another": slow_tool(1)},
        ),
    ],
    ids=["two models", "two tools", "rule name", "workload name", "model's name", "tool's name"],
)
def test_names_that_clash_or_lie_are_refused(make: Callable[[], Cast]) -> None:
    with pytest.raises(RegistrationError):
        make()


@pytest.mark.parametrize("name", ["", "Bell", "1bell", "bell!", "b" * 65, "bell\n"])
def test_a_tool_needs_a_plain_name(name: str) -> None:
    with pytest.raises(RegistrationError):
        Tool(name=name, run=nothing)


@pytest.mark.parametrize("name", ["", "half a pair \ud800"])
def test_a_model_needs_a_name_that_can_be_streamed(name: str) -> None:
    with pytest.raises(RegistrationError):
        standard_cast(model(name))


@pytest.mark.shows("core-37")
def test_a_tool_that_is_cancel_safe_must_say_what_its_side_effects_are() -> None:
    with pytest.raises(RegistrationError):
        Tool(name="bell", run=nothing, cancel_safe=True)
    assert Tool(name="bell", run=nothing, cancel_safe=True, side_effects=SideEffects.NONE).cancel_safe


@pytest.mark.shows("core-49")
def test_workloads_may_come_with_a_manager_of_their_own() -> None:
    manager = ExtensionManager({"work": Work()})
    assert standard_cast(workloads=manager).workloads is manager
    manager.register("later", Work())
    assert standard_cast(workloads=manager).workloads.names == ("work", "later")


# -- worlds


@pytest.mark.parametrize("document", [{"door": "open"}, [1, 2], "a word", 3, 1.5, True, False])
def test_a_json_document_becomes_a_world(document: JsonValue) -> None:
    assert standard_cast(world=document).world.view() == document


def test_without_a_world_there_is_an_empty_one() -> None:
    assert standard_cast().world.view() == {}


def test_the_world_does_not_change_when_the_document_does() -> None:
    document: dict[str, JsonValue] = {"door": "open"}
    cast = standard_cast(world=document)
    document["door"] = "shut"
    assert cast.world.view() == {"door": "open"}


@pytest.mark.parametrize("world", [JsonWorld([]), CountingWorld()])
def test_a_host_may_bring_a_world_of_its_own(world: JsonWorld | CountingWorld) -> None:
    assert standard_cast(world=world).world is world


@pytest.mark.parametrize("world", [{"x": float("nan")}, ("a", "tuple"), object()], ids=["nan", "tuple", "object"])
def test_what_cannot_be_a_world_is_refused(world: JsonValue) -> None:
    with pytest.raises(RegistrationError):
        standard_cast(world=world)


def test_a_model_that_is_only_named_is_refused_with_what_it_must_be() -> None:
    with pytest.raises(RegistrationError, match="A model must be a driver, such as ScriptedModel, and not str"):
        standard_cast("qwen3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a host need not be typed
