"""The schema that a model is shown and the reader that its arguments meet: from the same types, and of one mind."""

from __future__ import annotations

import dataclasses
import typing
from enum import Enum, IntEnum, StrEnum
from types import GenericAlias
from typing import Annotated, Any, Literal, NewType, NotRequired, Required, TypedDict, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypeAliasType

from footlights import JsonValue, tool
from footlights.tools.arguments import InvalidArguments, arguments_reader
from footlights.tools.schema import Member, NoJsonForm, object_schema, schema_of


class Room(StrEnum):
    ATTIC = "attic"
    GABLE = "gable"


class Floor(IntEnum):
    GROUND = 0
    FIRST = 1


class Answer(Enum):
    YES = True
    NONE = None
    MAYBE = "maybe"


@attrs.frozen
class Guest:
    name: Annotated[str, "as in the book"]
    _age: int = 30
    known: bool = attrs.field(default=True, init=False)


@dataclasses.dataclass
class Meal:
    dish: str
    price: float = 1.0
    notes: list[JsonValue] = dataclasses.field(default_factory=list[JsonValue])
    served: bool = dataclasses.field(default=False, init=False)


class Stay(TypedDict):
    room: Room
    nights: NotRequired[Annotated[int, "one if left out"]]


class Wish(TypedDict, total=False):
    view: Required[str]
    floor: Annotated[Required[Floor], "counted from the ground"]
    price: int


RoomKey = NewType("RoomKey", str)
Purse = TypeAliasType("Purse", dict[str, int])


def closed(properties: dict[str, JsonValue], *required: str) -> JsonValue:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


