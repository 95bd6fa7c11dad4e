"""The ferryman: what he knows, says and does, and the rule that decides what becomes true."""

import re
from collections.abc import Iterable
from typing import Any

from footlights import Fact, Intent, IntentType, Prompt, Speaker, ToolContext, ToolError, ToolReturn, tool
from footlights.authority import Ruling, accept, patch, refuse
from footlights_actors import Call, Line, Say

FARE = 2
BANKS = ("north", "south")


def known(world: Any, speaker: Speaker) -> list[Fact]:
    """His facts: the part of the world that a model gets with each prompt."""
    return [Fact("The boat", f"lies at the {world['boat']} bank"), Fact("The fare", f"{FARE} coins")]


@tool
async def row(bank: str, context: ToolContext) -> ToolReturn:
    """Row the traveller to a bank of the river: north or south."""
    if bank not in BANKS:
        raise ToolError("The river has a north bank and a south bank.")
    # A tool asks; only a rule changes the world.
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, {"row": bank}))
    return ToolReturn({"bank": bank}, f"to the {bank} bank")


def crossing(world: Any, intents: tuple[Intent, ...]) -> Ruling:
    """A crossing leads to the other bank and costs the fare, once a turn."""
    # A rule sees the intents of all tools: pick yours.
    banks = [it.payload["row"] for it in intents if isinstance(it.payload, dict) and "row" in it.payload]
    if not banks:
        return accept()
    if len(banks) > 1:
        return refuse("one_crossing", "One crossing at a time.")
    if banks[0] == world["boat"]:
        return refuse("already_there", f"The boat is at the {banks[0]} bank already.")
    if world["purse"] < FARE:
        return refuse("no_fare", f"A crossing costs {FARE} coins, and the purse has {world['purse']}.")
    return accept(patch.replace("/boat", banks[0]), patch.replace("/purse", world["purse"] - FARE))


def ferryman(prompt: Prompt) -> Iterable[Line]:
    """His script, in place of a model: a prompt in, words and calls of tools out."""
    if prompt.exchanges:  # a tool has answered
        answer = prompt.exchanges[-1]
        if answer.error:
            return [Say(f" No. {answer.error}")]
        if answer.request.tool_name == "row":
            return [Say(" Sit still, and mind the oars. There. Watch your step.")]
        return [Say(" Done.")]
    said = prompt.user.casefold()
    if said.startswith("remember that ") and any(tool.name == "remember" for tool in prompt.tools):
        return [Say("If you let me, I shall."), Call("remember", {"note": prompt.user[14:]})]
    bank = re.search(r"\b(north|south|east|west)\b", said)
    if bank:
        return [Say(f"To the {bank[1]} bank, then."), Call("row", {"bank": bank[1]})]
    if re.match(r"(yes|no|aye|nay)\b", said):  # also after an approval that was asked for with y or n
        return [Say("So be it.")]
    if re.search(r"\b(cost|fare|much|price|coins?)\b", said):
        return [Say(f"{FARE} coins for the crossing. The river does not bargain, and neither do I.")]
    if re.search(r"\b(cross|across|ferry|row|over|river|boat)\b", said):
        return [Say("To the north bank or the south bank? Say it, and I row.")]
    return [Say("I row, and I listen. Ask me what it costs, or tell me which bank: north or south.")]
