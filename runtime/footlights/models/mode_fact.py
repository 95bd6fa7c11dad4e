"""Fact about the mode of a turn: what a model is told of what it may do, and of what was not done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.models.prompts import Fact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights.events import JsonValue

NAME = "This turn"


def mode_fact(decision: Mapping[str, JsonValue] | None, tools: Sequence[str]) -> Fact:
    """The fact, from the record of the decision and the names of the tools that the persona has.

    A turn without a record is a chat, and what would allow more depends on who began it.
    """
    have = f"Your tools: {', '.join(tools)}." if tools else "You have no tools."
    if decision is not None and decision["mode"] == "execution":
        return Fact(NAME, f"execution. {have} Only what a tool has returned in this turn was done.")
    could = f" With leave you could use: {', '.join(tools)}." if tools else f" {have}"
    asked = how = ""
    if decision is not None:
        asked = " The player asked for work." if decision["candidate"] == "execution_candidate" else ""
        how = ' The player gives leave by sending the request with execution_policy "auto".' if tools else ""
    return Fact(NAME, f"chat. Nothing was run, and nothing can be.{asked}{could}{how} Claim no results.")