# -- what a model is shown


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (RoomKey, {"type": "string"}),
        (Purse, {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Annotated[int, 3, "how many nights"], {"type": "integer", "description": "how many nights"}),
        (Annotated[int, 3], {"type": "integer"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1, True, None], {"enum": ["a", 1, True, None]}),
        (Room, {"type": "string", "enum": ["attic", "gable"]}),
        (Floor, {"enum": [0, 1]}),
        (Answer, {"enum": [True, None, "maybe"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (typing.Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - both ways to say it
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (dict[RoomKey, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            Guest,
            closed({"name": {"type": "string", "description": "as in the book"}, "age": {"type": "integer"}}, "name"),
        ),
        (
            Meal,
            closed(
                {"dish": {"type": "string"}, "price": {"type": "number"}, "notes": {"type": "array", "items": {}}},
                "dish",
            ),
        ),
        (
            Stay,
            closed(
                {
                    "room": {"type": "string", "enum": ["attic", "gable"]},
                    "nights": {"type": "integer", "description": "one if left out"},
                },
                "room",
            ),
        ),
        (
            Wish,
            closed(
                {
                    "view": {"type": "string"},
                    "floor": {"enum": [0, 1], "description": "counted from the ground"},
                    "price": {"type": "integer"},
                },
                "view",
                "floor",
            ),
        ),
    ],
    ids=str,
)
def test_a_type_has_this_schema(kind: Any, schema: JsonValue) -> None:
    assert schema_of(kind) == schema


def test_an_annotation_that_says_json_value_takes_everything() -> None:
    async def postponed(one: JsonValue, many: list[JsonValue], perhaps: JsonValue | None) -> None: ...

    async def at_once(one: Any, many: Any) -> None: ...

    at_once.__annotations__ = {"one": JsonValue, "many": GenericAlias(list, (JsonValue,))}
    anything: dict[str, JsonValue] = {"one": {}, "many": {"type": "array", "items": {}}}
    assert tool(at_once).parameters["properties"] == anything
    perhaps: dict[str, JsonValue] = {"anyOf": [{}, {"type": "null"}]}
    assert tool(postponed).parameters["properties"] == {**anything, "perhaps": perhaps}


@attrs.frozen
class Node:
    children: list[Node]


@attrs.frozen
class Odd:
    price: set[int]


@attrs.frozen
class Lost:
    price: Nowhere  # type: ignore[name-defined]  # noqa: F821 - that is what is tested


@attrs.define
class Untyped:
    price = attrs.field()  # type: ignore[var-annotated]  # that is what is tested


class Pair(Enum):
    BOTH = (1, 2)


class Empty(Enum):
    pass


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (bytes, "bytes, which has no JSON form"),
        (set[int], r"set\[int\], which has no JSON form"),
        (list, "list, which has no JSON form"),
        (list[bytes], "bytes, which has no JSON form"),
        (tuple[int, str], "which has no JSON form"),
        (dict[int, str], "which has no JSON form"),
        (typing.Callable[[], int], "which has no JSON form"),
        ([int], "which has no JSON form"),
        (int | bytes, "bytes, which has no JSON form"),
        (Literal[b"a"], "lists something that is not a string"),
        (Pair, "lists something that is not a string"),
        (Empty, "Empty, which has no JSON form"),
        (Node, "Node, whose children has the type Node, which holds itself"),
        (Odd, r"Odd, whose price has the type set\[int\], which has no JSON form"),
        (Lost, "Lost, which speaks of Nowhere: that is unknown when the program runs"),
        (Untyped, "Untyped, whose price has the type object, which has no JSON form"),
    ],
    ids=str,
)
def test_a_type_without_a_json_form_is_refused_and_named(kind: Any, why: str) -> None:
    with pytest.raises(NoJsonForm, match=why):
        schema_of(kind)


# -- what a tool is given


def read(kind: Any, value: object) -> object:
    return arguments_reader([Member("it", kind, True)])({"it": value})["it"]


@pytest.mark.parametrize(
    ("kind", "value", "made"),
    [
        (int, 2.0, 2),
        (float, 2, 2.0),
        (str, "2", "2"),
        (bool, True, True),
        (None, None, None),
        (Any, {"a": [1]}, {"a": [1]}),
        (RoomKey, "attic", "attic"),
        (Annotated[int, "nights"], 2, 2),
        (Purse, {"me": 3}, {"me": 3}),
        (Literal[1, True], True, True),
        (Literal[1, True], 1.0, 1),
        (Room, "attic", Room.ATTIC),
        (Floor, 1, Floor.FIRST),
        (Answer, None, Answer.NONE),
        (int | None, None, None),
        (Room | Any, "cellar", "cellar"),
        (Room | str, "attic", Room.ATTIC),
        (Room | str, "cellar", "cellar"),
        (list[Room], ["attic"], [Room.ATTIC]),
        (tuple[float, ...], [1, 2.5], (1.0, 2.5)),
        (dict[str, Room], {"a": "gable"}, {"a": Room.GABLE}),
        (Guest, {"name": "Mirel", "age": 40}, Guest("Mirel", 40)),
        (Meal, {"dish": "stew", "notes": [None, {"salt": 0}]}, Meal("stew", 1.0, [None, {"salt": 0}])),
        (Stay, {"room": "attic"}, {"room": Room.ATTIC}),
        (Wish, {"view": "sea", "floor": 0}, {"view": "sea", "floor": Floor.GROUND}),
        (list[Guest | Stay], [{"room": "gable"}, {"name": "Odo"}], [{"room": Room.GABLE}, Guest("Odo")]),
    ],
    ids=str,
)
def test_json_becomes_what_the_function_declares(kind: Any, value: object, made: object) -> None:
    found = read(kind, value)
    assert found == made
    assert type(found) is type(made)


def must_be_low(_: Guest, __: attrs.Attribute[int], value: int) -> None:
    if value > 3:
        error = ValueError(f"{value} is too much, xyzzy")
        error.add_note("xyzzy")
        raise error


@attrs.frozen
class Bid:
    price: int = attrs.field(validator=must_be_low)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (int, "3", "The argument it must be an integer."),
        (int, True, "The argument it must be an integer."),
        (int, 1.5, "The argument it must be an integer."),
        (float, "1.5", "The argument it must be a number."),
        (float, False, "The argument it must be a number."),
        (bool, 1, "The argument it must be true or false."),
        (str, 3, "The argument it must be a string."),
        (None, 0, "The argument it must be null."),
        (Literal[1], True, "The argument it must be one of 1."),
        (Room, "xyzzy", "The argument it must be one of attic, gable."),
        (Answer, 1, "The argument it must be one of true, null, maybe."),
        (int | None, "xyzzy", "The argument it must be an integer."),
        (int | str | None, [], "The argument it must be an integer or a string or null."),
        (Guest | None, {"name": 3}, "The argument it.name must be a string."),
        (list[int], "xyzzy", "The argument it must be a list."),
        (list[int], [1, "xyzzy"], "The argument it[1] must be an integer."),
        (tuple[int, ...], [None], "The argument it[0] must be an integer."),
        (dict[str, int], ["xyzzy"], "The argument it must be an object."),
        (dict[str, int], {"xyzzy": "xyzzy"}, "The argument it[...] must be an integer."),
        (Guest, "xyzzy", "The argument it must be an object."),
        (Guest, {}, "The argument it.name is missing."),
        (Guest, {"name": "Mirel", "xyzzy": 1}, "The argument it must have no fields but name, age."),
        (Guest, {"name": "Mirel", "age": "xyzzy"}, "The argument it.age must be an integer."),
        (dict[str, list[Stay]], {"xyzzy": [{"room": 1}]}, "The argument it[...][0].room must be one of attic, gable."),
        (Bid, {"price": 4}, "The argument it is not acceptable."),
        pytest.param(Any, object(), "The arguments must be plain JSON.", id="no JSON at all"),
        (str, "\ud800", "The arguments must be plain JSON."),
        (int, 2**60, "The arguments must be plain JSON."),
    ],
    ids=str,
)
def test_a_refusal_says_where_and_what_was_expected_and_quotes_nothing(kind: Any, value: object, said: str) -> None:
    with pytest.raises(InvalidArguments) as refusal:
        read(kind, value)
    assert str(refusal.value) == said
    assert refusal.value.code == "invalid_arguments"


