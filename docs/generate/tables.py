"""The tables of the reference: events, errors, limits, laws, states and commands."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import attrs
import source
import typer.main

from footlights import Limits, errors, events, laws
from footlights.failure_texts import FAILURE_TEXTS
from footlights.turn import lifecycle, timeline
from footlights.wire.writing import ONLY_IF_TRUE
from footlights_transports.cli.commands import app
from footlights_transports.views.ag_ui.pure.laws import AG_UI_LAWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`"


# -- turns


def parts() -> str:
    rows = ([code(each), said] for each, said in _meanings(timeline.Part))
    return table(["part", "the turn waits for"], rows)


# -- events


def envelope() -> str:
    return "\n".join(row for row in _fields(events.StreamEvent).splitlines() if not row.startswith("| `covered`"))


def common_fields() -> str:
    return _fields(events.Payload)


def event_types() -> str:
    rows = (
        [f"[`{each}`](#{each})", _delivery(events.EventType(each)), meaning]
        for each, meaning in _meanings(events.EventType)
    )
    return table(["event type", "delivery class", "what it says"], rows)


def reasons() -> str:
    return table(["reason", "meaning"], ([code(each), said] for each, said in _meanings(events.InterruptReason)))


def payloads() -> str:
    return "\n\n".join(
        f"### {each}\n\nIts payload is `{kind.__name__}`.\n\n{_fields(kind)}"
        for each, kind in events.PAYLOAD_TYPES.items()
    )


def payload_parts() -> str:
    kinds = (events.SeqRange, events.Ext, events.ErrorInfo, events.Issue, events.Heard)
    return "\n\n".join(f"### {kind.__name__}\n\n{_fields(kind)}" for kind in kinds)


def _fields(kind: type[Any]) -> str:
    rows = [
        [
            code(member.name),
            code(member.type),
            _on_the_wire(member),
            source.meaning(kind, member),
        ]
        for member in source.members(kind)
    ]
    return table(["field", "type", "on the wire", "meaning"], rows)


def _meanings(kind: type[Any]) -> Iterator[tuple[str, str]]:
    """The values of an enum, and what each of them means."""
    return ((member.text, source.meaning(kind, member)) for member in source.members(kind))


def _on_the_wire(member: source.Member) -> str:
    # As footlights.wire writes it: what is None, and what any payload may carry, is left out when it is not there.
    if member.name in ONLY_IF_TRUE:
        return "if true"
    is_common = member.name in {each.name for each in attrs.fields(events.Payload)}
    return "if set" if member.default == "None" or is_common else "always"


def _delivery(event_type: events.EventType) -> str:
    progress = ", then best_effort" if event_type is events.EventType.MODEL_LOADING else ""
    return events.DELIVERY[event_type] + progress


# -- errors, limits, laws, states


def failure_codes() -> str:
    return table(["code", "standard sentence"], [[f"`{code}`", text] for code, text in FAILURE_TEXTS.items()])


def error_codes() -> str:
    members: list[object] = list(vars(errors).values())
    kinds = [each for each in members if isinstance(each, type) and issubclass(each, errors.FootlightsError)]
    rows = ([code(kind.__name__), code(kind.code), source.summary(kind)] for kind in kinds)
    return table(["error", "code", "meaning"], rows)


def limits() -> str:
    rows = (
        [code(member.name), amount(member.default or ""), source.meaning(Limits, member)]
        for member in source.members(Limits)
    )
    return table(["limit", "default", "meaning"], rows)


def amount(number: str) -> str:
    return f"{int(number):,}" if number.isdigit() else f"{float(number):g} s"


def all_laws() -> str:
    return _laws(laws.LAWS)


def ag_ui_laws() -> str:
    return _laws(AG_UI_LAWS)


def _laws(by_name: Mapping[str, str]) -> str:
    rows = ([code(name), escape(sentence, quote=False)] for name, sentence in by_name.items())
    return table(["law", "what it says"], rows)


def states() -> str:
    return table(["state", "meaning"], ([code(each), said] for each, said in _meanings(lifecycle.TurnState)))


def state_diagram() -> str:
    return f"```mermaid\n{lifecycle.diagram()}```"


# -- the command line


def commands() -> str:
    return "\n\n".join(_group("footlights", typer.main.get_command(app)))


def _group(name: str, group: Any) -> Iterator[str]:
    for each, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _group(f"{name} {each}", command)
        else:
            yield _command(f"{name} {each}", command)


def _command(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join([name, *(["[OPTIONS]"] if command.params else []), *(a.metavar for a in arguments)])
    rows = [
        [code(each.metavar if each in arguments else " ".join([*each.opts, each.metavar or ""]).strip()), each.help]
        for each in command.params
    ]
    parts = [f"## {name}", f"```text\n{usage}\n```", command.help]
    return "\n\n".join([*parts, table(["", "meaning"], rows)] if rows else parts)
