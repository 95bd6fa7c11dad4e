"""Tools: `@tool` on functions, definitions that `Tool` refuses, and the use of a context."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from enum import StrEnum
from functools import partial, wraps
from threading import get_ident
from typing import TYPE_CHECKING, Annotated, Any

import pytest
import trio

from footlights import Intent, IntentType, RegistrationError, SideEffects, Tool, ToolContext, ToolReturn, tool
from footlights.authority import JsonWorld
from footlights.tools.arguments import InvalidArguments

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from footlights import JsonValue


class Room(StrEnum):
    ATTIC = "attic"
    GABLE = "gable"


@tool(cancel_safe=True, side_effects=SideEffects.NONE, timeout=5.0)
async def rent_room(
    room: Room, nights: Annotated[int, "how many nights"] = 1, *, context: ToolContext
) -> dict[str, JsonValue]:
    """Rent a room
    to the guest.

    What comes after the first paragraph is for those who read the source.
    """
    await trio.lowlevel.checkpoint()
    return {"room": room, "nights": nights, "call": context.tool_call_id}


def context() -> ToolContext:
    return ToolContext("s", "t", "call-1", JsonWorld({"ale": 3}), reserve_intent=lambda _: True)


async def asked(a_tool: Tool, arguments: object) -> ToolReturn | JsonValue:
    return await a_tool.run(a_tool.read_arguments(arguments), context())


# -- what it makes


def test_a_function_declares_all_that_a_tool_is() -> None:
    assert rent_room.name == "rent_room"
    assert rent_room.description == "Rent a room to the guest."
    assert (rent_room.cancel_safe, rent_room.side_effects, rent_room.timeout) == (True, SideEffects.NONE, 5.0)
    assert rent_room.parameters == {
        "type": "object",
        "properties": {
            "room": {"type": "string", "enum": ["attic", "gable"]},
            "nights": {"type": "integer", "description": "how many nights"},
        },
        "required": ["room"],
        "additionalProperties": False,
    }


async def test_the_function_gets_its_arguments_its_defaults_and_the_context() -> None:
    assert await asked(rent_room, {"room": "gable"}) == {"room": "gable", "nights": 1, "call": "call-1"}
    assert await asked(rent_room, {"room": "attic", "nights": 3}) == {"room": "attic", "nights": 3, "call": "call-1"}


@pytest.mark.parametrize("arguments", [{}, {"room": "cellar"}, {"room": "attic", "context": 1}, None])
async def test_what_does_not_fit_never_reaches_the_function(arguments: object) -> None:
    with pytest.raises(InvalidArguments):
        await asked(rent_room, arguments)


async def test_a_tool_may_need_nothing_at_all() -> None:
    @tool
    async def ring() -> bool:
        await trio.lowlevel.checkpoint()
        return True

    assert (ring.description, ring.side_effects, ring.timeout) == ("", None, None)
    assert await asked(ring, {}) is True


def test_its_name_and_description_can_be_given() -> None:
    @tool(name="ring_the_bell", description="Ring.")
    async def ring() -> None:
        """Something else."""

    assert (ring.name, ring.description) == ("ring_the_bell", "Ring.")


async def test_a_key_is_made_of_what_the_function_gets() -> None:
    @tool(idempotency_key=lambda arguments: f"{arguments['room'].name}-{arguments['nights']}")
    async def rent(room: Room, nights: int = 2) -> None:
        pass

    assert rent.idempotency_key is not None
    assert rent.idempotency_key(rent.read_arguments({"room": "attic"})) == "ATTIC-2"


async def test_a_method_and_a_wrapped_function_can_be_tools() -> None:
    class Desk:
        async def find(self, room: Room) -> str:
            await trio.lowlevel.checkpoint()
            return room.name

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await function(*args, **kwargs)

        return call

    assert await asked(tool(Desk().find), {"room": "attic"}) == "ATTIC"
    assert await asked(tool(noted(Desk().find)), {"room": "attic"}) == "ATTIC"
    assert tool(wrapped(plain)).name == "plain"


# -- what it refuses


async def positional(room: str, /) -> None: ...
async def several(*rooms: str) -> None: ...
async def named(**rooms: str) -> None: ...
async def typeless(room) -> None: ...  # type: ignore[no-untyped-def]
async def formless(room: set[str]) -> None: ...
async def lost(room: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that is what is tested
def plain() -> None: ...
def one_by_one() -> Iterator[str]:
    yield "attic"


async def one_after_another() -> AsyncIterator[str]:
    yield "attic"


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


@dataclass
class Stay:
    room: str
    nights: InitVar[int]


async def stay(at: Stay) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (positional, "positional cannot be offered to a model: room cannot be given by its name"),
        (several, "rooms cannot be given by its name"),
        (named, "rooms cannot be given by its name"),
        (typeless, "room has no type"),
        (formless, r"room has the type set\[str\], which has no JSON form"),
        (lost, "room speaks of Nowhere, which is unknown when the program runs"),
        (one_by_one, "one_by_one is a generator"),
        (one_after_another, "one_after_another is a generator"),
        (wrapped(formless), "formless wraps an async function"),
        (wrapped(wrapped(one_after_another)), "one_after_another wraps an async function"),
        (stay, "at has the type Stay, whose nights is an InitVar"),
        (partial(plain), "made of a function"),
        (3, "made of a function"),
        (len, "made of a function"),
        (lambda: None, "The tool name '<lambda>' must be"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_where_it_is_declared(function: Any, why: str) -> None:
    with pytest.raises(RegistrationError, match=why):
        tool(function)


def test_a_plain_function_cannot_be_cancelled_and_may_not_say_so() -> None:
    with pytest.raises(RegistrationError, match="plain is no async function, so it cannot be cancel_safe"):
        tool(cancel_safe=True, side_effects=SideEffects.NONE)(plain)


async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    raise AssertionError("these tools are never run")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": "Rent"}, "lower-case"),
        ({"cancel_safe": True}, "must declare side_effects"),
        ({"timeout": 0}, "above 0"),
        ({"timeout": -1.0}, "above 0"),
        ({"timeout": math.inf}, "above 0"),
        ({"timeout": math.nan}, "above 0"),
        ({"timeout": True}, "above 0"),
        ({"parameters": {"type": "object", "properties": {1: {}}}}, "parameters of the tool rent must be a string"),
        ({"parameters": {"type": "string"}}, '"type": "object"'),
        ({"parameters": {}}, '"type": "object"'),
    ],
    ids=str,
)
def test_a_tool_that_cannot_work_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(RegistrationError, match=why):
        Tool(**{"name": "rent", "run": run, **wrong})


def test_a_tool_made_by_hand_takes_what_comes() -> None:
    by_hand = Tool(name="rent", run=run)
    assert by_hand.parameters == {"type": "object"}
    assert by_hand.read_arguments({"any": "thing"}) == {"any": "thing"}
    assert hash(by_hand) == hash(Tool(name="rent", run=run))


# -- the context


def test_a_context_needs_no_trio() -> None:
    here = context()
    intent = Intent(IntentType.TOOL_RESULT, "call-1")
    here.request_commit(intent)
    here.begin_side_effects()
    assert (here.world, here.staged, here.side_effects_begun) == ({"ale": 3}, (intent,), True)


async def test_a_context_that_is_used_in_a_thread_does_its_work_at_home(quiet_clock: trio.testing.MockClock) -> None:
    worked_in: list[int] = []

    class World(JsonWorld):
        def view(self) -> Any:
            worked_in.append(get_ident())
            return super().view()

    def reserve(size: int) -> bool:
        worked_in.append(get_ident())
        return True

    here = ToolContext("s", "t", "call-1", World({"ale": 3}), reserve_intent=reserve)
    intent = Intent(IntentType.TOOL_RESULT, "call-1")

    def work() -> Any:
        here.request_commit(intent)
        here.begin_side_effects()
        return here.world

    assert await trio.to_thread.run_sync(work) == {"ale": 3}
    assert (here.staged, here.side_effects_begun) == ((intent,), True)
    assert worked_in == [get_ident(), get_ident()]
