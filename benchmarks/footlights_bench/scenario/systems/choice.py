"""Choice of the system that a scenario is played against, from the command line."""

from __future__ import annotations

import importlib
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from footlights.errors import InvalidCommand
from footlights_bench.scenario.definition import SystemKind
from footlights_bench.scenario.systems.asked import Asked
from footlights_bench.scenario.systems.http_stream import http_address
from footlights_bench.scenario.systems.in_process import open_in_process
from footlights_bench.scenario.systems.models import AgUiConversation, OpenAiConversation, SseConversation
from footlights_bench.scenario.systems.native import Asks, open_native
from footlights_bench.scenario.systems.native_http import NativeHttp
from footlights_bench.scenario.systems.protocol import System

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_bench.scenario.definition import Scenario
    from footlights_bench.scenario.systems.asked import Conversation

Opened: TypeAlias = AbstractAsyncContextManager[System]


@frozen
class Choice:
    kind: SystemKind
    open: Callable[[Scenario], Opened]
    """Raises `FootlightsError` if the system cannot be used."""


def in_process() -> Choice:
    return Choice(SystemKind.STAGE, lambda scenario: open_in_process(scenario.turn))


def native(url: str, token: str | None) -> Choice:
    def opened(scenario: Scenario) -> Opened:
        repeats = scenario.trouble.cut_share > 0
        asks = Asks(in_batches=scenario.load.batch, repeats=repeats, turn=_asked(scenario))
        return open_native(url, token, asks)

    return Choice(SystemKind.NATIVE, opened)


_KINDS = "http:URL, openai:URL, agui:URL, sse:URL, module:name"


def choose(url: str | None, target: str | None, token: str | None) -> Choice:
    """Raises `InvalidCommand` for a target that is none."""
    if url is not None and target is not None:
        raise InvalidCommand("--url and --target name two systems: use one of them.")
    if url is not None:
        return native(url, token)
    if target is None:
        return in_process()
    kind, _, where = target.partition(":")
    match kind:
        case "http" if where.startswith("http"):
            address = http_address(where, token)
            return Choice(SystemKind.HTTP, lambda each: nullcontext(NativeHttp(where, address, _asked(each))))
        case "openai":
            address = http_address(where, token)
            return _asks(where, lambda scenario: OpenAiConversation(address, scenario.turn.model or "default"))
        case "agui":
            address = http_address(where, token)
            threads = count(1)
            return _asks(where, lambda _: AgUiConversation(address, f"bench-{token_hex(4)}-{next(threads)}"))
        case "sse":
            address = http_address(where, token)
            return _asks(where, lambda _: SseConversation(address))
        case _:
            return _own(kind, where)


def _asks(name: str, converse: Callable[[Scenario], Conversation]) -> Choice:
    return Choice(SystemKind.OTHER, lambda scenario: nullcontext(Asked(name, lambda: converse(scenario))))


def _own(module: str, name: str) -> Choice:
    """A target of the user's own: a function without arguments that makes a conversation, or opens a system."""
    sys.path.insert(0, ".")
    try:
        made = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise InvalidCommand(f"There is no target {module}:{name}. A target is one of: {_KINDS}.") from None
    finally:
        sys.path.remove(".")
    if hasattr(made, "ask"):
        return _asks(f"{module}:{name}", lambda _: made())
    return Choice(SystemKind.OTHER, lambda _: made())


def _asked(scenario: Scenario) -> dict[str, Any]:
    asked = scenario.turn.asked_of_footlights
    return asked if scenario.turn.model is None else {**asked, "model": scenario.turn.model}
