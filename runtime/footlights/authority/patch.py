"""JSON Patch (RFC 6902) over immutable documents.

`apply_patch` returns a new document that shares the unchanged parts with the old one. It applies all operations or
raises `PatchFailed`, and never changes its arguments. Paths are JSON Pointers (RFC 6901).

The six constructors have the names of the operations; import the module, not the names:

    from footlights.authority import patch
    patch.replace("/door", "open")
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from attrs import field, frozen

from footlights.authority.values import same, snapshot
from footlights.errors import FootlightsError, InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from footlights.events import JsonValue

OpName: TypeAlias = Literal["add", "remove", "replace", "move", "copy", "test"]


@frozen
class PatchOp:
    """One operation, with its own copy of `value`. Operations without a value or a `from_` ignore it."""

    op: OpName
    path: str
    value: JsonValue = field(default=None, converter=snapshot)
    from_: str | None = None


class PatchFailed(FootlightsError):
    """An operation that does not fit the document. `index` counts from 0; the message quotes no values."""

    code = "patch_failed"

    def __init__(self, index: int, op: PatchOp, reason: str) -> None:
        super().__init__(f"Operation {index}, {op.op} at {op.path!r}: {reason}.")
        self.index = index
        self.path = op.path
        self.reason = reason


def add(path: str, value: JsonValue) -> PatchOp:
    """Insert into an array (`-` is its end), or set a member of an object."""
    return PatchOp("add", path, value)


def remove(path: str) -> PatchOp:
    """Remove the value at `path`."""
    return PatchOp("remove", path)


def replace(path: str, value: JsonValue) -> PatchOp:
    """Replace the value at `path`, which must exist."""
    return PatchOp("replace", path, value)


def move(from_: str, path: str) -> PatchOp:
    """`remove` the value at `from_`, and `add` it at `path`."""
    return PatchOp("move", path, from_=from_)


def copy(from_: str, path: str) -> PatchOp:
    """`add` the value at `from_` at `path`."""
    return PatchOp("copy", path, from_=from_)


def test(path: str, value: JsonValue) -> PatchOp:
    """A precondition: the whole patch fails unless this value is at `path`."""
    return PatchOp("test", path, value)


def to_json(op: PatchOp) -> dict[str, JsonValue]:
    if op.op in ("add", "replace", "test"):
        return {"op": op.op, "path": op.path, "value": op.value}
    if op.op in ("move", "copy"):
        return {"op": op.op, "path": op.path, "from": op.from_}
    return {"op": op.op, "path": op.path}


def from_json(value: JsonValue) -> PatchOp:
    """Raises `InvalidCommand` if it is not an operation. Members unknown to RFC 6902 are ignored."""
    if not isinstance(value, dict):
        raise InvalidCommand("A JSON Patch operation is an object.")
    name = cast("OpName", _text_member(value, "op"))
    if name not in _OPERATIONS:
        raise InvalidCommand("A JSON Patch operation is one of six, and this is none of them.")
    path = _text_member(value, "path")
    if name in ("move", "copy"):
        return PatchOp(name, path, from_=_text_member(value, "from"))
    if name == "remove":
        return PatchOp(name, path)
    if "value" not in value:
        raise InvalidCommand(f"A JSON Patch {name} needs a value.")
    return PatchOp(name, path, value["value"])


def _text_member(value: dict[str, JsonValue], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, str):
        raise InvalidCommand(f"A JSON Patch operation needs {name!r}, a string.")
    return text


def apply_patch(document: JsonValue, ops: Iterable[PatchOp]) -> JsonValue:
    """The document after `ops`, in order. Raises `PatchFailed` at the first that does not fit."""
    for index, op in enumerate(ops):
        try:
            document = _OPERATIONS[op.op](document, op)
        except _Misfit as misfit:
            raise PatchFailed(index, op, str(misfit)) from None
    return document


class _Misfit(Exception):
    pass


def _do_add(document: JsonValue, op: PatchOp) -> JsonValue:
    return _edited(document, _tokens(op.path), _inserted, op.value)


def _do_remove(document: JsonValue, op: PatchOp) -> JsonValue:
    return _removed(document, _tokens(op.path))


def _do_replace(document: JsonValue, op: PatchOp) -> JsonValue:
    return _edited(document, _tokens(op.path), _replaced, op.value)


def _do_move(document: JsonValue, op: PatchOp) -> JsonValue:
    source, target = _tokens(op.from_), _tokens(op.path)
    value = _found(document, source)
    if source == target:
        return document
    if target[: len(source)] == source:
        raise _Misfit("a value cannot move into itself")
    return _edited(_removed(document, source), target, _inserted, value)


def _do_copy(document: JsonValue, op: PatchOp) -> JsonValue:
    return _edited(document, _tokens(op.path), _inserted, _found(document, _tokens(op.from_)))


def _do_test(document: JsonValue, op: PatchOp) -> JsonValue:
    if not same(_found(document, _tokens(op.path)), op.value):
        raise _Misfit("another value is there")
    return document


_OPERATIONS: Mapping[OpName, Callable[[JsonValue, PatchOp], JsonValue]] = {
    "add": _do_add,
    "remove": _do_remove,
    "replace": _do_replace,
    "move": _do_move,
    "copy": _do_copy,
    "test": _do_test,
}


_BAD_ESCAPE = re.compile(r"~(?![01])")
# No sign, no leading zeros, no digits of other scripts, and not more than int() accepts.
_INDEX = re.compile(r"0|[1-9][0-9]{0,15}")


def _tokens(pointer: str | None) -> list[str]:
    if pointer == "":
        return []
    if pointer is None or not pointer.startswith("/"):
        raise _Misfit("a path begins with /")
    if _BAD_ESCAPE.search(pointer):
        raise _Misfit("in a path, ~ is written ~0")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def check_pointer(pointer: str) -> None:
    """Raises `InvalidCommand` if this is no JSON pointer."""
    try:
        _tokens(pointer if type(pointer) is str else None)
    except _Misfit as error:
        raise InvalidCommand(f"It is no JSON pointer: {error}.") from None


def find_in(document: JsonValue, pointer: str) -> tuple[JsonValue, ...]:
    """What is at this place, as the only item; empty if nothing is."""
    try:
        return (_found(document, _tokens(pointer)),)
    except _Misfit:
        return ()


def _index(token: str, end: int) -> int:
    if not _INDEX.fullmatch(token):
        raise _Misfit("that is not an index of an array")
    index = int(token)
    if index >= end:
        raise _Misfit("the array is shorter than that")
    return index


def _child(parent: JsonValue, token: str) -> JsonValue:
    if isinstance(parent, list):
        return parent[_index(token, len(parent))]
    if isinstance(parent, dict) and token in parent:
        return parent[token]
    if isinstance(parent, dict):
        raise _Misfit("there is no such member")
    raise _Misfit("its parent is neither an object nor an array")


def _found(document: JsonValue, tokens: list[str]) -> JsonValue:
    for token in tokens:
        document = _child(document, token)
    return document


def _inserted(parent: JsonValue, token: str, value: JsonValue) -> JsonValue:
    if isinstance(parent, list):
        index = len(parent) if token == "-" else _index(token, len(parent) + 1)
        return [*parent[:index], value, *parent[index:]]
    if isinstance(parent, dict):
        return {**parent, token: value}
    raise _Misfit("its parent is neither an object nor an array")


def _replaced(parent: JsonValue, token: str, value: JsonValue) -> JsonValue:
    _child(parent, token)
    if isinstance(parent, list):
        index = int(token)
        return [*parent[:index], value, *parent[index + 1 :]]
    return _inserted(parent, token, value)


def _removed(document: JsonValue, tokens: list[str]) -> JsonValue:
    if not tokens:
        raise _Misfit("the whole document cannot be removed")
    return _edited(document, tokens, _without, None)


def _without(parent: JsonValue, token: str, _: JsonValue) -> JsonValue:
    _child(parent, token)
    if isinstance(parent, list):
        index = int(token)
        return [*parent[:index], *parent[index + 1 :]]
    members = cast("dict[str, JsonValue]", parent)
    return {key: value for key, value in members.items() if key != token}


def _edited(
    document: JsonValue,
    tokens: list[str],
    edit: Callable[[JsonValue, str, JsonValue], JsonValue],
    value: JsonValue,
) -> JsonValue:
    """The document with `edit` applied to the parent of the target. Only the objects on the path are copied."""
    if not tokens:
        return value
    parents = [document]
    for token in tokens[:-1]:
        parents.append(_child(parents[-1], token))
    remade = edit(parents[-1], tokens[-1], value)
    for parent, token in zip(reversed(parents[:-1]), reversed(tokens[:-1]), strict=True):
        remade = _replaced(parent, token, remade)
    return remade
