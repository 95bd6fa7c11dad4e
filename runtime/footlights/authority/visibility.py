"""World visibility: the part of the world that one user of a server may see.

All users of a stage share one world, but not every user may see all of it. A server shows the world through the cast's
`visibility`, a pure function of the world's view and the user:

    def fog_of_war(view: Any, user: User) -> Any:
        shown = own_approvals(view, user)
        return shown if user.operator else {**shown, "treasure": "somewhere"}

    cast = standard_cast(model, world=..., visibility=fog_of_war)

It restricts only what a server shows. Rules, tools and personas see the whole world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import field, frozen

from footlights.authority import patch
from footlights.authority.pending import APPROVALS
from footlights.authority.values import View
from footlights.authority.world import amended
from footlights.ids import owner_of

if TYPE_CHECKING:
    from footlights.events import JsonValue


@frozen
class User:
    """A user of a server. The anonymous user of a server without tokens has no name."""

    name: str | None = None
    operator: bool = field(default=False, eq=False)
    """Whether this user operates the server, and may see the whole world."""
    game_server: bool = field(default=False, eq=False)
    """Whether this user is a program that acts for many players, and is exempt from limits per user."""


Visibility: TypeAlias = Callable[[Any, User], Any]
"""The part of a world's view that this user may see. It must be as pure as a rule; its errors are not shown."""


def own_approvals(view: Any, user: User) -> Any:
    """Everything, except the pending approvals and the notebooks of other users.

    An operator sees all of them, and so does the anonymous user, who owns all sessions.
    """
    if user.operator or user.name is None:
        return view
    return _own_notes(_own_pending(view, user), user)


def _own_notes(view: Any, user: User) -> Any:
    match view:
        case {"notes": Mapping()}:
            held: Mapping[str, object] = view["notes"]
            own = {owner: each for owner, each in held.items() if owner_of(owner) == user.name or not is_notebook(each)}
            return view if len(own) == len(held) else _with(view, "notes", own)
        case _:
            return view


def is_notebook(entry: object) -> bool:
    """Whether this has the form of a notebook; `notes` of a game without notebooks may hold anything."""
    return isinstance(entry, Mapping) and set(cast("Mapping[str, object]", entry)) == {"agreed", "written", "kept"}


def _with(view: Any, name: str, value: object) -> Any:
    if isinstance(view, View):
        return amended(view, patch.replace(f"/{name}", cast("JsonValue", value)))
    return {**view, name: value}


def _own_pending(view: Any, user: User) -> Any:
    match view:
        case {"approvals": {"pending": Mapping()}}:
            held: Mapping[str, Mapping[str, str]] = view[APPROVALS]["pending"]
            own = {id_: each for id_, each in held.items() if owner_of(each["session_id"]) == user.name}
            if len(own) == len(held):
                return view
            return _with(view, APPROVALS, {**view[APPROVALS], "pending": own})
        case _:
            return view
