"""Approval in the tavern: the lantern is sold only after the player's approval.

The sale is the one act that cannot be undone. So it is held, and the player decides in a turn of its own. Until then no
other session can buy the lantern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.authority import Ruling, accept, patch, pending_approvals, refuse, same_owner, with_approvals
from footlights.ids import epoch_of_session
from footlights.models.prompts import Fact
from footlights_actors.demo.tavern.offers import question_about
from footlights_actors.demo.tavern.rules import TAVERN_RULES, SellLantern, act_of
from footlights_actors.demo.tavern.world import GUEST, LANTERN_PRICE, Tavern, coins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.authority import Intent, PendingApproval, Rule

MAX_FACTS = 3
WAITING = "Waits for the traveller's word"
LANTERN_QUESTION = f"Buy the lantern of the house for {coins(LANTERN_PRICE)}?"


def lantern(tavern: Tavern, intents: tuple[Intent, ...]) -> Ruling:
    """The lantern is sold once, at its price."""
    sales = [intent for intent in intents if _is_sale(intent)]
    if not sales:
        return accept()
    if len(sales) > 1 or "lantern" in tavern:
        return refuse("lantern_sold", "There is only one lantern, and it is sold.", sales[-1].ref)
    if any(_is_sale(each.intent) and each.id != sales[0].ref for each in pending_approvals(tavern)):
        return refuse("lantern_promised", "Somebody was asked about the lantern, and has not answered.", sales[0].ref)
    if act_of(sales[0]) != SellLantern(LANTERN_PRICE):
        return refuse("wrong_price", f"The price of the lantern is {coins(LANTERN_PRICE)}.", sales[0].ref)
    return accept(patch.add("/lantern", GUEST))


def needs_approval(tavern: Tavern, intent: Intent) -> str | None:
    """The question about a sale of the lantern, or about an act that a model chose."""
    return LANTERN_QUESTION if _is_sale(intent) else question_about(tavern, intent)


def _is_sale(intent: Intent) -> bool:
    return isinstance(act_of(intent), SellLantern)


def may_answer(approval: PendingApproval, session_id: str) -> bool:
    """The owner that asked. For a session without a name of an earlier epoch, any session without a name."""
    asked_in, answered_in = epoch_of_session(approval.session_id), epoch_of_session(session_id)
    is_gone = asked_in is not None and answered_in is not None and asked_in < answered_in
    return is_gone or same_owner(approval, session_id)


def waiting(tavern: Tavern) -> list[Fact]:
    """Facts of the innkeeper about pending approvals: only as many as fit into a prompt."""
    oldest = pending_approvals(tavern)[:MAX_FACTS]
    return [Fact(WAITING, each.question) for each in oldest]


HOUSE_RULES: Mapping[str, Rule] = with_approvals({**TAVERN_RULES, "lantern": lantern}, needs_approval, may_answer)
"""All rules of the tavern."""
