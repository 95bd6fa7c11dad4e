"""Note entries: which notes exist, as the world holds them under `/notes`, and the rule that writes them.

    /notes/bob/agreed       whether Bob gave a standing yes
    /notes/bob/written      how many turns have noted something
    /notes/bob/kept/ID      {"by": "innkeeper", "about": "player", "length": 31, "number": 4}

An entry has no word of its note and no digest of one. The id of a note has the id of the turn that proposed it, a
digest of its session's, and the number of the call. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from attrs import frozen

from footlights.authority import patch
from footlights.authority.approvals import with_held
from footlights.authority.intents import Intent, IntentType
from footlights.authority.pending import pending_approvals
from footlights.authority.rules import Rule, Ruling, accept, refuse
from footlights.authority.values import View
from footlights.authority.visibility import is_notebook
from footlights.authority.world import digest_of, find_in
from footlights.errors import RegistrationError
from footlights.ids import HOST, OPERATOR, epoch_of_session, owner_of
from footlights.notebooks.note_ids import ABOUT_A_NOTE, is_note_id, turn_of

if TYPE_CHECKING:
    from footlights.authority.patch import PatchOp
    from footlights.authority.pending import PendingApproval
    from footlights.events import JsonValue
    from footlights.speaker import Speaker

NOTES = "notes"
"""The name of the rule that keeps entries, and of their member in the world."""
ABOUTS = ("player", "world")
"""What a note may be about."""

_PLAYER_ID = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}(:[A-Za-z0-9._@-]{1,64})?")


@frozen
class NoteEntry:
    """A note that exists, without its words."""

    note_id: str
    owner: str
    """Whose notebook it is in."""
    by: str
    """The persona that remembers it."""
    about: str
    """`player` or `world`."""
    length: int
    """In characters."""
    number: int = 0
    """How many turns had noted something for this owner, with the one of the entry; 0 while it waits."""

    @property
    def turn_id(self) -> str:
        """The turn that proposed it."""
        return turn_of(self.note_id)

    @property
    def intent(self) -> Intent:
        """The request to keep it, as a tool stages it."""
        told: dict[str, JsonValue] = {"by": self.by, "about": self.about, "length": self.length}
        return Intent(IntentType.TOOL_RESULT, self.note_id, {"note_id": self.note_id, "owner": self.owner, **told})


def notebook_owner(speaker: Speaker) -> str | None:
    """The owner of this player's notebook: a user, or a session that was named; None if there is no name.

    If the host tells an `id` in `about`, the notebook is that player's. An `id` that is null or malformed is nobody's.
    """
    return _owner(speaker.session_id, speaker.about)


def _owner(session_id: str, about: Mapping[str, Any]) -> str | None:
    if epoch_of_session(session_id) is not None or session_id in (HOST, OPERATOR):
        return None
    match about:
        case {"id": str(id_)} if _PLAYER_ID.fullmatch(id_):
            return f"{owner_of(session_id)}:{id_}"
        case {"id": _}:
            return None
        case _:
            return owner_of(session_id)


def check_notes(view: object) -> None:
    """Raises `RegistrationError` if `/notes` of a world holds anything but notebooks."""
    for held in find_in(view, f"/{NOTES}") if isinstance(view, Mapping) else ():
        members = cast("Mapping[str, Any]", held) if isinstance(held, Mapping) else {"": None}
        if not all(map(is_notebook, members.values())):
            raise RegistrationError("The member notes of the world is reserved for notebooks. Give yours another name.")


def kept_notes(view: object, owner: str) -> list[NoteEntry]:
    """The notes in this notebook, the oldest first."""
    kept = _notebook(view, owner).get("kept", {})
    entries = (
        NoteEntry(id_, owner, each["by"], each["about"], each["length"], each["number"]) for id_, each in kept.items()
    )
    return sorted(entries, key=lambda entry: (entry.number, entry.note_id))


def notebook_mark(view: object, owner: str) -> object:
    """A value that differs whenever other notes are kept; None if there are none. Cheap, also for many notes."""
    kept = _notebook(view, owner).get("kept", {})
    return (digest_of(kept) if isinstance(kept, View) else dict(kept)) if kept else None


def waiting_notes(view: object, owner: str) -> dict[str, NoteEntry]:
    """The notes of this owner that wait for his approval, by the id of the approval."""
    return {id_: note for id_, note in all_waiting(view).items() if note.owner == owner}


def all_waiting(view: object) -> dict[str, NoteEntry]:
    """The notes of all owners that wait for an approval, by the id of the approval."""
    asked = ((each.id, _note_in(each.intent)) for each in pending_approvals(view))
    return {id_: note for id_, note in asked if note is not None}


def has_agreed(view: object, owner: str) -> bool:
    """Whether this owner gave a standing yes."""
    return _notebook(view, owner).get("agreed", False) is True


def host_act(act: str, owner: str) -> Intent:
    """A request of the host about a notebook: `agree`, `withdraw` or `erase`."""
    return Intent(IntentType.DECISION, f"notebook:{act}", {"notebook": owner, "act": act})


def with_notes(rules: Mapping[str, Rule], *, consent: bool, max_notes: int) -> dict[str, Rule]:
    """The same rules, and the one that keeps entries: each after an approval, or after a standing yes with `consent`.

    Raises `RegistrationError` if a rule has the name `notes`.
    """

    def needs(view: object, intent: Intent) -> str | None:
        note = _note_in(intent)
        if note is None or (consent and has_agreed(view, note.owner)):
            return None
        return f"{ABOUT_A_NOTE}{note.note_id}?"

    return with_held(rules, NOTES, _NoteRule(max_notes), needs, _may_answer)


def _may_answer(approval: PendingApproval, session_id: str, about: Mapping[str, Any]) -> bool:
    """Whether a player may answer: for a note, the one that it is about. A game server speaks for many of them."""
    note = _note_in(approval.intent)
    return note is None or note.owner == _owner(session_id, about)


@frozen
class _NoteRule:
    max_notes: int

    def __call__(self, view: Any, intents: tuple[Intent, ...]) -> Ruling:
        changes: list[PatchOp] = []
        counts: dict[str, int] = {}
        made: set[str] = set()
        for intent in intents:
            note, act = _note_in(intent), act_in(intent) if intent.session_id == HOST else None
            if note is not None:
                owner, notebook = note.owner, _notebook(view, note.owner)
                if owner_of(owner) != owner_of(intent.session_id):
                    return refuse("note_of_another", "A note is about the player who speaks.", note.note_id)
                number = notebook.get("written", 0) + 1
                if owner not in counts:
                    counts[owner] = len(notebook.get("kept", {}))
                    changes += [*_made(view, owner, made), patch.replace(f"/{NOTES}/{owner}/written", number)]
                counts[owner] += 1
                if counts[owner] > self.max_notes:
                    return refuse("notebook_full", f"A notebook has at most {self.max_notes} notes.", note.note_id)
                told = {"by": note.by, "about": note.about, "length": note.length, "number": number}
                changes.append(patch.add(f"/{NOTES}/{owner}/kept/{note.note_id}", told))
            elif act is not None:
                if not _OWNER.fullmatch(act[0]):
                    return refuse("notebook_unknown", "Nobody of that name can have a notebook.", intent.ref)
                changes += _done(view, *act, made)
        return accept(*changes)


def _done(view: object, owner: str, act: str, made: set[str]) -> list[PatchOp]:
    if act != "erase":
        return [*_made(view, owner, made), patch.replace(f"/{NOTES}/{owner}/agreed", act == "agree")]
    return [patch.remove(f"/{NOTES}/{owner}")] if _notebook(view, owner) or f"/{NOTES}/{owner}" in made else []


def _made(view: object, owner: str, made: set[str]) -> list[PatchOp]:
    """Changes that add what an entry of this owner is written into, unless it is there or `made` by this ruling."""
    parts: dict[str, JsonValue] = {
        f"/{NOTES}": {},
        f"/{NOTES}/{owner}": {"agreed": False, "written": 0, "kept": {}},
    }
    missing = [path for path in parts if path not in made and not find_in(view, path)]
    made.update(missing)
    return [patch.add(path, parts[path]) for path in missing]


def _notebook(view: object, owner: str) -> Mapping[str, Any]:
    found = find_in(view, f"/{NOTES}/{owner}") if isinstance(view, Mapping) else ()
    return cast("Mapping[str, Any]", found[0]) if found and isinstance(found[0], Mapping) else {}


def _note_in(intent: Intent) -> NoteEntry | None:
    match intent.payload:
        case {"note_id": str(id_), "owner": str(owner), "by": str(by), "about": str(about), "length": int(length)}:
            is_note = is_note_id(id_) and about in ABOUTS and _OWNER.fullmatch(owner)
            return NoteEntry(id_, owner, by, about, length) if is_note else None
        case _:
            return None


def act_in(intent: Intent) -> tuple[str, str] | None:
    """The owner and the act in a request about a notebook, which is done for the host alone; None for any other."""
    match intent.payload:
        case {"notebook": str(owner), "act": "agree" | "withdraw" | "erase" as act}:
            return owner, act
        case _:
            return None
