"""JSON Patch operations (RFC 6902), as rules make them and records keep them.

`footlights.authority.world.edit` makes them in a world. Paths are JSON Pointers (RFC 6901).

The six constructors have the names of the operations; import the module, not the names:

    from footlights.authority import patch
    patch.replace("/door", "open")
    patch.replace(patch.path_to("purses", player), 0)

`path_to` makes a path of names, and `tokens_of` gives them back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from attrs import field, frozen

from footlights.authority.values import snapshot
from footlights.errors import FootlightsError, InvalidCommand

if TYPE_CHECKING:
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


def path_to(*names: str | int) -> str:
    """The path to a value, by keys and indexes. Names of players go through it: they may contain `/` or `~`."""
    return "".join("/" + str(name).replace("~", "~0").replace("/", "~1") for name in names)


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
    if name not in get_args(OpName):
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


class Misfit(Exception):
    """An operation does not fit; the reason is its text."""


_BAD_ESCAPE = re.compile(r"~(?![01])")
# No sign, no leading zeros, no digits of other scripts, and not more than int() accepts.
INDEX = re.compile(r"0|[1-9][0-9]{0,15}")


def tokens_of(pointer: str | None) -> list[str]:
    """The keys and indexes on the way. Raises `Misfit`."""
    if pointer == "":
        return []
    if pointer is None or not pointer.startswith("/"):
        raise Misfit("a path begins with /")
    if "~" not in pointer:
        return pointer[1:].split("/")
    if _BAD_ESCAPE.search(pointer):
        raise Misfit("in a path, ~ is written ~0")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def check_pointer(pointer: str) -> None:
    """Raises `InvalidCommand` if this is no JSON pointer."""
    try:
        tokens_of(pointer if type(pointer) is str else None)
    except Misfit as error:
        raise InvalidCommand(f"It is no JSON pointer: {error}.") from None


def index_in(token: str, end: int) -> int:
    """The index below `end`. Raises `Misfit`."""
    if not INDEX.fullmatch(token):
        raise Misfit("that is not an index of an array")
    index = int(token)
    if index >= end:
        raise Misfit("the array is shorter than that")
    return index
