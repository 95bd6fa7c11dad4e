"""Script of the innkeeper: understands a line, calls the tools that it asks for, and words what they returned.

`understanding` says what a line wants, `calls_for` which tools do it, `house` what is known of the world, and `wording`
what the innkeeper says. The same input in the same world always gives the same answer. The innkeeper never repeats the
player's text and promises nothing, because only a commit decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.modes import Activity, Classification, Condition, IntentKind
from footlights_actors.demo.tavern.house import House
from footlights_actors.demo.tavern.topics import Topic
from footlights_actors.demo.tavern.understanding import understand
from footlights_actors.demo.tavern.wishes import BuyLantern, HearRumour, Order, Rent
from footlights_actors.demo.tavern.wording import ONLY_TALKING, answer, closing, opening
from footlights_actors.models.scripted import Call, Line, Say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from footlights.events import JsonValue
    from footlights.models.model import Prompt
    from footlights.modes import Intent
    from footlights_actors.demo.tavern.wishes import Act, Purchase

_LOOKED_UP = frozenset({Topic.ROOMS, Topic.UNNAMED_ROOM, Topic.COMPANY})
"""Topics for which he looks into the book, if he may."""


def innkeeper(prompt: Prompt) -> Iterable[Line]:
    """The script: see `footlights_actors.ScriptedModel`."""
    heard, house = understand(prompt.user), House.of(prompt.system)
    if prompt.exchanges:
        return [Say(" " + closing(heard, prompt.exchanges, house))]
    calls = calls_for(heard.acts)
    offered = {offer.name for offer in prompt.tools}
    if not calls and heard.topic in _LOOKED_UP and "check_rooms" in offered:
        return [Say("Let me look at the book."), Call("check_rooms")]
    said = [] if heard.topic is Topic.ACTS else [answer(heard, house, prompt.user)]
    if not calls:
        return [Say(*said)]
    if not all(call.tool_name in offered for call in calls):
        return [Say(ONLY_TALKING)]
    return [Say(" ".join([*said, opening(heard.acts)])), *calls]


def calls_for(acts: Sequence[Act]) -> list[Call]:
    """The tool calls that do these acts. Several purchases are one call, so that a turn makes all of them or none.

        calls_for(understand("two ales").acts)    # [Call("serve_order", {"dish": "ale", "count": 2})]

    Together with `understand` it maps a player's words to tools, for any model that plays the innkeeper.
    """
    rumours = [Call("recall_rumour") for act in acts if isinstance(act, HearRumour)]
    purchases = [act for act in acts if not isinstance(act, HearRumour)]
    if len(purchases) < 2:
        return [*map(_call, purchases), *rumours]
    arguments: dict[str, JsonValue] = {
        "rooms": [act.room for act in purchases if isinstance(act, Rent)],
        "dishes": {act.dish: act.count for act in purchases if isinstance(act, Order)},
        "lantern": any(isinstance(act, BuyLantern) for act in purchases),
    }
    return [Call("take_order", arguments), *rumours]


def _call(act: Purchase) -> Call:
    match act:
        case Rent(room, offer, at_most):
            return _given("rent_room", room=room, price=offer, at_most=at_most)
        case Order(dish, count, offer):
            return _given("serve_order", dish=dish, count=count, price=offer)
        case BuyLantern(offer):
            return _given("sell_lantern", price=offer)


def _given(tool_name: str, **arguments: JsonValue) -> Call:
    return Call(tool_name, {name: value for name, value in arguments.items() if value is not None})


class AsksForWork:
    """Classifier of requests to the innkeeper: a line that needs one of his tools asks for execution."""

    id = "tavern.innkeeper:1"

    def classify(self, message: str, intent: Intent) -> Classification | None:
        """Execution if the line has acts; otherwise the standard rules decide."""
        if intent.kind is IntentKind.EXECUTION or not understand(message).acts:
            return None
        return Classification(
            kind=IntentKind.EXECUTION, activities=(Activity.TOOL,), conditions=(Condition.TOOLS_NEEDED,)
        )
