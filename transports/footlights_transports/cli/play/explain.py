"""Answers to the commands of a player: what is true, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from footlights.authority.record import commit_final
from footlights.events import CommitOutcome
from footlights_transports.cli.screen import Line
from footlights_transports.cli.turn_view import Tone, because, note, plain, questions, tell_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sized

    from footlights.authority import CommitRecord
    from footlights.authority.record import IntentEntry
    from footlights.turn.summary import TurnSummary
    from footlights_transports.cli.screen import Piece

HELP = """\
Say something, and press Enter.
  /world        what is true now
  /why          what the last turn committed, and why
  /yes ID       approve what waits for you; /no ID refuses it (without ID, if only one does)
  /notes        what is remembered of you; /notes erase, /notes agree, /notes withdraw
  /quit         leave, as Ctrl-D does
Ctrl-C interrupts a turn, and what was typed meanwhile is lost. At the prompt it discards
the line, and a second one leaves."""
_A_MILLISECOND = 1_000
MAX_LINES = 200
"""The most lines of a world that are shown."""
MAX_DEPTH = 20
"""The deepest objects of a world that are shown."""


def tell_help() -> list[Piece]:
    return [Line(line, "dim") for line in HELP.splitlines()]


def tell_world(world: object) -> list[Piece]:
    """The world as an outline."""
    lines = list(_outline(world, 1))
    shown = [Line(line) for line in lines[:MAX_LINES]]
    left = len(lines) - len(shown)
    return [*shown, *([note(Tone.ASIDE, f"and {left} lines more")] if left else [])]


def tell_notes(notebook: Mapping[str, Any]) -> list[Piece]:
    """What is remembered of the player, and what waits for an answer."""
    rows = [f"{each['by']}: {each['words']}{_waits(each)}" for each in notebook["notes"]] or ["Nothing is remembered."]
    agreed = ["You gave a standing yes to notes: /notes withdraw takes it back."] if notebook["agreed"] else []
    return [Line(f"  {row}") for row in [*rows, *agreed]]


def _waits(note: Mapping[str, Any]) -> str:
    return f" (waits: /yes {note['approval_id']})" if "approval_id" in note else ""


def note_questions(asked: Iterable[tuple[str, str]], notebook: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The questions of approvals, with the words of the notes that they are about."""
    words = {each["approval_id"]: each for each in notebook["notes"] if "approval_id" in each}
    return [(id_, _asks(words[id_]) if id_ in words else question) for id_, question in asked]


def _asks(note: Mapping[str, Any]) -> str:
    return f'{speaker_name(note["by"])} wants to remember: "{note["words"]}"'


def speaker_name(persona: str | None) -> str:
    """The name of a persona as people write it."""
    return "NPC" if persona is None else persona.replace("_", " ").replace("-", " ").capitalize()


def _outline(value: object, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if not _has_parts(value):
        yield f"{indent}{plain(value)}"
        return
    if depth > MAX_DEPTH:
        yield f"{indent}…"
        return
    parts = cast("Mapping[str, object] | Sequence[object]", value)
    rows: Iterable[tuple[object, object]] = parts.items() if isinstance(parts, Mapping) else enumerate(parts, 1)
    for name, each in rows:
        if _has_parts(each):
            yield f"{indent}{name}"
            yield from _outline(each, depth + 1)
        else:
            yield f"{indent}{name}: {plain(each)}"


def _has_parts(value: object) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and bool(cast("Sized", value))


def tell_why(record: CommitRecord, tools: Mapping[str, str], refusals: Iterable[tuple[str, str]] = ()) -> list[Piece]:
    """How the authority came to a commit.

    `tools` are the names of tools, by the ids of their calls; `refusals` those that did not succeed, and why.
    """
    ended = "was committed as" if record.outcome is CommitOutcome.OK else "ended as"
    rows = [f"{record.turn_id} {ended} {record.commit_id}: {record.outcome}"]
    rows += [f"refused by the tool {name}: {why}" for name, why in refusals]
    rows += [f"because: {because(issue)} ({issue.code})" for issue in record.issues]
    if record.outcome is CommitOutcome.OK or record.verdicts:
        rows += [f"asked for: {_intent(each, tools)}" for each in record.intents] or ["asked for: nothing"]
    accepted = [each.rule for each in record.verdicts if not each.codes]
    rows += [f"refused by the rule {each.rule}: {', '.join(each.codes)}" for each in record.verdicts if each.codes]
    rows += [f"accepted by the rules {', '.join(accepted)}"] if accepted else []
    rows += [
        f"waits for your answer: {question} /yes {id_} or /no {id_}"
        for id_, question in questions(commit_final(record))
    ]
    if record.outcome is not CommitOutcome.OK:
        rows.append("nothing changed")
    return [*(note(Tone.ASIDE, row) for row in rows), *tell_changes(record)]


def tell_time(summary: TurnSummary) -> list[Piece]:
    """Where the time of a turn went. What took less than a millisecond is added up."""
    took: dict[str, int] = {}
    for each in summary.parts:
        name = each.part.replace("_", " ") if each.tool is None else f"{each.part} {each.tool}"
        name = name if each.took_us >= _A_MILLISECOND else "the rest"
        took[name] = took.get(name, 0) + each.took_us
    rest = took.pop("the rest", 0)
    parts = [f"{name} {_time(us)}" for name, us in (*took.items(), *([("the rest", rest)] if rest else []))]
    return [note(Tone.ASIDE, f"took {_time(sum(took.values()) + rest)}: {', '.join(parts) or 'nothing'}")]


def _time(microseconds: int) -> str:
    return f"{microseconds / 1_000_000:.2f} s" if microseconds >= 1_000_000 else f"{microseconds / 1000:.1f} ms"


def _intent(intent: IntentEntry, tools: Mapping[str, str]) -> str:
    return f"{intent.type} of {tools.get(intent.ref, intent.ref)}"
