"""What the analyst says: the state of the house, from the facts that it is given and nothing else.

Asked about one of them by its name, it reports that one; asked about anything else, all of them. The same words in the
same world always get the same answer, and nothing that the player said is repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.prompts import Fact
from footlights_actors.scripted import Line, Say
from footlights_actors.tavern_world import Tavern, coins

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.models import Prompt

ANALYST = "You keep the accounts of the Mended Lantern. You report what is written here, briefly, and change nothing."
"""One line, because every line after it is a fact."""


def accounts(tavern: Tavern) -> list[Fact]:
    """What the analyst knows of the house, the most important first."""
    rooms = tavern["rooms"].values()
    let = sum(room["guest"] is not None for room in rooms)
    open_for = sum(room["price"] for room in rooms if room["guest"] is None)
    return [
        Fact("Till", coins(tavern["till"])),
        Fact("Rooms", f"{let} of {len(rooms)} let, the others worth {coins(open_for)} a night"),
        Fact("Purse of the traveller", coins(tavern["purse"])),
        Fact("Rumours told", str(tavern["rumours_told"])),
    ]


def analyst(prompt: Prompt) -> Iterable[Line]:
    """The script: see `footlights_actors.ScriptedModel`."""
    words = prompt.user.casefold()
    facts = prompt.system.splitlines()[1:]
    asked_for = [fact for fact in facts if fact.casefold().split()[0].rstrip("s:") in words]
    return [Say(f"{'. '.join(asked_for or facts)}.")]
