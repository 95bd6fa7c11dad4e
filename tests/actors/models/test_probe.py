"""Probe of a model server, in virtual time: servers that stream or do not, and that stop or go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from footlights import ModelError, ModelTraits, ToolRequest, WarmState
from footlights.testing import cancel_everywhere
from footlights_actors.models.probe import PATIENCE, ProbeReport, probe

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from footlights import Output, Prompt

PACE = 0.01


class Server:
    """A server with one slot and a model that says a word every hundredth of a second."""

    model_id = "probed"
    traits = ModelTraits()
    warm_state = WarmState.HOT

    def __init__(
        self,
        nursery: trio.Nursery,
        *,
        stops: bool = True,
        buffers: bool = False,
        shows_slots: bool = False,
        refuses_tools: bool = False,
        call: ToolRequest | None = None,
        tokens: int | None = None,
        is_mute: bool = False,
    ) -> None:
        self._nursery = nursery
        self._slot = trio.CapacityLimiter(1)
        self._stops = stops
        self._buffers = buffers
        self._shows_slots = shows_slots
        self._refuses_tools = refuses_tools
        self._call = call
        self._tokens = tokens
        self.loaded = False
        if is_mute:
            self._slot.acquire_on_behalf_of_nowait("somebody else")

    async def load(self, report: Callable[[float], None]) -> None:
        await trio.lowlevel.checkpoint()
        self.loaded = True

    async def unload(self) -> None:
        await trio.lowlevel.checkpoint()
        self.loaded = False

    async def is_at_work(self) -> bool | None:
        await trio.lowlevel.checkpoint()
        return bool(self._slot.borrowed_tokens) if self._shows_slots else None

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        if prompt.tools and self._refuses_tools:
            raise ModelError("The server refused (HTTP 400).")
        send, receive = trio.open_memory_channel[str](10_000)
        done = trio.CancelScope()
        self._nursery.start_soon(self._work, min(prompt.max_tokens, self._tokens or 10_000), send, done)
        try:
            async for word in receive:
                yield word
            if prompt.tools and self._call is not None:
                yield self._call
        finally:
            if self._stops:
                done.cancel()

    async def _work(self, words: int, send: trio.MemorySendChannel[str], scope: trio.CancelScope) -> None:
        said: list[str] = []
        with scope, send:
            async with self._slot:
                for _ in range(words):
                    await trio.sleep(PACE)
                    said.append("word ")
                    if not self._buffers:
                        send.send_nowait(said.pop())
            for word in said:
                send.send_nowait(word)


async def probe_server(options: dict[str, Any]) -> ProbeReport:
    async with trio.open_nursery() as nursery:
        server = Server(nursery, **options)
        report = await probe(server, server.is_at_work)
        assert not server.loaded
        nursery.cancel_scope.cancel()
    return report


def probed(**options: Any) -> ProbeReport:
    return trio.run(probe_server, options, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("shows_slots", [False, True])
def test_a_server_that_streams_and_stops(shows_slots: bool) -> None:
    report = probed(shows_slots=shows_slots, call=ToolRequest("check_room", {"room": "attic"}))
    assert (report.streams.ok, report.calls_tools.ok, report.stops.ok) == (True, True, True)
    assert report.streams.sentence == "yes: 48 pieces in 0.48 s, the first after 0.01 s"
    assert report.stops.sentence.endswith("the next first token came after 0.01 s (0.01 s before the cancel)")
    assert report.stops.sentence.startswith("yes: its slots were free after 0.00 s" if shows_slots else "yes: the next")


@pytest.mark.parametrize("shows_slots", [False, True])
def test_a_server_that_goes_on_after_a_cancel_is_found_out(shows_slots: bool) -> None:
    report = probed(stops=False, shows_slots=shows_slots)
    assert not report.stops.ok
    # Four rounds of 1,000 words, of which three words had come.
    assert "the next first token came after 39.9" in report.stops.sentence
    assert ("its slots were free after 39.9" in report.stops.sentence) is shows_slots


def test_a_server_that_goes_on_for_ever_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footlights_actors.models.probe.PATIENCE", 5.0)
    report = probed(stops=False)
    assert report.stops.sentence == "no: no token within 5 s after a cancel"
    report = probed(stops=False, shows_slots=True)
    assert report.stops.sentence.startswith("no: a slot was still at work after 5 s, and ")


def test_a_server_that_sends_everything_at_the_end_does_not_stream() -> None:
    report = probed(buffers=True, tokens=900)
    assert report.streams.sentence == "no: everything comes at the end (48 pieces in 0.48 s, the first after 0.48 s)"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (None, "no: it answered with text"),
        (ToolRequest("other", {}), "not well: its call does not fit the tool"),
        (
            ToolRequest("check_room", {}, "The arguments are not a JSON object."),
            "not well: its call does not fit the tool",
        ),
    ],
)
def test_a_server_that_calls_no_tool_or_another(call: ToolRequest | None, sentence: str) -> None:
    report = probed(call=call)
    assert (report.calls_tools.ok, report.calls_tools.sentence) == (False, sentence)


def test_a_server_that_refuses_tools_says_why() -> None:
    report = probed(refuses_tools=True)
    assert report.calls_tools.sentence == "no: The server refused (HTTP 400)."
    assert report.stops.ok


def test_a_server_that_is_done_before_a_cancel_is_not_judged() -> None:
    report = probed(tokens=2)
    assert report.stops.sentence == "not known: it ended before it could be cancelled"


def test_a_server_without_a_first_token_is_given_up() -> None:
    with pytest.raises(BaseExceptionGroup) as failed:
        probed(is_mute=True)
    assert failed.group_contains(TimeoutError, match=f"within {PATIENCE:g} seconds")


class Dripping(Server):
    """A server that keeps every answer open for ever after its first token."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        yield "word "
        await trio.sleep_forever()


def test_a_server_that_never_ends_an_answer_is_given_up_at_each_step() -> None:
    async def probe_dripping() -> ProbeReport:
        async with trio.open_nursery() as nursery:
            server = Dripping(nursery)
            return await probe(server, server.is_at_work)

    report = trio.run(probe_dripping, clock=trio.testing.MockClock(autojump_threshold=0))
    assert report.streams.sentence == "no: it did not end within 180 s"
    assert report.calls_tools.sentence == "no: it did not end within 180 s"
    assert report.stops.sentence == "not known: it gave too little to cancel within 180 s"


def test_a_probe_can_be_cancelled_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footlights_actors.models.probe.ROUNDS", 2)

    async def scenario() -> None:
        await probe_server({"tokens": 4})

    cancel_everywhere(scenario, orders=1)
