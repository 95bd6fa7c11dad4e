"""How sections are read: what does not fit is complained of, all of it, and the rest is read all the same."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from footlights.errors import RegistrationError
from footlights_transports.config.schema import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from footlights_transports.config.schema import Setting
    from footlights_transports.config.source import KeyPath, Source

_T = TypeVar("_T")


def section(
    source: Source, path: KeyPath, settings: Iterable[Setting], *, beside: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What was set in a section and fits, by name. `beside` names settings that somebody else reads."""
    settings = list(settings)
    table = source.table(path)
    for name in table:
        if name not in names(settings) and name not in beside:
            complain_unknown(source, (*path, name), [*beside, *names(settings)])
    for setting in settings:
        if setting.required and setting.name not in table:
            source.complain(path, f"needs {setting.name}, {setting.kind.allowed}.")
    read = {each.name: source.read((*path, each.name), each.kind) for each in settings if each.name in table}
    return {name: value for name, value in read.items() if value is not None}


def checked(source: Source, path: KeyPath, settings: Iterable[Setting], make: Callable[..., _T]) -> _T:
    """What a section makes of a class that checks its values itself, without those that do not fit."""
    fitting: dict[str, Any] = {}
    for name, value in section(source, path, settings).items():
        try:
            make(**{name: value})
        except RegistrationError as error:
            source.complain((*path, name), f"is refused: {error}")
        else:
            fitting[name] = value
    return make(**fitting)


def complain_unknown(source: Source, path: KeyPath, known: Iterable[str]) -> None:
    known = list(known)
    close = get_close_matches(path[-1], known, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    source.complain(path, f"is no setting.{hint} There are: {', '.join(known)}.")
