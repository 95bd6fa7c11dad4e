"""The reference of the public API: each name with its signature and what its docstring says."""

from __future__ import annotations

import enum
import inspect
import re
from typing import TYPE_CHECKING, Any

import source
from tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

# These classes are public by name; what else they have is for the session, the stage, the actors, or is said already.
_SHOWN = {
    "Subscription": ("receive_batch", "until_commit", "cursor", "is_exhausted", "statistics"),
    "Witness": ("judged", "violations", "tolerated"),
    "JsonWorld": (),
    "MemoryLedger": (),
    "FlakyLedger": (),
    "Polled": ("poll", "on_ready", "is_open", "close"),
    "PolledStream": ("cursor",),
    "PolledFeed": ("world", "cursor"),
    "Ticket": ("result", "exception"),
}

# What a host makes by calling it; the others are handed out, or are plain fields.
_MADE_BY_HOSTS = {
    "ScriptedModel",
    "ExtensionManager",
    "RuleBook",
    "JsonWorld",
    "MemoryLedger",
    "FlakyLedger",
    "StageThread",
}


def described(*things: Any) -> str:
    """Each with a heading of its own."""
    return "\n\n".join(_described(thing, thing.__name__) for thing in things)


def listed(*functions: Callable[..., Any], prefix: str = "") -> str:
    """One bullet for each."""
    return "\n".join(
        _bullet(source.signature(each, prefix + each.__name__), source.sentences(each)) for each in functions
    ).rstrip()


def _described(thing: Any, name: str) -> str:
    parts = [f"### {name}"]
    if not isinstance(thing, type) or name in _MADE_BY_HOSTS:
        parts.append(f"```text\n{source.signature(thing, name, wrapped=True)}\n```")
    if doc := source.sentences(thing):
        parts.append(_markdown(doc))
    if isinstance(thing, type) and (members := _members(thing, name)):
        parts.append(_enum(members) if issubclass(thing, enum.Enum) else _body(members))
    return "\n\n".join(parts)


def _members(kind: type[Any], name: str) -> list[source.Member]:
    members = source.members(kind)
    shown = _SHOWN.get(name)
    if shown is None:
        return members
    assert set(shown) <= {member.name for member in members}, f"{name} has not all of {shown}"
    return [member for member in members if member.name in shown]


def _enum(members: list[source.Member]) -> str:
    return table(["value", "meaning"], ([f"`{each.text}`", " ".join(each.doc.split())] for each in members))


def _body(members: list[source.Member]) -> str:
    return "\n".join(_bullet(member.text, member.doc) for member in members).rstrip()


def _bullet(text: str, doc: str) -> str:
    text = f"- `{text}`"
    if not doc:
        return text
    return "\n".join([text, "", *(f"  {line}".rstrip() for line in _markdown(doc).splitlines()), ""])


def _markdown(doc: str) -> str:
    """A docstring as Markdown: an indented list under Raises or Args becomes a list."""
    return "\n".join(_markdown_line(line) for line in inspect.cleandoc(doc).splitlines())


def _markdown_line(line: str) -> str:
    if line in ("Raises:", "Args:"):
        return f"{line}\n"
    entry = re.fullmatch(r" {2,4}(\w+): (.*)", line)
    return f"- `{entry[1]}`: {entry[2]}" if entry is not None else line
