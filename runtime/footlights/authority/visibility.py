"""World visibility: what one user of a server may see of the world.

A stage has one world, and every user plays in it, but not every user may look at all of it. A server shows it through
the cast's `visibility`, a pure function of the world and of the user who asks:

    def fog_of_war(view: Any, user: User) -> Any:
        shown = own_approvals(view, user)
        return shown if user.operator else {**shown, "treasure": "somewhere"}

    cast = standard_cast(model, world=..., visibility=fog_of_war)

It decides only what is shown. Rules, tools and personas see the whole world; what they tell is theirs to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from attrs import field, frozen

from footlights.authority.pending import APPROVALS, owner_of


@frozen
class User:
    """The user who asks. The anonymous user of a server without tokens has no name."""

    name: str | None = None
    operator: bool = field(default=False, eq=False)
    """Whether this user runs the server, and may see the whole world."""
    game_server: bool = field(default=False, eq=False)
    """Whether this user is a program that speaks for many players, which no limit of one user fits."""


Visibility: TypeAlias = Callable[[Any, User], Any]
"""What this user may see of a world that looks like this. As pure as a rule; what it raises is shown to nobody."""


def own_approvals(view: Any, user: User) -> Any:
    """Everything, but of the acts that wait for an answer only those that this user asked for.

    An operator sees all of them, and so does the anonymous user, because all sessions are its own.
    """
    if user.operator or user.name is None or not isinstance(view, dict):
        return view
    world = cast("dict[str, Any]", view)
    match world.get(APPROVALS):
        case {"pending": dict()}:
            kept = cast("dict[str, dict[str, dict[str, str]]]", world[APPROVALS])
            own = {id_: each for id_, each in kept["pending"].items() if owner_of(each["session_id"]) == user.name}
            return {**world, APPROVALS: {**kept, "pending": own}}
        case _:
            return world
