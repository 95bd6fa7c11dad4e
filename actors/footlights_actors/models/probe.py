"""Probe of a model server: whether it streams, calls tools, and really stops after a cancel.

A server may send its whole answer at the end, ignore tools, or go on working for a client that is gone. Then a cancel
is fast only in appearance: the next player waits for a text that nobody reads. The probe sends fixed prompts through
the driver that a game uses, cancels several rounds in mid-sentence, and measures how late the next first token is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import frozen

from footlights.errors import ModelError
from footlights.models.model import Prompt, ToolOffer, ToolRequest
from footlights.models.sampling import Sampling

if TYPE_CHECKING:
    from footlights.models.model import Model

ROUNDS = 4
"""Rounds that are cancelled at once, so that a server with a few slots has none left if it goes on."""
LATE = 1.0
"""Seconds by which the next first token may be later than one before, on top of three times that."""
PATIENCE = 60.0
"""Seconds to wait for a first token, or for a free slot."""
ANSWER_PATIENCE = 180.0
"""Seconds to wait for a whole answer."""

_PIECES_BEFORE_CANCEL = 3
_POLL_SECONDS = 0.02
_MOMENT = 0.0005
"""Seconds between two pieces that did not arrive together."""
_GREEDY = Sampling(temperature=0)
_SYSTEM = "You are an innkeeper."
_HELLO = Prompt("Say hello.", _SYSTEM, sampling=_GREEDY, max_tokens=1)
_COUNT = Prompt("Count from one to thirty, in words.", _SYSTEM, sampling=_GREEDY, max_tokens=48)
_STORY = Prompt("Tell me the long story of this inn, from its beginning.", _SYSTEM, sampling=_GREEDY, max_tokens=1_000)
_CALL = Prompt(
    "Is the attic free? Use the tool.",
    _SYSTEM,
    tools=(
        ToolOffer(
            "check_room",
            "Whether a room is free.",
            {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
        ),
    ),
    sampling=_GREEDY,
    max_tokens=200,
)


IsAtWork: TypeAlias = Callable[[], Awaitable[bool | None]]
"""Whether any slot of the server is at work; None if the server does not show its slots."""


@frozen(kw_only=True)
class Finding:
    """One answer of the probe."""

    ok: bool
    sentence: str


@frozen(kw_only=True)
class ProbeReport:
    """The three answers."""

    streams: Finding
    calls_tools: Finding
    stops: Finding


async def probe(model: Model, is_at_work: IsAtWork) -> ProbeReport:
    """Probe a model.

    Raises `ModelError` or `TimeoutError` if the model does not answer at all.
    """
    await model.load(lambda _: None)
    try:
        await _first_token(model)  # a server may load the model now
        before = await _first_token(model)
        streams = await _streams(model)
        calls_tools = await _calls_tools(model)
        stops = await _stops(model, before, is_at_work)
    finally:
        with trio.CancelScope(shield=True):
            await model.unload()
    return ProbeReport(streams=streams, calls_tools=calls_tools, stops=stops)


async def _first_token(model: Model) -> float:
    """Seconds until the first token. Raises `TimeoutError` if there is none for too long."""
    began = trio.current_time()
    with trio.move_on_after(PATIENCE):
        async with aclosing(model.generate(_HELLO)) as output:
            async for item in output:
                if item:
                    break
        return trio.current_time() - began
    raise TimeoutError(f"The model gave no token within {PATIENCE:g} seconds.")


async def _streams(model: Model) -> Finding:
    began = trio.current_time()
    arrivals: list[float] = []
    with trio.move_on_after(ANSWER_PATIENCE) as limit:
        async with aclosing(model.generate(_COUNT)) as output:
            arrivals = [trio.current_time() - began async for item in output if isinstance(item, str) and item]
    if limit.cancelled_caught:
        return Finding(ok=False, sentence=f"no: it did not end within {ANSWER_PATIENCE:g} s")
    if not arrivals:
        return Finding(ok=False, sentence="no: it gave no text")
    moments = 1 + sum(later - earlier > _MOMENT for earlier, later in pairwise(arrivals))
    pieces = f"{len(arrivals)} pieces in {arrivals[-1]:.2f} s, the first after {arrivals[0]:.2f} s"
    if moments < min(3, len(arrivals)) or len(arrivals) < 2:
        return Finding(ok=False, sentence=f"no: everything comes at the end ({pieces})")
    return Finding(ok=True, sentence=f"yes: {pieces}")


async def _calls_tools(model: Model) -> Finding:
    requests: list[ToolRequest] = []
    try:
        with trio.move_on_after(ANSWER_PATIENCE) as limit:
            async with aclosing(model.generate(_CALL)) as output:
                requests = [item async for item in output if isinstance(item, ToolRequest)]
    except ModelError as error:
        return Finding(ok=False, sentence=f"no: {error}")
    if limit.cancelled_caught:
        return Finding(ok=False, sentence=f"no: it did not end within {ANSWER_PATIENCE:g} s")
    match requests:
        case []:
            return Finding(ok=False, sentence="no: it answered with text")
        case [ToolRequest(tool_name="check_room", arguments={"room": str()}), *_]:
            return Finding(ok=True, sentence="yes")
        case _:
            return Finding(ok=False, sentence="not well: its call does not fit the tool")


async def _stops(model: Model, before: float, is_at_work: IsAtWork) -> Finding:
    was_at_work = False
    with trio.move_on_after(ANSWER_PATIENCE) as limit:
        was_at_work = await _cancel_rounds(model)
    if limit.cancelled_caught:
        return Finding(ok=False, sentence=f"not known: it gave too little to cancel within {ANSWER_PATIENCE:g} s")
    if not was_at_work:
        return Finding(ok=False, sentence="not known: it ended before it could be cancelled")
    began = trio.current_time()
    slots = await _wait_for_slots(is_at_work)
    try:
        await _first_token(model)
    except TimeoutError:
        return Finding(ok=False, sentence=f"no: {slots}no token within {PATIENCE:g} s after a cancel")
    after = trio.current_time() - began
    ok = after <= 3 * before + LATE
    told = f"{slots}the next first token came after {after:.2f} s ({before:.2f} s before the cancel)"
    return Finding(ok=ok, sentence=f"{'yes' if ok else 'no, or late'}: {told}")


async def _cancel_rounds(model: Model) -> bool:
    """Whether rounds were cancelled while at least one of them was at work."""
    at_work = False
    async with trio.open_nursery() as nursery:

        async def tell() -> None:
            nonlocal at_work
            pieces = 0
            with suppress(ModelError):  # a server may refuse so many at once
                async with aclosing(model.generate(_STORY)) as output:
                    async for item in output:
                        pieces += isinstance(item, str) and item != ""
                        if pieces == _PIECES_BEFORE_CANCEL:
                            at_work = True
                            nursery.cancel_scope.cancel(reason="the probe cancels the rounds")

        for _ in range(ROUNDS):
            nursery.start_soon(tell)
    return at_work


async def _wait_for_slots(is_at_work: IsAtWork) -> str:
    """How long it took until the server had no slot at work, in words; empty if it does not show its slots."""
    began = trio.current_time()
    with trio.move_on_after(PATIENCE):
        while (at_work := await is_at_work()) is not None:
            if not at_work:
                return f"its slots were free after {trio.current_time() - began:.2f} s, and "
            await trio.sleep(_POLL_SECONDS)
        return ""
    return f"a slot was still at work after {PATIENCE:g} s, and "
