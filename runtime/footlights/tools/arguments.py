"""Argument validation: a model's JSON arguments, read into the parameter types of a tool's function.

Values of different JSON types are never converted: a string is not a number, and `true` is not 1. JSON has one kind of
number, so 2 is a number and 2.0 is an integer. A refusal names the argument and the expected value. It never quotes an
argument, because that may contain a player's text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, cast, get_origin

import attrs
from cattrs import BaseValidationError, Converter
from cattrs.cols import homogenous_tuple_structure_factory, list_structure_factory
from cattrs.errors import AttributeValidationNote, IterableValidationNote

# cattrs leaves the type arguments of both open.
from cattrs.gen import (
    make_dict_structure_fn_from_attrs,  # pyright: ignore[reportUnknownVariableType]
    mapping_structure_factory,  # pyright: ignore[reportUnknownVariableType]
)

from footlights.errors import ToolError
from footlights.tools.schema import choices, expected, is_anything, members_of, plain, schema_of, union_members
from footlights.wire import values
from footlights.wire.values import Reader, Unfit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.events import JsonValue
    from footlights.tools.schema import Member


class InvalidArguments(ToolError):
    """A model's arguments do not fit the tool's parameters. The message tells the model where and why."""

    code = "invalid_arguments"


def arguments_reader(parameters: Sequence[Member]) -> Callable[[object], dict[str, Any]]:
    """A function that reads the arguments for these parameters from JSON. It raises `InvalidArguments`."""
    read_object = _object_reader(parameters, dict, _strict_converter())

    def read(arguments: object) -> dict[str, Any]:
        try:
            return cast("dict[str, Any]", read_object(_plain_json(arguments), None))
        except (Unfit, BaseValidationError) as error:
            raise InvalidArguments(_refusal(error)) from None

    return read


def _plain_json(arguments: object) -> JsonValue:
    if isinstance(arguments, Mapping):
        arguments = dict(cast("Mapping[object, object]", arguments))
    try:
        return values.json_value(arguments)
    except Unfit:  # its sentence is about an inner value without naming it
        raise Unfit("must be plain JSON") from None


def _refusal(error: BaseException) -> str:
    path = ""
    while isinstance(error, BaseValidationError):
        error = error.exceptions[0]
        path += _step(error)
    # Any other exception is from the author's own validator, whose message may quote the argument.
    sentence = str(error) if isinstance(error, Unfit) else "is not acceptable"
    path += f".{error.field}" if isinstance(error, Unfit) and error.field else ""
    return f"The argument {path.removeprefix('.')} {sentence}." if path else f"The arguments {sentence}."


def _step(error: BaseException) -> str:
    # cattrs adds the note of the outermost place last.
    for note in reversed(getattr(error, "__notes__", [])):
        if isinstance(note, AttributeValidationNote):
            return f".{note.name}"
        if isinstance(note, IterableValidationNote):
            # The keys of a dictionary are text of the model and are not quoted; list indexes are safe.
            return f"[{note.index}]" if isinstance(note.index, int) else "[...]"
    return ""


def _strict_converter() -> Converter:
    converter = Converter(detailed_validation=True)

    def read(value: object, kind: Any) -> object:
        return _reader(kind, converter)(value, kind)

    for base in (str, int, float, bool):  # cattrs looks up these and their subclasses before the factory
        converter.register_structure_hook(base, read)
    converter.register_structure_hook_factory(lambda _: True, _reader)
    return converter


def _reader(kind: Any, converter: Converter) -> Reader:
    kind = plain(kind)
    if is_anything(kind):
        return _anything
    if kind in _SCALARS:
        return _SCALARS[kind]
    if listed := choices(kind):
        return _choice_reader(kind, listed)
    if united := union_members(kind):
        return _union_reader(kind, united, converter)
    members = members_of(kind)
    return _collection_reader(kind, converter) if members is None else _object_reader(members, kind, converter)


def _anything(value: object, _: object) -> object:
    return value


def _integer(value: object, _: object) -> int:
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise Unfit("must be an integer")
    return value


def _null(value: object, _: object) -> None:
    if value is not None:
        raise Unfit("must be null")


_SCALARS: Mapping[Any, Reader] = {
    str: values.text,
    int: _integer,
    float: values.number,
    bool: values.flag,
    NoneType: _null,
}


def _choice_reader(kind: Any, listed: Sequence[tuple[Any, JsonValue]]) -> Reader:
    sentence = f"must be {expected(schema_of(kind))}"

    def read(value: object, _: object) -> object:
        for choice, wire in listed:
            # 1 == True, so equality is not enough.
            if value == wire and isinstance(value, bool) == isinstance(wire, bool):
                return choice
        raise Unfit(sentence)

    return read


def _union_reader(kind: Any, united: Sequence[Any], converter: Converter) -> Reader:
    """A reader that tries each member and returns the first that fits."""
    sentence = f"must be {expected(schema_of(kind))}"
    readers = [(each, _reader(each, converter)) for each in united]

    def read(value: object, _: object) -> object:
        refusals: list[Exception] = []
        for each, read_as in readers:
            try:
                return read_as(value, each)
            except (Unfit, BaseValidationError) as refusal:
                if each is not NoneType:
                    refusals.append(refusal)
        raise refusals[0] if len(refusals) == 1 else Unfit(sentence)

    return read


def _collection_reader(kind: Any, converter: Converter) -> Reader:
    origin = get_origin(kind)
    wanted, make = _COLLECTIONS[origin]
    read_items = make(kind, converter)
    sentence = f"must be {expected(schema_of(kind))}"

    def read(value: object, _: object) -> object:
        if type(value) is not wanted:
            raise Unfit(sentence)
        return read_items(value, kind)

    return read


_COLLECTIONS: Mapping[Any, tuple[type, Callable[[Any, Converter], Reader]]] = {
    list: (list, list_structure_factory),
    tuple: (list, homogenous_tuple_structure_factory),
    dict: (dict, cast(Any, mapping_structure_factory)),
}


def _object_reader(members: Sequence[Member], build: Any, converter: Converter) -> Reader:
    names = [each.name for each in members]
    required = [each.name for each in members if each.required]
    only = f"must have no fields but {', '.join(names)}" if names else "must be empty"
    structure = make_dict_structure_fn_from_attrs([_attribute(each) for each in members], build, converter)

    def read(value: object, _: object) -> object:
        if type(value) is not dict:
            raise Unfit("must be an object")
        fields = cast("dict[str, Any]", value)
        for name in required:
            if name not in fields:
                raise Unfit("is missing", name)
        if not fields.keys() <= set(names):
            raise Unfit(only)
        return structure(fields, build)

    return read


@attrs.frozen
class _Sample:
    attribute: Any = attrs.field(kw_only=True)


def _attribute(member: Member) -> attrs.Attribute[Any]:
    """The member as an attrs attribute, which cattrs expects."""
    return attrs.fields(_Sample).attribute.evolve(
        name=member.name,
        alias=member.name,
        type=plain(member.kind),
        default=attrs.NOTHING if member.required else None,
    )
