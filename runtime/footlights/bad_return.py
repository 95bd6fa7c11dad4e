"""Bad return: an error about host code that returned what its caller cannot use, or that is async where it may not be.

Its message consists of fixed words that say what to write instead, so it may be logged, unlike those of others.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from inspect import isasyncgen, isasyncgenfunction, iscoroutine, iscoroutinefunction, signature, unwrap
from typing import Any

from attrs import frozen

from footlights.errors import RegistrationError


@frozen
class Place:
    """The definition of a function."""

    file: str
    line: int
    name: str


class BadReturn(RegistrationError):
    """A function of the host returned what its caller cannot use. `place` is its definition, if it has one."""

    def __init__(self, message: str, function: object) -> None:
        super().__init__(message)
        self.place = _place_of(function)


def _place_of(function: Any) -> Place | None:
    bare = function.func if isinstance(function, partial) else function
    code = getattr(unwrap(getattr(bare, "__func__", bare)), "__code__", None)
    return None if code is None else Place(code.co_filename, code.co_firstlineno, code.co_name)


def is_unawaited(value: object) -> bool:
    """Whether this is a coroutine or an async generator. A coroutine is closed, so that Python does not warn of it."""
    if iscoroutine(value):
        value.close()
        return True
    return isasyncgen(value)


def check_kind(what: str, value: object, kind: type) -> None:
    """Raises `RegistrationError` for what is not of this kind: a host need not be typed."""
    if not isinstance(value, kind):
        raise RegistrationError(f"{what} must be of the kind {kind.__name__}, and not {type(value).__name__}.")


def check_plain(what: str, function: Any, *arguments: str) -> None:
    """Raises `RegistrationError` unless this is a plain function with these arguments, as far as it can be inspected.

    `what` begins the sentence.
    """
    if not callable(function):
        kind, name = type(function).__name__, getattr(function, "name", None)
        raise RegistrationError(f"{what} is not a function: it is {f'the {kind} {name}' if name else f'a {kind}'}.")
    if iscoroutinefunction(function) or isasyncgenfunction(function):
        raise RegistrationError(f"{what} is an async function: write def, not async def.")
    with suppress(ValueError):  # a function of an extension module may have no signature
        declared = signature(function)
        try:
            declared.bind(*arguments)
        except TypeError:
            name, number = getattr(function, "__name__", type(function).__name__), len(arguments)
            wanted, found = ", ".join(arguments), declared.replace(return_annotation=declared.empty)
            raise RegistrationError(
                f"{what} is called with {number} argument{'s' * (number > 1)}: "
                f"write def {name}({wanted}), not def {name}{found}."
            ) from None
