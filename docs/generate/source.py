"""Source reader: signatures, fields and docstrings of the public API, for the generated pages.

Python forgets the strings under attributes, so they are read from the syntax tree. The same source gives the same
text under every supported Python.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Member:
    """A field, a property, a method or a member of an enum; `text` is how it is written down."""

    name: str
    text: str
    doc: str
    type: str = ""
    default: str | None = None


def members(kind: type[Any]) -> list[Member]:
    """What is public in the body of a class, in its order."""
    found = [_member(statement, doc) for statement, doc in _documented(_definition(kind).body)]
    return [member for member in found if member is not None and not member.name.startswith("_")]


def signature(thing: Any, name: str, *, wrapped: bool = False) -> str:
    """A function, or what it takes to make an instance of a class; `wrapped` if it is too long for one line."""
    definition = _definition(thing)
    if isinstance(definition, ast.ClassDef):
        made_by = next((each for each in definition.body if getattr(each, "name", "") == "__init__"), None)
        return f"{name}({_arguments(made_by, wrapped=wrapped)})" if isinstance(made_by, Function) else name
    return _signature(definition, name, wrapped=wrapped)


def sentences(thing: Any) -> str:
    """The docstring of a class or a function."""
    return ast.get_docstring(_definition(thing)) or ""


def summary(thing: Any) -> str:
    """The first paragraph of it, on one line."""
    return _said(thing.__name__, sentences(thing).partition("\n\n")[0])


def meaning(kind: type[Any], member: Member) -> str:
    """What stands beside a member of this class, on one line."""
    return _said(f"{kind.__name__}.{member.name}", member.doc)


def _said(name: str, doc: str) -> str:
    if not doc:
        raise SystemExit(f"The source does not say what {name} is.")
    return " ".join(doc.split())


def _definition(thing: Any) -> ast.ClassDef | Function:
    statement = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    assert isinstance(statement, ast.ClassDef | Function), "only classes and functions have a definition"
    return statement


def _documented(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    for statement, following in zip_longest(body, body[1:]):
        match following:
            case ast.Expr(ast.Constant(str(doc))):
                yield statement, inspect.cleandoc(doc)
            case _:
                yield statement, ""


def _member(statement: ast.stmt, doc: str) -> Member | None:
    match statement:
        case ast.AnnAssign(target=ast.Name(name), annotation=annotation, value=value):
            default = _default(value)
            text = f"{name}: {ast.unparse(annotation)}" + ("" if default is None else f" = {default}")
            return Member(name, text, doc, ast.unparse(annotation), default)
        case ast.Assign(targets=[ast.Name(name)], value=ast.Constant(value)):
            return Member(name, str(value), doc)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return Member(name, _signature(statement, name), ast.get_docstring(statement) or "")
        case _:
            return None


def _default(value: ast.expr | None) -> str | None:
    match value:
        case None:
            return None
        case ast.Call(func=ast.Name("field" | "Factory"), keywords=keywords):
            return next((ast.unparse(each.value) for each in keywords if each.arg == "default"), None)
        case _:
            return ast.unparse(value)


def _signature(function: Function, name: str, *, wrapped: bool = False) -> str:
    decorators = {ast.unparse(each) for each in function.decorator_list}
    returns = "" if function.returns is None else ast.unparse(function.returns)
    if decorators & {"property", "cached_property"}:
        return f"{name}: {returns}"
    call = f"{name}({_arguments(function, wrapped=wrapped)})"
    # A generator under such a decorator gives what it yields to the `as` of a with statement.
    given = returns.partition("[")[2].removesuffix("]").removesuffix(", None")
    if "asynccontextmanager" in decorators:
        return f"async with {call} as {given}"
    if "contextmanager" in decorators:
        return f"with {call} as {given}"
    return f"{'async ' if isinstance(function, ast.AsyncFunctionDef) else ''}{call} -> {returns}"


def _arguments(function: Function, *, wrapped: bool) -> str:
    parts = _argument_list(function)
    if wrapped and sum(map(len, parts)) > 80:
        return "\n" + "".join(f"    {part},\n" for part in parts)
    return ", ".join(parts)


def _argument_list(function: Function) -> list[str]:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    parts = [
        _argument(argument, default)
        for argument, default in zip(positional, defaults, strict=True)
        if argument.arg != "self"
    ]
    if given.vararg is not None:
        parts.append("*" + _argument(given.vararg, None))
    elif given.kwonlyargs:
        parts.append("*")
    parts += [
        _argument(argument, default) for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    return parts


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg if argument.annotation is None else f"{argument.arg}: {ast.unparse(argument.annotation)}"
    return text if default is None else f"{text} = {ast.unparse(default)}"
