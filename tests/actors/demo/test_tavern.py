"""The Mended Lantern: what the innkeeper says, what the tools ask for, and what the rules let become true."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import pytest
import trio

from footlights import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    Intent,
    IntentType,
    Mode,
    ModelLoading,
    ModelReady,
    ModelSelected,
    Prompt,
    Tool,
    ToolCallResult,
    ToolContext,
    ToolError,
    ToolOffer,
    ToolReturn,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    WarmState,
    open_stage,
)
from footlights.authority import JsonWorld, JudgeRequest, RuleBook, judge
from footlights.testing import only, payloads
from footlights_actors.demo.tavern.approvals import LANTERN_QUESTION, WAITING
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.demo.tavern.house import House, known
from footlights_actors.demo.tavern.innkeeper import innkeeper
from footlights_actors.demo.tavern.rules import TAVERN_RULES, Rent, Serve, TellRumour, act_of, intent_to
from footlights_actors.demo.tavern.tools import RUMOURS, check_rooms, rent_room, serve_order, take_order
from footlights_actors.demo.tavern.world import Tavern, opening_hour
from footlights_actors.models.scripted import Call, Say

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

    from footlights import InteractionSession, Issue, Stage, StreamEvent, Subscription
    from footlights.events import JsonValue


class Visit:
    """One player in the tavern."""

    def __init__(self, stage: Stage, session: InteractionSession, stream: Subscription) -> None:
        self.stage = stage
        self.session = session
        self.stream = stream

    @property
    def world(self) -> Tavern:
        return cast(Tavern, self.stage.world)

    async def say(self, line: str, params: TurnParams | None = None) -> list[StreamEvent]:
        turn_id = self.session.begin_turn(line, params)
        return [event async for event in self.stream.until_commit(turn_id)]


@asynccontextmanager
async def visit() -> AsyncGenerator[Visit]:
    async with open_stage(tavern_cast()) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            yield Visit(stage, session, stream)


def text_of(events: list[StreamEvent]) -> str:
    return only(events, TurnFinal).text


def outcome_of(events: list[StreamEvent]) -> tuple[CommitOutcome, list[str]]:
    commit = only(events, CommitFinal)
    return commit.commit_outcome, [issue.code for issue in commit.issues]


# -- what is said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Good evening!", "fire"),
        ("Do you have a room?", "the attic for 2 coins, the garden room for 5 coins and the great chamber"),
        ("What does it cost?", "the great chamber is 12"),
        ("Any news?", "did not hear it from me"),
        ("I am hungry", "stew"),
        ("Who are you?", "Odo"),
        ("Who is here tonight?", "Mirel the tinker in the gable room"),
        ("Thank you", "what the door is for"),
        ("It looks like rain", "mud with robbers"),
        ("Good night", "Mind the step"),
        ("Colourless green ideas sleep furiously... or do they?", "the attic"),
        ("xyzzy", "a wise man"),
    ],
)
async def test_the_innkeeper_has_an_answer(line: str, words: str, quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        events = await tavern.say(line)
    assert words in text_of(events)
    assert outcome_of(events) == (CommitOutcome.OK, [])


async def test_the_same_words_in_the_same_world_get_the_same_answer(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        first = await tavern.say("Hello there")
        second = await tavern.say("Hello there")
    assert text_of(first) == text_of(second)


def answer_to(line: str, *more: str) -> str:
    facts = [f"{fact.name}: {fact.text}" for fact in known(opening_hour())]
    (said,) = innkeeper(Prompt(line, system="\n".join([*facts, *more])))
    assert isinstance(said, Say)
    return said.text


def test_the_price_of_several_things_is_told_as_a_sum() -> None:
    assert "Together that makes 11 coins." in answer_to("What would the garden room and two wines come to altogether?")
    assert "Together" not in answer_to("How much is the gable room and an ale?")  # it is taken


@pytest.mark.parametrize(("line", "words"), [("Yes.", "it is a sale as soon as"), ("No.", "all stays where it is")])
def test_an_answer_is_worded_so_that_it_holds_with_and_without_the_approval(line: str, words: str) -> None:
    waiting = f"{WAITING}: {LANTERN_QUESTION}"
    assert words in answer_to(line, waiting)
    assert LANTERN_QUESTION in answer_to(line, waiting)
    assert "the question stays open" in answer_to(line, waiting)
    assert "question" not in answer_to(line)


def test_the_prices_that_are_told_are_those_of_the_world() -> None:
    world = opening_hour()
    world["menu"]["wine"], world["rooms"]["attic"]["price"] = 7, 4
    (line,) = innkeeper(Prompt("prices?", system="\n".join(f"{fact.name}: {fact.text}" for fact in known(world))))
    assert line == Say(
        "In coins: ale is 1, bread is 1, stew is 2 and wine is 7. Of the rooms, the attic is 4, the garden room is 5 "
        "and the great chamber is 12. The lantern over the door is 15."
    )


def test_the_facts_of_the_house_are_read_as_they_were_written() -> None:
    world = opening_hour()
    world["rooms"]["attic"]["guest"], world["lantern"], world["purse"] = "the traveller", "the traveller", 1
    house = House.of("\n".join(["You keep the inn.", *(f"{fact.name}: {fact.text}" for fact in known(world))]))
    assert house == House(
        free={"the garden room": 5, "the great chamber": 12},
        taken={"the attic": "the traveller", "the gable room": "Mirel the tinker"},
        menu=world["menu"],
        purse=1,
    )
    assert house.own_rooms == ["the attic"]


async def test_what_the_innkeeper_does_not_know_he_does_not_invent(quiet_clock: MockClock) -> None:
    for line in ("how much is the wine?", "how much do I have?", "I do not want the attic"):
        assert innkeeper(Prompt(line)) == [
            Say("I would have to look that up, and the book is not at hand. Ask me for a room, and I will open it.")
        ]


async def test_without_tools_the_innkeeper_only_talks(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        events = await tavern.say("I'll take the attic", TurnParams(mode=Mode.CHAT))
        assert tavern.world == opening_hour()
    assert not payloads(events, ToolCallResult)
    assert "the book stays shut" in text_of(events)


async def test_the_model_is_cold_for_the_first_turn_and_hot_for_the_next(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        began = trio.current_time()
        first = await tavern.say("Hello")
        words = len(text_of(first).split())
        assert trio.current_time() - began == pytest.approx(1.5 + words * 0.03)
        second = await tavern.say("Hello")
    assert [loading.progress for loading in payloads(first, ModelLoading)][:3] == [None, 0.1, 0.2]
    assert only(first, ModelReady).warm_state is WarmState.COLD
    assert not payloads(second, ModelLoading)
    assert only(second, ModelReady).warm_state is WarmState.HOT


# -- the analyst


@pytest.mark.parametrize(
    ("line", "report"),
    [
        (
            "How are we doing?",
            (
                "Till: 31 coins. Rooms: 1 of 4 let, the others worth 19 coins a night. "
                "Purse of the traveller: 20 coins. Rumours told: 0."
            ),
        ),
        ("What is in the till?", "Till: 31 coins."),
        ("Rumour and purse, please", "Purse of the traveller: 20 coins. Rumours told: 0."),
    ],
)
async def test_the_analyst_reports_the_state_of_the_house(line: str, report: str, quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        events = await tavern.say(line, TurnParams(persona="analyst"))
    assert text_of(events) == report
    assert only(events, ModelSelected).model_id == "analyst"


async def test_the_analyst_reports_what_was_committed_and_nothing_else(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        await tavern.say("rent the attic")
        events = await tavern.say("till and rooms", TurnParams(persona="analyst"))
    assert text_of(events) == "Till: 33 coins. Rooms: 2 of 4 let, the others worth 17 coins a night."


# -- renting


async def test_a_room_is_rented_by_the_commit_and_not_before(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        turn_id = tavern.session.begin_turn("I'll take the garden room, please")
        async for event in tavern.stream.until_commit(turn_id):
            if not isinstance(event.payload, CommitFinal):
                assert tavern.world == opening_hour()
        assert tavern.world["rooms"]["garden"]["guest"] == "the traveller"
        assert (tavern.world["purse"], tavern.world["till"]) == (15, 36)


async def test_a_room_without_a_name_is_asked_for_and_not_guessed(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        events = await tavern.say("I would like to rent a room")
        assert tavern.world == opening_hour()
    assert "Say which one you take" in text_of(events)


@pytest.mark.parametrize(
    ("line", "room"),
    [
        ("the cheapest room", "attic"),
        ("your best bed, please", "chamber"),
        ("the best room for no more than 5 coins", "garden"),
        ("the room for five coins", "garden"),
    ],
)
async def test_a_room_may_be_named_by_its_rank_or_price(line: str, room: str, quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        await tavern.say(line)
        assert [key for key, each in tavern.world["rooms"].items() if each["guest"] == "the traveller"] == [room]


async def test_a_rent_that_is_interrupted_moves_no_coin(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        turn_id = tavern.session.begin_turn("rent the attic")
        events: list[StreamEvent] = []
        async for event in tavern.stream.until_commit(turn_id):
            events.append(event)
            if isinstance(event.payload, ToolCallResult):
                tavern.session.cancel(turn_id)
        assert payloads(events, TurnInterrupted)
        assert outcome_of(events) == (CommitOutcome.FAIL_CLOSED, ["turn_interrupted"])
        assert tavern.world == opening_hour()


async def test_a_taken_room_is_a_tool_error_that_the_innkeeper_explains(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        events = await tavern.say("rent the gable room")
        assert tavern.world == opening_hour()
    taken = ErrorInfo("tool_error", "The book has Mirel the tinker in the gable room.")
    assert only(events, ToolCallResult).error == taken
    assert "Mirel the tinker" in text_of(events)
    assert outcome_of(events) == (CommitOutcome.OK, [])


async def test_when_no_room_is_free_the_innkeeper_says_so(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        for _ in range(3):
            assert outcome_of(await tavern.say("rent the cheapest room")) == (CommitOutcome.OK, [])
        assert tavern.world["purse"] == 1
        refused = await tavern.say("rent the cheapest room")
        asked = await tavern.say("Do you have a bed?")
    assert "There is no free room left tonight." in text_of(refused)
    assert "straw in the stable" in text_of(asked)


async def test_a_purse_that_is_too_light_fails_the_commit_and_nothing_changes(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        await tavern.say("rent the great chamber")
        await tavern.say("rent the garden room")
        await tavern.say("wine!")
        before = tavern.world
        events = await tavern.say("rent the attic")
        assert outcome_of(events) == (CommitOutcome.FAIL_CLOSED, ["purse_short"])
        assert tavern.world == before
        assert before["purse"] == 0
    assert "That makes 2 coins, and your purse holds 0 coins." in text_of(events)


async def test_a_price_that_is_not_the_price_fails_the_commit(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        for line in ("rent the attic for 1 coin", "two ales for 1 coin", "I'll give you 3 coins for the lantern"):
            events = await tavern.say(line)
            assert outcome_of(events) == (CommitOutcome.FAIL_CLOSED, ["wrong_price"])
            assert "it does not haggle" in text_of(events)
        assert tavern.world == opening_hour()


# -- several things at once


async def test_everything_that_one_line_orders_is_one_purchase(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        events = await tavern.say("two stews and three ales, and the attic")
        assert outcome_of(events) == (CommitOutcome.OK, [])
        assert (tavern.world["purse"], tavern.world["till"]) == (11, 40)
        assert tavern.world["rooms"]["attic"]["guest"] == "the traveller"
    assert only(events, ToolCallResult).tool_name == "take_order"
    assert "The attic, two stews and three ales: 9 coins in all." in text_of(events)


@pytest.mark.parametrize(
    ("line", "issues"),
    [
        ("the gable room and an ale", []),  # taken: the tool says so
        ("the great chamber and nine ales", ["purse_short"]),  # too dear: the rules say so
    ],
)
async def test_if_one_thing_cannot_be_had_none_is(line: str, issues: list[str], quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        events = await tavern.say(line)
        assert tavern.world == opening_hour()
    assert outcome_of(events)[1] == issues


async def test_the_lantern_among_other_things_still_waits_for_approval(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        events = await tavern.say("I want the lantern and two ales")
        assert outcome_of(events) == (CommitOutcome.OK, [])
        assert tavern.world["purse"] == 18
        assert "lantern" not in tavern.world
        again = await tavern.say("yes")
        assert "Buy the lantern of the house for 15 coins?" in text_of(again)
    assert "you will be asked" in text_of(events)


# -- food and rumours


async def test_what_is_served_is_paid_for(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        events = await tavern.say("A beer, please")
        assert (tavern.world["purse"], tavern.world["till"]) == (19, 32)
    assert "One ale" in text_of(events)


async def test_rumours_go_round_in_order(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        told = [text_of(await tavern.say("Any rumours?")) for _ in range(len(RUMOURS) + 1)]
    for rumour, text in zip([*RUMOURS, RUMOURS[0]], told, strict=True):
        assert rumour in text


async def test_a_rumour_that_was_interrupted_is_repeated(quiet_clock: MockClock) -> None:
    async with visit() as tavern:
        turn_id = tavern.session.begin_turn("Any rumours?")
        async for event in tavern.stream.until_commit(turn_id):
            if isinstance(event.payload, ToolCallResult):
                tavern.session.cancel(turn_id)
        assert RUMOURS[0] in text_of(await tavern.say("Any rumours?"))


# -- the rules, whatever a tool may ask for


def judged(*intents: Intent) -> tuple[Issue, ...]:
    world = JsonWorld(cast("JsonValue", opening_hour()))
    return judge(JudgeRequest("s", "t", None, intents), world, RuleBook(TAVERN_RULES), None).record.issues


@pytest.mark.parametrize(
    ("intents", "codes"),
    [
        ([intent_to(Rent("cellar", 2), "call-1")], ["no_such_room"]),
        ([intent_to(Rent("gable", 3), "call-1")], ["room_taken"]),
        ([intent_to(Rent("attic", 2), "call-1"), intent_to(Rent("attic", 2), "call-2")], ["room_taken"]),
        ([intent_to(Rent("attic", -2), "call-1")], ["wrong_price"]),
        ([intent_to(Serve("ale", 0), "call-1")], ["wrong_price"]),
        ([intent_to(Serve("ale", 2, 3), "call-1")], ["wrong_price"]),
        ([intent_to(Serve("ale", -5, -5), "call-1")], ["not_on_menu"]),
        ([intent_to(Serve("swan", 1), "call-1")], ["not_on_menu"]),
        ([intent_to(Rent("chamber", 12), "call-1")] + [intent_to(Serve("wine", 3), "call-2")] * 3, ["purse_short"]),
        ([Intent(IntentType.TOOL_RESULT, "call-1", {"act": "burn_down"})], ["unknown_act"]),
        ([Intent(IntentType.DECISION, "somebody")], ["unknown_act"]),
        ([intent_to(Rent("garden", 5), "call-1"), intent_to(Serve("ale", 1), "call-2")], []),
        ([intent_to(TellRumour(), "call-1")], []),
        ([], []),
    ],
)
def test_rules_judge_a_turn_as_a_whole(intents: list[Intent], codes: list[str]) -> None:
    assert [issue.code for issue in judged(*intents)] == codes


# -- the tools, whatever a model may ask for


def context() -> ToolContext:
    return ToolContext("s", "t", "call-1", JsonWorld(cast("JsonValue", opening_hour())), reserve_intent=lambda _: True)


async def asked(tool: Tool, arguments: dict[str, JsonValue], of: ToolContext | None = None) -> ToolReturn:
    answer = await tool.run(tool.read_arguments(arguments), of or context())
    assert isinstance(answer, ToolReturn)
    return answer


async def test_a_room_that_does_not_exist_is_a_tool_error() -> None:
    with pytest.raises(ToolError, match="no such room"):
        await asked(rent_room, {"room": "cellar"})


async def test_a_dish_that_does_not_exist_is_a_tool_error() -> None:
    with pytest.raises(ToolError, match="does not have that"):
        await asked(serve_order, {"dish": "swan"})
    with pytest.raises(ToolError, match="no number"):
        await asked(serve_order, {"dish": "ale", "count": -5})
    with pytest.raises(ToolError, match="no free room at that price"):
        await asked(rent_room, {"price": 3})


async def test_an_order_of_several_things_stages_all_or_nothing() -> None:
    taking = context()
    with pytest.raises(ToolError, match="does not have that"):
        await asked(take_order, {"rooms": ["attic"], "dishes": {"ale": 1, "swan": 1}}, taking)
    assert taking.staged == ()
    await asked(take_order, {"rooms": ["finest"], "dishes": {"ale": 2}}, taking)
    assert list(map(act_of, taking.staged)) == [Rent("chamber", 12), Serve("ale", 2, 2)]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (rent_room, {"room": 3}),
        (rent_room, {"room": ["attic"]}),
        (rent_room, {"price": "2"}),
        (serve_order, {}),
        (serve_order, {"dish": None}),
        (check_rooms, {"floor": 1}),
    ],
)
async def test_what_makes_no_sense_is_a_tool_error(tool: Tool, arguments: dict[str, JsonValue]) -> None:
    with pytest.raises(ToolError, match="argument"):
        await asked(tool, arguments)


async def test_looking_at_the_book_asks_for_nothing() -> None:
    looking = context()
    answer = await asked(check_rooms, {}, looking)
    assert answer.summary == "3 free, 1 taken"
    assert looking.staged == ()


def test_an_offer_is_passed_on_as_it_was_made() -> None:
    _, call = innkeeper(Prompt("I'll take the great chamber for only 3 coins", tools=(ToolOffer("rent_room", ""),)))
    assert call == Call("rent_room", {"room": "chamber", "price": 3})


@pytest.mark.parametrize("said", ["attic", "The attic.", "the attic, please", "Gable room", "the great chamber!"])
def test_a_room_called_by_its_name_is_a_room_to_be_rented(said: str) -> None:
    _, call = innkeeper(Prompt(said, tools=(ToolOffer("rent_room", ""),)))
    assert isinstance(call, Call)
    assert call.tool_name == "rent_room"
    assert call.arguments["room"] in ("attic", "gable", "chamber")
