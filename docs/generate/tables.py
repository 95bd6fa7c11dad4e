"""The tables of the reference: events, errors, limits, laws, states and commands."""

from __future__ import annotations

import re
import time
from html import escape
from typing import TYPE_CHECKING, Any

import attrs
import source
import trio
import typer.main
from words import say

import footlights
from footlights import errors, events, laws, lifecycle
from footlights.limits import Limits
from footlights.params import TurnParams
from footlights.turn import Turn
from footlights_transports.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.outbox import Entry


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`"


# -- events


def envelope() -> str:
    return _fields(events.StreamEvent)


def common_fields() -> str:
    return _fields(events.Payload)


def event_types() -> str:
    docs = {member.text: member.doc for member in source.members(events.EventType)}
    delivery = trio.run(_observe_deliveries)
    rows = [
        [
            f"[`{each}`](#{each})",
            ", then ".join(dict.fromkeys(delivery[each])),
            say(f"EventType.{each.name}", docs[each]),
        ]
        for each in events.EventType
    ]
    return table(["event type", "delivery class", "what it says"], rows)


def payloads() -> str:
    return "\n\n".join(f"### {each}\n\n{_fields(kind)}" for each, kind in events.PAYLOAD_TYPES.items())


def payload_parts() -> str:
    kinds = (events.SeqRange, events.Ext, events.ErrorInfo, events.Issue, events.Heard)
    return "\n\n".join(f"### {kind.__name__}\n\n{_fields(kind)}" for kind in kinds)


def _fields(kind: type[Any]) -> str:
    rows = [
        [
            code(member.name),
            code(member.type),
            "if set" if _may_be_left_out(member) else "always",
            say(f"{kind.__name__}.{member.name}", member.doc),
        ]
        for member in source.members(kind)
    ]
    return table(["field", "type", "on the wire", "meaning"], rows)


def _may_be_left_out(member: source.Member) -> bool:
    # As footlights.wire writes it: what is None, and what any payload may carry, is left out when it is not there.
    return member.default == "None" or member.name in {each.name for each in attrs.fields(events.Payload)}


class _Ear:
    """A session and its one outbox, as far as a turn can tell: it notes the class of every event."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.wall_clock = time.time
        self.outboxes: Any = (self,)
        self.heard: dict[str, list[str]] = {}

    def put(self, entry: Entry, _replay: object, _now: float) -> None:
        self.heard.setdefault(entry.event.event_type, []).append(entry.delivery)

    def turn_stopping(self, _turn: Turn) -> None: ...

    def turn_ended(self, _turn: Turn) -> None: ...

    def turn_settled(self, _turn: Turn) -> None: ...


async def _observe_deliveries() -> dict[str, list[str]]:
    """Every kind of event, emitted once for real: the classes are facts, not a second list."""
    ear = _Ear()
    said = Turn(ear, "s", "t1", "hello", TurnParams())
    said.accept(0)
    said.select_model(events.ModelSelected("m", "default"))
    said.loading_model(events.ModelLoading("m", cold_start=True))
    said.loading_model(events.ModelLoading("m", cold_start=True, progress=0.5))
    said.model_ready(events.ModelReady("m", events.WarmState.COLD, 1))
    said.say("hello")
    said.start_tool(events.ToolCallStarted("c", "tool"))
    said.end_tool(events.ToolCallResult("c", "tool", canceled=False))
    said.finish()
    said.settle(events.CommitFinal("0" * 64, events.CommitOutcome.OK))
    stopped = Turn(ear, "s", "t2", "hello", TurnParams())
    stopped.accept(0)
    stopped.stop(events.InterruptReason.CANCELED)
    return ear.heard


# -- errors, limits, laws, states


def error_codes() -> str:
    tree = dict(re.findall(r"── (\w+)[ ]*(.*)", errors.__doc__ or ""))
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert {each.__name__ for each in kinds} <= set(footlights.__all__), "an error that nobody can catch by name"
    rows = [
        [code(kind.__name__), code(kind.code), _sentence(say(kind.__name__, tree.get(kind.__name__, "")))]
        for kind in kinds
    ]
    return table(["error", "code", "meaning"], rows)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:].rstrip(".") + "."


def limits() -> str:
    rows = [
        [
            code(member.name),
            _amount(member.default or ""),
            say(f"Limits.{member.name}", member.doc),
        ]
        for member in source.members(Limits)
    ]
    return table(["limit", "default", "meaning"], rows)


def _amount(number: str) -> str:
    return f"{int(number):,}" if number.isdigit() else f"{float(number):g} s"


def all_laws() -> str:
    rows = ([code(name), escape(sentence, quote=False)] for name, sentence in laws.LAWS.items())
    return table(["law", "what it says"], rows)


def states() -> str:
    docs = {member.text: member.doc for member in source.members(lifecycle.State)}
    rows = [[code(each), say(f"State.{each.name}", docs[each])] for each in lifecycle.State]
    return table(["state", "meaning"], rows)


def state_diagram() -> str:
    return f"```mermaid\n{lifecycle.diagram()}```"


# -- the command line


def commands() -> str:
    group: Any = typer.main.get_command(app)
    return "\n\n".join(_command(name, command) for name, command in group.commands.items())


def _command(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join(["footlights", name, *(["[OPTIONS]"] if command.params else []), *(a.metavar for a in arguments)])
    rows = [
        [code(each.metavar if each in arguments else " ".join([*each.opts, each.metavar or ""]).strip()), each.help]
        for each in command.params
    ]
    parts = [f"## footlights {name}", f"```text\n{usage}\n```", command.help]
    return "\n\n".join([*parts, table(["", "meaning"], rows)] if rows else parts)
