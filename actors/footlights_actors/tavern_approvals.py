"""What the tavern does only when the traveller has said so: part with its lantern.

Selling it is the one act that cannot be made good. So whoever asks for it, it waits, and the traveller decides in a
turn of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.authority import Ruling, accept, patch, pending_approvals, refuse, with_approvals
from footlights.prompts import Fact
from footlights_actors.tavern_rules import TAVERN_RULES, SellLantern, act_of
from footlights_actors.tavern_world import GUEST, LANTERN_PRICE, Tavern, coins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.authority import Intent, Rule

LANTERN_QUESTION = f"Buy the lantern of the house for {coins(LANTERN_PRICE)}?"


def lantern(tavern: Tavern, intents: tuple[Intent, ...]) -> Ruling:
    """It is sold once, at its price."""
    sales = [intent for intent in intents if isinstance(act_of(intent), SellLantern)]
    if not sales:
        return accept()
    if len(sales) > 1 or "lantern" in tavern:
        return refuse("lantern_sold", "There is only one lantern, and it is sold.", sales[-1].ref)
    if act_of(sales[0]) != SellLantern(LANTERN_PRICE):
        return refuse("wrong_price", f"The price of the lantern is {coins(LANTERN_PRICE)}.", sales[0].ref)
    return accept(patch.add("/lantern", GUEST))


def needs_approval(_: Tavern, intent: Intent) -> str | None:
    """What the traveller is asked before this is done."""
    return LANTERN_QUESTION if isinstance(act_of(intent), SellLantern) else None


def waiting(tavern: Tavern) -> list[Fact]:
    """What the innkeeper knows of what the traveller has not answered."""
    return [Fact("Waits for the traveller's word", each.question) for each in pending_approvals(tavern)]


HOUSE_RULES: Mapping[str, Rule] = with_approvals({**TAVERN_RULES, "lantern": lantern}, needs_approval)
"""All rules of the tavern."""
