"""JSON Schemas of Python types, for the arguments of tools.

A type either has an exact JSON form, or it is refused when the tool is declared. Classes are inlined where they are
used, so a class that contains itself has no JSON form.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NewType,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import attrs
import orjson
from attrs import frozen

from footlights.events import JsonValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Schema: TypeAlias = "dict[str, JsonValue]"

_SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}

_WORDS: Mapping[JsonValue, str] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
    None: "anything",
}

_WRAPPERS = (Annotated, Required, NotRequired)


class NoJsonForm(TypeError):
    """Reason why a type has no JSON form, worded to follow the name of the parameter."""


@frozen
class Member:
    """A member of an object: a parameter of a function, or a field of a class."""

    name: str
    kind: Any
    required: bool


def hints_of(owner: Any, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """The resolved annotations of a class or of any object with annotations. Raises `NameError`."""
    # `JsonValue` is recursive, which `get_type_hints` cannot resolve.
    return get_type_hints(owner, names, {"JsonValue": Any}, include_extras=True)


def schema_of(kind: Any, *, inside: tuple[Any, ...] = ()) -> Schema:
    """The JSON Schema of this type. Raises `NoJsonForm`. `inside` holds the enclosing classes."""
    description = _description(kind)
    schema = _schema_of(plain(kind), inside)
    return schema if description is None else {**schema, "description": description}


def object_schema(members: Sequence[Member], *, inside: tuple[Any, ...] = ()) -> Schema:
    """The JSON Schema of an object with exactly these members."""
    return {
        "type": "object",
        "properties": {each.name: _schema_of_member(each, inside) for each in members},
        "required": [each.name for each in members if each.required],
        "additionalProperties": False,
    }


def plain(kind: Any) -> Any:
    """The type without `Annotated`, `NewType` and aliases."""
    while True:
        if kind is None:
            return NoneType
        if get_origin(kind) in _WRAPPERS:
            kind = get_args(kind)[0]
        elif isinstance(kind, NewType):
            kind = kind.__supertype__
        elif hasattr(kind, "__value__"):  # `type Name = ...`, of Python 3.12
            kind = kind.__value__
        else:
            return kind


def is_anything(kind: Any) -> bool:
    """Whether a plain type admits every JSON value."""
    return kind is Any or kind == _JSON_VALUE


def union_members(kind: Any) -> tuple[Any, ...]:
    """The members of a union; empty for any other plain type."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else ()


def choices(kind: Any) -> tuple[tuple[Any, JsonValue], ...]:
    """The members of a literal or an enum, each with its JSON value; empty for any other plain type."""
    if get_origin(kind) is Literal:
        return tuple((each, each) for each in get_args(kind))
    return tuple((each, each.value) for each in kind) if _is_a(kind, Enum) else ()


def members_of(kind: Any) -> tuple[Member, ...] | None:
    """The fields of a class that its initializer takes; None for a plain type without fields."""
    if is_typeddict(kind):
        return tuple(Member(name, hint, _is_required(kind, name, hint)) for name, hint in _hints(kind).items())
    if not isinstance(kind, type):
        return None
    if attrs.has(kind):
        hints = _hints(kind)
        return tuple(
            Member(each.alias or each.name, hints.get(each.name, each.type or object), each.default is attrs.NOTHING)
            for each in attrs.fields(kind)
            if each.init
        )
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        for name, hint in hints.items():
            if isinstance(hint, dataclasses.InitVar):
                raise NoJsonForm(f"has the type {_name(kind)}, whose {name} is an InitVar, which has no JSON form")
        return tuple(Member(each.name, hints[each.name], _has_no_default(each)) for each in _data_fields(kind))
    return None


def expected(schema: Mapping[str, JsonValue]) -> str:
    """The value that a schema requires, in words."""
    match schema:
        case {"enum": list(values)}:
            return f"one of {', '.join(_as_json(each) for each in values)}"
        case {"anyOf": list(alternatives)}:
            return " or ".join(expected(each) for each in alternatives if isinstance(each, dict))
        case _:
            return _WORDS[schema.get("type")]


def _schema_of(kind: Any, inside: tuple[Any, ...]) -> Schema:
    if is_anything(kind):
        return {}
    if _is_a(kind, object) and kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if listed := choices(kind):
        return _choice([value for _, value in listed])
    if united := union_members(kind):
        return {"anyOf": [schema_of(each, inside=inside) for each in united]}
    members = members_of(kind)
    if members is None:
        return _schema_of_collection(kind, inside)
    if kind in inside:
        raise NoJsonForm(f"has the type {_name(kind)}, which holds itself")
    try:
        return object_schema(members, inside=(*inside, kind))
    except NoJsonForm as error:
        raise NoJsonForm(f"has the type {_name(kind)}, whose {error}") from None


def _schema_of_collection(kind: Any, inside: tuple[Any, ...]) -> Schema:
    match get_origin(kind), get_args(kind):
        case (origin, (item,)) if origin is list:
            return {"type": "array", "items": schema_of(item, inside=inside)}
        case (origin, (item, end)) if origin is tuple and end is Ellipsis:
            return {"type": "array", "items": schema_of(item, inside=inside)}
        case (origin, (key, value)) if origin is dict and plain(key) is str:
            return {"type": "object", "additionalProperties": schema_of(value, inside=inside)}
        case _:
            raise NoJsonForm(f"has the type {_name(kind)}, which has no JSON form")


def _schema_of_member(member: Member, inside: tuple[Any, ...]) -> Schema:
    try:
        return schema_of(member.kind, inside=inside)
    except NoJsonForm as error:
        raise NoJsonForm(f"{member.name} {error}") from None


def _choice(values: list[JsonValue]) -> Schema:
    if not all(type(each) in (str, int, bool, NoneType) for each in values):
        raise NoJsonForm("lists something that is not a string, an integer, true, false or null")
    return {"type": "string", "enum": values} if all(type(each) is str for each in values) else {"enum": values}


def _description(kind: Any) -> str | None:
    while get_origin(kind) in (Required, NotRequired):
        kind = get_args(kind)[0]
    notes = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((each for each in notes if isinstance(each, str)), None)


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return hints_of(kind)
    except NameError as error:
        raise NoJsonForm(
            f"has the type {_name(kind)}, which speaks of {error.name}: "
            "that is unknown when the program runs (is it imported only for type checking?)"
        ) from None


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    # With postponed annotations Python 3.11 does not see `NotRequired` and counts the key as required.
    while (origin := get_origin(hint)) is Annotated:
        hint = get_args(hint)[0]
    return origin is Required or (origin is not NotRequired and name in kind.__required_keys__)


def _data_fields(kind: Any) -> Sequence[dataclasses.Field[Any]]:
    return [each for each in dataclasses.fields(kind) if each.init]


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _is_a(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)


def _as_json(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


_JSON_VALUE: Any = hints_of(SimpleNamespace(__annotations__={"anything": JsonValue}))["anything"]
"""`JsonValue` as it is resolved in an annotation that was not postponed."""