@pytest.mark.parametrize("arguments", [None, 3, "it", [["it", 1]]])
def test_arguments_that_are_no_object_are_refused(arguments: object) -> None:
    with pytest.raises(InvalidArguments, match=r"^The arguments must be an object"):
        arguments_reader([Member("it", int, False)])(arguments)


def test_any_mapping_is_an_object() -> None:
    assert arguments_reader([Member("it", int, True)])(typing.ChainMap({"it": 1})) == {"it": 1}


def test_a_function_without_parameters_takes_nothing() -> None:
    reader = arguments_reader([])
    assert reader({}) == {}
    with pytest.raises(InvalidArguments, match=r"^The arguments must be empty"):
        reader({"xyzzy": 1})


def test_what_may_be_left_out_is_not_made_up() -> None:
    assert arguments_reader([Member("self", int, False), Member("class", str, True)])({"class": "a"}) == {"class": "a"}


def test_reading_gives_copies() -> None:
    given_list: list[JsonValue] = [1]
    found = cast("list[JsonValue]", read(Any, given_list))
    found.append(2)
    assert given_list == [1]


# -- the two are of one mind, for whatever types


def accepts(schema: Any, value: Any) -> bool:
    """What JSON Schema says about the words that our schemas use, written down independently of them."""
    if "anyOf" in schema:
        return any(accepts(each, value) for each in schema["anyOf"])
    if "enum" in schema:
        return any(each == value and isinstance(each, bool) == isinstance(value, bool) for each in schema["enum"])
    match schema.get("type"):
        case None:
            return True
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "integer":
            return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
        case "array":
            return isinstance(value, list) and all(accepts(schema["items"], each) for each in value)
        case _:
            return isinstance(value, dict) and accepts_object(schema, value)


