"""Notebooks of a cast: the tool `remember`, what of the notes gets into a prompt, and what their owner may ask for.

    notebooks = Notebooks(store)
    cast = standard_cast(model, notebooks=notebooks)

The world says which notes exist, and the store has their words. A note is in both, or it is nowhere: words are stored
before the intent is staged, and words without an entry are never shown, and swept.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from copy import copy
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, evolve, field, frozen

from footlights.authority.approvals import MAX_PENDING, MAX_PENDING_OF_ONE, decisions
from footlights.authority.pending import pending_approvals
from footlights.errors import FootlightsError, InvalidCommand, RegistrationError, ToolError
from footlights.extras import name_extra
from footlights.ids import epoch_and_number, owner_of
from footlights.models.prompts import Fact
from footlights.notebooks.entries import (
    ABOUTS,
    NoteEntry,
    all_waiting,
    has_agreed,
    host_act,
    kept_notes,
    notebook_mark,
    notebook_owner,
    waiting_notes,
    with_notes,
)
from footlights.notebooks.limits import NotebookLimits
from footlights.notebooks.note_ids import REMEMBER, is_note_id, note_id_of, turn_of
from footlights.notebooks.recall import NoteIndex, recall
from footlights.redaction.secret_filter import SecretFilter
from footlights.tools.tool import SideEffects, Tool, ToolReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights.authority.rules import Rule
    from footlights.cast import Cast
    from footlights.events import JsonValue
    from footlights.notebooks.store import NoteStore
    from footlights.redaction.screen import OutputFilter
    from footlights.speaker import Speaker
    from footlights.stage.stage import Stage
    from footlights.tools.tool import ToolContext

MAX_WAITING = 3
"""Notes of one owner that may wait for his answer."""
MAX_OPEN_INDEXES = 256
"""Indexes that are kept in memory; the one that was used least recently is made anew when it is needed."""
_NOTES_BETWEEN_CHECKPOINTS = 50
_STEMS = 20_000
"""Words whose stems are kept, because finding one takes longer than everything else about a word."""
_DESCRIPTION = (
    "Propose a note to remember after this conversation: one short sentence, about the player or about the world. "
    "The player decides whether it is kept."
)

log = logging.getLogger("footlights.notebooks")


@frozen
class Note:
    """A note with its words, for its owner."""

    entry: NoteEntry
    words: str = field(repr=False)
    approval_id: str | None = None
    """The id of the approval that it waits for; None if it is kept."""

    @property
    def document(self) -> dict[str, JsonValue]:
        """The note as plain JSON."""
        entry = self.entry
        told = {"note_id": entry.note_id, "by": entry.by, "about": entry.about, "turn_id": entry.turn_id}
        return {**told, "words": self.words, **({"approval_id": self.approval_id} if self.approval_id else {})}


@define
class _Unsettled:
    owner: str
    turn: tuple[str, str]
    """The ids of its session and its turn."""
    erased_in: Stage | None = None
    """The stage whose host erased the notebook while the turn was open: the note is denied when it waits."""
    has_ended: bool = False
    """Whether the turn is settled. Its note may wait for an approval then."""


class Notebooks:
    """The notebooks of one game. `consent` lets players give a standing yes; without it each note is asked for.

    `language` is the one that notes are in: the name of a Snowball algorithm. Raises `RegistrationError` for another.
    What `secrets` finds is not noted; by default all that redaction knows. It needs the extra `content`.
    """

    def __init__(
        self,
        store: NoteStore,
        *,
        consent: bool = False,
        limits: NotebookLimits | None = None,
        language: str = "english",
        secrets: OutputFilter | None = None,
    ) -> None:
        self.store = store
        self.consent = consent
        self.limits = limits or NotebookLimits()
        self._secrets = secrets or SecretFilter()
        self._stem = _stemmer(language)
        self._opened: OrderedDict[tuple[str, str], tuple[object, NoteIndex]] = OrderedDict()
        self._unsettled: dict[str, _Unsettled] = {}
        """Notes that were sealed here, until it is known what became of them."""
        self._news = trio.Event()

    def in_cast(self, cast: Cast, store: NoteStore) -> Cast:
        """The same cast, with notes in another store, for another stage: each stage needs a store of its own."""
        another = copy(self)
        another.store, another._opened, another._unsettled = store, OrderedDict(), {}
        another._news = trio.Event()
        return evolve(cast, notebooks=another, tools={**cast.tools, REMEMBER: another.tool()})

    # -- parts of a cast

    def rules(self, rules: Mapping[str, Rule]) -> dict[str, Rule]:
        """The rules of the game, with the one that keeps entries."""
        return with_notes(rules, consent=self.consent, max_notes=self.limits.max_notes)

    def tool(self) -> Tool:
        """The tool `remember`."""
        text: dict[str, JsonValue] = {"type": "string", "maxLength": self.limits.max_note_chars}
        about: dict[str, JsonValue] = {"type": "string", "enum": list(ABOUTS)}
        return Tool(
            name=REMEMBER,
            run=self._remember,
            description=_DESCRIPTION,
            parameters={"type": "object", "properties": {"note": text, "about": about}, "required": ["note"]},
            cancel_safe=True,
            side_effects=SideEffects.NONE,  # a sealed note without an entry is nothing
        )

    async def _remember(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolReturn:
        owner = notebook_owner(context.speaker)
        if owner is None:
            raise ToolError("Nothing is remembered of a player without a name.")
        words, about = self._checked(arguments)
        known = [each.words for each in await self.notes(context.world, owner) if each.entry.by == context.persona]
        if words.casefold() in map(str.casefold, known):
            raise ToolError("That is in the notebook already, or waits for an answer.")
        self._check_room(context, owner)
        note_id = note_id_of(context.session_id, context.turn_id, context.tool_call_id.removeprefix("call-"))
        entry = NoteEntry(note_id, owner, context.persona, about, len(words))
        self._unsettled[note_id] = _Unsettled(owner, (context.session_id, context.turn_id))
        await self.store.seal(owner, note_id, words)
        context.request_commit(entry.intent)
        return ToolReturn({"note_id": note_id}, "a note")

    def _check_room(self, context: ToolContext, owner: str) -> None:
        """Raises `ToolError` for a note that the rules would refuse, and the whole turn with it."""
        view, session_owner = context.world, owner_of(context.session_id)
        proposed = {id_: each for id_, each in self._unsettled.items() if not each.has_ended}
        waiting = all_waiting(view)
        own = {entry.note_id for entry in waiting.values() if entry.owner == owner}
        own |= {id_ for id_, each in proposed.items() if each.owner == owner}
        if len(kept_notes(view, owner)) + len(own) >= self.limits.max_notes:
            raise ToolError(f"The notebook is full: it has at most {self.limits.max_notes} notes.")
        if self.consent and has_agreed(view, owner):
            return
        if len(own) >= MAX_WAITING:
            raise ToolError(f"{MAX_WAITING} notes wait for an answer of the player. Ask for nothing more now.")
        asked = sum(owner_of(each.session_id) == session_owner for each in pending_approvals(view))
        asked += sum(owner_of(each.turn[0]) == session_owner for each in proposed.values())
        if len(waiting) + len(proposed) >= MAX_PENDING // 2 or asked >= MAX_PENDING_OF_ONE:
            raise ToolError("Too many questions wait for an answer. Nothing more can be noted now.")

    def _checked(self, arguments: Mapping[str, Any]) -> tuple[str, str]:
        note, about, longest = arguments.get("note"), arguments.get("about", ABOUTS[0]), self.limits.max_note_chars
        if not isinstance(note, str) or about not in ABOUTS or not set(arguments) <= {"note", "about"}:
            raise ToolError(f"A note has the text note, and about: {' or '.join(ABOUTS)}.")
        words = " ".join(note.split())  # one line, because each fact of a prompt is one
        if not 0 < len(words) <= longest or not words.isprintable():
            raise ToolError(f"A note has 1 to {longest} printable characters.")
        if self._secrets.find(words, ended=True).spans:
            raise ToolError("That may be a secret, and secrets are not remembered.")
        return words, about

    # -- in a turn

    def offers(self, tool_name: str, speaker: Speaker) -> bool:
        """Whether a model is offered this tool: `remember` only if the player has a notebook."""
        return tool_name != REMEMBER or notebook_owner(speaker) is not None

    async def recall(self, view: object, speaker: Speaker, persona: str, said: str) -> tuple[Fact, ...]:
        """The notes of this persona that fit what the player says, the best first: facts named by the ids of notes.

        None if the store cannot be read: a character that remembers nothing is better than one that is silent.
        """
        owner = notebook_owner(speaker)
        if owner is None:
            return ()
        mark = notebook_mark(view, owner)
        if mark is None:
            return ()
        try:
            index = await self._index(view, mark, owner, persona)
        except FootlightsError as error:
            log.warning("notes cannot be recalled: %s", error)
            return ()
        found = recall(index, said, half_life=self.limits.half_life, chars=self.limits.recall_chars)
        return tuple(Fact(id_, index.notes[id_]) for id_ in found)

    async def _index(self, view: object, mark: object, owner: str, persona: str) -> NoteIndex:
        key, now = (owner, persona), (await self.store.stamp(owner), mark)
        made_of, index = self._opened.pop(key, (None, NoteIndex(self._stem)))
        if made_of != now:
            words = await self.store.read(owner)
            there = [each for each in kept_notes(view, owner) if each.by == persona and each.note_id in words]
            if list(index.notes.items()) != [(each.note_id, words[each.note_id]) for each in there[: len(index.notes)]]:
                index = NoteIndex(self._stem)
            for place, each in enumerate(there[len(index.notes) :], 1):
                index.add(each.note_id, each.number, words[each.note_id])
                if not place % _NOTES_BETWEEN_CHECKPOINTS:
                    await trio.lowlevel.checkpoint()
        self._opened[key] = (now, index)
        while len(self._opened) > MAX_OPEN_INDEXES:
            self._opened.popitem(last=False)
        return index

    # -- for the owner

    async def notes(self, view: object, owner: str) -> list[Note]:
        """The notes that are kept, the oldest first, and then those that wait for the owner's answer."""
        kept, waiting = kept_notes(view, owner), waiting_notes(view, owner)
        words: Mapping[str, str] = await self.store.read(owner) if kept or waiting else {}
        found = [Note(entry, words[entry.note_id]) for entry in kept if entry.note_id in words]
        asked = ((id_, entry) for id_, entry in waiting.items() if entry.note_id in words)
        return found + [Note(entry, words[entry.note_id], id_) for id_, entry in asked]

    async def agree(self, stage: Stage, owner: str, *, agreed: bool) -> None:
        """Take down the standing yes of this owner, or take it back. Raises `InvalidCommand` without `consent`."""
        if not self.consent and agreed:
            raise InvalidCommand("This game asks for each note; it takes no standing yes.")
        if agreed is not has_agreed(stage.world, owner):
            await self._commit(stage, "agree" if agreed else "withdraw", owner)

    async def erase(self, stage: Stage, owner: str) -> int:
        """Erase the notebook, and what waits; returns how many notes that were. A standing yes ends with it.

        Raises `ContentUnavailable` if the words cannot be erased now. No note is shown any more all the same, and the
        words are erased when the game is opened again, or by the next call. A call that is cancelled erases
        all the same.
        """
        count = len(kept_notes(stage.world, owner)) + len(waiting_notes(stage.world, owner))
        with trio.CancelScope(shield=True):
            if count or has_agreed(stage.world, owner):
                await self._commit(stage, "erase", owner)
            for key in [key for key in self._opened if key[0] == owner]:
                del self._opened[key]
            for each in self._unsettled.values():
                if each.owner == owner:
                    each.erased_in = stage
            self._news.set()
            await self.store.erase(owner)
        return count

    async def _commit(self, stage: Stage, act: str, owner: str) -> None:
        waiting = waiting_notes(stage.world, owner) if act == "erase" else {}
        intents = [*decisions(dict.fromkeys(waiting, False)), host_act(act, owner)]
        commit = await stage.commit(intents, f"the player's notebook: {act}")
        if commit.issues:
            raise InvalidCommand(f"The notebook is as it was: {commit.issues[0].message}")

    # -- as a task of the stage

    def turn_settled(self, session_id: str, turn_id: str) -> None:
        """Called when a turn is settled: its notes are kept, or wait, or are nothing any more."""
        for each in self._unsettled.values():
            each.has_ended = each.has_ended or each.turn == (session_id, turn_id)
        if self._unsettled:
            self._news.set()

    async def run(self, view: Callable[[], Any], epoch: int) -> None:
        """Delete words without an entry, until cancelled: first those that an earlier epoch left.

        Notes of a later epoch are not touched: they belong to another ledger.
        """
        await self._contained(self._sweep_all, view, epoch)
        while True:
            await self._news.wait()
            self._news = trio.Event()
            await self._contained(self._sweep_settled, view)

    async def _contained(self, work: Callable[..., Any], *of: object) -> None:
        try:
            await work(*of)
        except FootlightsError as error:  # the next settled turn, or the next opening, tries again
            log.warning("notes that are not kept cannot be deleted: %s", error)

    async def _sweep_all(self, view: Callable[[], Any], epoch: int) -> None:
        for entry in all_waiting(view()).values():  # of an earlier epoch: a later answer decides about their words
            known = _Unsettled(entry.owner, ("", entry.turn_id), has_ended=True)
            self._unsettled.setdefault(entry.note_id, known)
        for owner in await self.store.owners():
            there = _ids(view(), owner)
            await self.store.sweep(owner, partial(_is_of, there, epoch))

    async def _sweep_settled(self, view: Callable[[], Any]) -> None:
        ended = {id_: each.owner for id_, each in self._unsettled.items() if each.has_ended}
        for owner in dict.fromkeys(ended.values()):
            there = _ids(view(), owner)
            gone = {id_ for id_, its_owner in ended.items() if its_owner == owner and id_ not in there}
            if gone:
                await self.store.sweep(owner, _all_but(gone))
            await self._deny_erased(view(), owner)
            waiting = {entry.note_id for entry in waiting_notes(view(), owner).values()}
            for id_ in ended.keys() - waiting:
                if ended[id_] == owner:
                    del self._unsettled[id_]

    async def _deny_erased(self, view: object, owner: str) -> None:
        for approval_id, entry in waiting_notes(view, owner).items():
            unsettled = self._unsettled.get(entry.note_id)
            if unsettled is not None and unsettled.erased_in is not None:
                denied = decisions({approval_id: False})
                await unsettled.erased_in.commit(denied, "the player's notebook was erased")


def _ids(view: object, owner: str) -> set[str]:
    waiting = waiting_notes(view, owner).values()
    return {entry.note_id for entry in (*kept_notes(view, owner), *waiting)}


def _all_but(gone: set[str]) -> Callable[[str], bool]:
    return lambda id_: id_ not in gone


def _is_of(there: set[str], epoch: int, note_id: str) -> bool:
    """Whether a note exists, or is of this epoch or of a later one."""
    return note_id in there or (is_note_id(note_id) and (epoch_and_number(turn_of(note_id)) or (0, 0))[0] >= epoch)


def _stemmer(language: str) -> Callable[[str], str]:
    try:
        snowball: Any = import_module("snowballstemmer")  # it has no types
    except ModuleNotFoundError as error:
        name_extra(error)
        raise
    if language not in snowball.algorithms():
        raise RegistrationError(f"The language of notes must be one of {', '.join(snowball.algorithms())}.")
    stem: Callable[[str], str] = snowball.stemmer(language).stemWord
    return lru_cache(_STEMS)(stem)
