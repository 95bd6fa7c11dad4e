"""AG-UI's own client, and ours that resumes and cancels, in Node against real servers."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights import open_stage
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_actors.demo.tavern.cast import tavern_cast
from tests.kit.cutting_proxy import Fate, open_proxy
from tests.kit.paths import ROOT
from tests.kit.peers.ag_ui_server import FIRST, REST, ag_ui_server
from tests.kit.peers.http_peer import CuedModel, open_house
from tests.kit.peers.js_peer import JS, nodes, run_js, with_packages
from tests.kit.views.ag_ui_kit import THREAD, lawful, text, types

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from tests.kit.peers.js_peer import Script
    from tests.kit.views.ag_ui_kit import Raw

NODES: Sequence[str | None] = nodes() or [None]
_PROGRAM = re.compile(r"^```js\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPEECH = "Good evening, my friend. " * 8


@pytest.fixture(params=[False, True], ids=["stock", "ours"])
def ours(request: pytest.FixtureRequest) -> bool:
    is_ours: bool = request.param
    return is_ours


class Page:
    """A program that uses an agent, as a page would."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.events: list[Raw] = []
        self.reconnections = 0

    async def say(self, said: str | None, run_id: str = "run-1") -> None:
        await self._script.say({"say": said, "runId": run_id})

    async def take_until(self, kind: str) -> list[Raw]:
        """The events so far, up to the next of this type."""
        while True:
            told = await self._script.told()
            assert "ag_ui" in told, told
            self._note(told["ag_ui"])
            if told["ag_ui"]["type"] == kind:
                return self.events

    async def take_run(self) -> list[Raw]:
        """All events of the run, which must end lawfully, whether or not it failed."""
        while "over" not in (told := await self._script.told()):
            if "ag_ui" in told:
                self._note(told["ag_ui"])
        events, self.events = self.events, []
        return lawful(events)

    def _note(self, event: Raw) -> None:
        if event.get("name") == "footlights.reconnecting":  # the client's own word
            self.reconnections += 1
        else:
            self.events.append(event)

    async def messages(self) -> tuple[list[Raw], list[Raw]]:
        """What the client remembers, and the questions that it knows to be open."""
        await self._script.say({})
        told: dict[str, Any] = await self._script.told()
        return told["messages"], told["pending"]

    async def leave(self) -> None:
        await self._script.say(None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    module = Path(str(files("footlights_transports"))) / "static" / "footlights-ag-ui.js"
    modules = tmp_path / "page"
    modules.mkdir()
    return with_packages(modules, JS / "ag_ui.mjs", JS / "script.mjs", module)


def open_page(
    folder: Path, port: int, agent: str = "default", *, ours: bool, **options: object
) -> AbstractAsyncContextManager[Script]:
    node = NODES[-1]
    if node is None:
        pytest.skip("CLIENTS OF OTHER PROJECTS WERE NOT TESTED: there is no node here")
    url = f"http://127.0.0.1:{port}/ag-ui/{agent}"
    return run_js(node, "ag_ui.mjs", folder=folder, url=url, threadId=THREAD, ours=ours, **options)


async def test_a_client_talks_uses_tools_and_answers_an_approval(folder: Path, ours: bool) -> None:
    async with open_house(cast=tavern_cast(load_seconds=0.0, pace=0.0)) as house:
        async with open_page(folder, house.listening.port, "innkeeper", ours=ours) as script:
            page = Page(script)
            await page.say("I want to rent the attic.", "run-1")
            events = await page.take_run()
            assert "TOOL_CALL_RESULT" in types(events)
            await page.say("I want to buy the lantern.", "run-2")
            assert (await page.take_run())[-1]["outcome"]["type"] == "interrupt"
            _, (question,) = await page.messages()
            await script.say({"answer": question["id"], "payload": {"approved": True}})
            assert (await page.take_run())[-1]["outcome"]["type"] == "success"
            messages, pending = await page.messages()
            assert pending == []
            assert [each["role"] for each in messages[:5]] == ["user", "assistant", "assistant", "tool", "assistant"]
            await page.leave()
        world = (await house.client.get("/v1/world")).json()["world"]
        assert world["rooms"]["attic"]["guest"] == world["lantern"] == "the traveller"


async def test_our_client_cancels_on_the_server_and_sees_how_the_run_ended(folder: Path) -> None:
    async with (
        open_house(CuedModel(), ag_ui_grace=1_000.0) as house,
        open_page(folder, house.listening.port, ours=True) as script,
    ):
        page = Page(script)
        await page.say("Well, ~never mind.")
        await page.take_until("TEXT_MESSAGE_CONTENT")
        await script.say({"abort": True})
        events = await page.take_run()
        assert events[-1]["outcome"] == {"type": "cancelled"}
        await page.say("Go on.", "run-2")
        assert text(await page.take_run()) == "Go on."
        await page.leave()


async def test_our_client_can_cancel_a_run_before_it_is_sent_and_all_runs_at_once(folder: Path) -> None:
    async with (
        open_house(CuedModel(), ag_ui_grace=1_000.0) as house,
        open_page(folder, house.listening.port, ours=True) as script,
    ):
        page = Page(script)
        await script.say({"say": "Well, ~never mind.", "runId": "run-1", "abortAtOnce": True})
        while "over" not in await script.told():
            pass
        assert house.stage.open_turns == 0
        for number in (2, 3):
            await page.say("Well, ~never mind.", f"run-{number}")
        await page.take_until("TEXT_MESSAGE_CONTENT")
        await script.say({"abort": True})
        ends = 0
        while ends < 2:
            ends += "over" in await script.told()
        assert house.stage.open_turns == 0
        await page.leave()


async def test_our_client_asks_no_server_without_pause(folder: Path) -> None:
    """A server, or a proxy, that answers each request and then breaks off."""
    asked: list[bytes] = []

    async def answer(stream: trio.SocketStream) -> None:
        asked.append(await stream.receive_some())
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        started = b'id: 1\r\ndata: {"type":"RUN_STARTED","threadId":"bob#7","runId":"run-1"}\r\n\r\n'
        await stream.send_all(head + (started if len(asked) == 1 else b""))
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, answer, listeners)
        async with open_page(folder, listeners[0].socket.getsockname()[1], ours=True, retryMs=1_000) as script:
            page = Page(script)
            await page.say("Hello.")
            events = await page.take_until("RUN_ERROR")
            assert events[-1]["code"] == "unreachable"
            assert "over" in await script.told()
            await page.leave()
        nursery.cancel_scope.cancel()
    assert 3 < len(asked) < 12