def accepts_object(schema: Any, value: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    others = schema["additionalProperties"]
    return all(name in value for name in schema.get("required", ())) and all(
        accepts(properties[name], each) if name in properties else others is not False and accepts(others, each)
        for name, each in value.items()
    )


names = st.sampled_from(["a", "b", "c", "self", "class"])
leaves = st.sampled_from(
    [str, int, float, bool, type(None), Any, RoomKey, Room, Floor, Answer, Literal["x", 1, False], Guest, Stay, Wish]
)


def made_class(how: int, fields: dict[str, Any], optional: set[str]) -> Any:
    if how == 0:
        members = {
            name: attrs.field(type=kind, kw_only=True, default=None if name in optional else attrs.NOTHING)
            for name, kind in fields.items()
        }
        return attrs.make_class("Attrs", members)
    if how == 1:
        wrapped = {name: NotRequired[kind] if name in optional else kind for name, kind in fields.items()}
        make_typed_dict: Any = getattr(typing, "TypedDict")  # noqa: B009 - type checkers know it only as a class
        return make_typed_dict("Typed", wrapped)
    plain = [(name, kind) for name, kind in fields.items() if name not in optional]
    with_default = [(name, kind, dataclasses.field(default=None)) for name, kind in fields.items() if name in optional]
    return dataclasses.make_dataclass("Data", [*plain, *with_default])


def larger(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    identifiers = st.sampled_from(["a", "b", "c"])
    return st.one_of(
        kinds.map(lambda kind: GenericAlias(list, (kind,))),
        kinds.map(lambda kind: GenericAlias(tuple, (kind, ...))),
        kinds.map(lambda kind: GenericAlias(dict, (str, kind))),
        kinds.map(lambda kind: Annotated[kind, "a note"]),
        st.lists(kinds, min_size=2, max_size=3).map(lambda each: typing.Union[tuple(each)]),  # noqa: UP007 - of a list
        st.builds(made_class, st.integers(0, 2), st.dictionaries(identifiers, kinds), st.sets(identifiers)),
    )


kinds = st.recursive(leaves, larger, max_leaves=6)

numbers = st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 1.5, -2.0, 2.0**53])
words = st.sampled_from(["", "a", "x", "attic", "gable", "maybe"])
json_values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


def close_to(schema: Any) -> st.SearchStrategy[Any]:
    """Mostly what the schema asks for, with something else here and there."""
    return st.one_of(*[fitting(schema)] * 8, json_values)


def fitting(schema: Any) -> st.SearchStrategy[Any]:
    if "anyOf" in schema:
        return st.one_of(*map(close_to, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "string":
            return words
        case "number" | "integer":
            return numbers
        case "array":
            return st.lists(close_to(schema["items"]), max_size=3)
        case "object" if "properties" not in schema:
            return st.dictionaries(names, close_to(schema["additionalProperties"]), max_size=3)
        case "object":
            fields = {name: close_to(each) for name, each in schema["properties"].items()}
            required = {name: each for name, each in fields.items() if name in schema["required"]}
            return st.fixed_dictionaries(
                required, optional={name: each for name, each in fields.items() if name not in required}
            )
        case _:
            return json_values


@given(st.data(), st.dictionaries(names, kinds, max_size=3), st.sets(names))
def test_what_the_schema_accepts_is_read_and_what_it_refuses_is_not(
    data: st.DataObject, parameters: dict[str, Any], optional: set[str]
) -> None:
    members = [Member(name, kind, name not in optional) for name, kind in parameters.items()]
    schema = object_schema(members)
    arguments = data.draw(close_to(schema))
    try:
        arguments_reader(members)(arguments)
    except InvalidArguments:
        assert not accepts(schema, arguments)
    else:
        assert accepts(schema, arguments)