async def test_the_stock_client_stops_a_run_by_disconnecting(folder: Path) -> None:
    async with (
        open_house(CuedModel(), ag_ui_grace=0.0) as house,
        open_page(folder, house.listening.port, ours=False) as script,
    ):
        page = Page(script)
        await page.say("Well, ~never mind.")
        events = await page.take_until("TEXT_MESSAGE_CONTENT")
        turn_id = events[0]["metadata"]["turn_id"]
        await script.say({"abort": True})
        commit = await house.stage.session("q.bob_237").finalize(turn_id).wait()
        assert [each.code for each in commit.issues] == ["turn_interrupted"]
        while "over" not in await script.told():
            pass
        await page.leave()


async def test_our_client_loses_and_repeats_nothing_wherever_its_connection_breaks(folder: Path) -> None:
    sizes = [1, 200, 300, 500, 800, 1_300, 2_100, 3_400]
    model = ScriptedModel(lambda _: [Say(SPEECH)], pace=0.0)
    async with (
        open_house(model, ag_ui_grace=1_000.0) as house,
        open_proxy(house.listening.port, [Fate(cut_down=size, rude=size % 2 == 0) for size in sizes]) as proxy,
        open_page(folder, proxy.port, ours=True) as script,
    ):
        page = Page(script)
        await page.say("Hello.")
        events = await page.take_run()
        assert text(events) == SPEECH
        assert events[-1]["outcome"] == {"type": "success"}
        assert proxy.cuts > page.reconnections > 0
        messages, _ = await page.messages()
        assert [each["content"] for each in messages] == ["Hello.", SPEECH]
        await page.leave()


async def test_our_client_ends_a_run_once_although_its_server_was_killed_in_the_middle(
    folder: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "killed.ledger"
    async with ag_ui_server(ledger) as (port, kill), open_page(folder, port, ours=True) as script:
        page = Page(script)
        await page.say("Hello.")
        await page.take_until("TEXT_MESSAGE_CONTENT")
        kill()
        async with ag_ui_server(ledger, port):
            events = await page.take_run()
            assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "runtime_restart")
            assert FIRST.startswith(text(events))
            await page.say("Hello again.", "run-2")
            assert text(await page.take_run()) == FIRST + REST
            await page.leave()
    await check_one_commit(ledger)


async def test_the_stock_client_can_ask_a_killed_and_restarted_server_again(folder: Path, tmp_path: Path) -> None:
    """It takes a broken stream for the end of a run. The same run again then begins, because it had left nothing."""
    ledger = tmp_path / "killed.ledger"
    async with ag_ui_server(ledger) as (port, kill), open_page(folder, port, ours=False) as script:
        page = Page(script)
        await page.say("Hello.")
        await page.take_until("TEXT_MESSAGE_CONTENT")
        kill()
        while "over" not in await script.told():
            pass
        async with ag_ui_server(ledger, port):
            page.events.clear()
            await page.say(None)
            events = await page.take_run()
            assert text(events) == FIRST + REST
            await page.say(None)
            again = await page.take_run()
            assert again == events
            await page.leave()
    await check_one_commit(ledger)


async def check_one_commit(ledger: Path) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [])), ledger=ledger) as stage:
        committed = await stage.ledger.latest("q.bob_237", 9)
    assert [each.outcome.value for each in committed] == ["ok"]


@pytest.mark.parametrize("number", range(3))
async def test_the_programs_in_the_guide_print_what_it_says(folder: Path, number: int) -> None:
    guide = (ROOT / "docs" / "how-to" / "clients" / "use-ag-ui.md").read_text(encoding="utf-8")
    program, output = _PROGRAM.findall(guide)[number]
    pace = 0.1 if "abortRun" in program else 0.0  # a turn that is to be canceled must not be faster
    async with open_house(cast=tavern_cast(load_seconds=0.0, pace=pace, tool_seconds=0.0)) as house:
        written = program.replace("http://127.0.0.1:7601", f"http://127.0.0.1:{house.listening.port}")
        (folder / "program.mjs").write_text(written, encoding="utf-8")
        done = await trio.run_process([str(NODES[-1]), str(folder / "program.mjs")], capture_stdout=True)
    assert done.stdout.decode() == output
