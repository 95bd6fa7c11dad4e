"""The programs in docs/examples run as their page says, in processes of their own."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import re
import runpy
import subprocess
import sys
import tokenize
from contextlib import asynccontextmanager, closing
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import memory_stream_pair
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from footlights import open_stage
from footlights_actors import ScriptedModel, standard_cast
from tests.kit.models.openai_wire import DONE, END, said, usage
from tests.kit.models.wire_server import Answer, open_wire_server
from tests.kit.paths import ROOT
from tests.kit.peers.js_peer import FLAGS, nodes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from trio.testing import MockClock
    from websockets.asyncio.client import ClientConnection

EXAMPLES = ROOT / "docs" / "examples"
CLIENT = ROOT / "transports/footlights_transports/static/footlights.js"
PATIENCE = 60
"""Seconds until a program that hangs fails its test."""

BROWSER = """
const heard = {};
const element = (name) => ({
    text: "",
    append(text) { this.text += text; if (this.text.includes("[committed: ok]")) finish(this.text); },
    addEventListener(kind, listener) { heard[name + kind] = listener; if (name === "#stop") setTimeout(submit); },
});
const elements = { "#story": element("#story"), "form": element("form"), "#stop": element("#stop") };
globalThis.document = { querySelector: (name) => elements[name] };
const submit = () => heard.formsubmit({
    preventDefault() {},
    target: { elements: { said: { value: "A bowl of stew, please" } }, reset() {} },
});
const finish = (text) => { process.stdout.write(text); process.exit(0); };
"""
"""As much of a browser as the page uses. It says one thing, and ends with the commit of that turn."""


async def run(name: str, *arguments: str, log: str = "") -> str:
    """What an example prints. It must succeed, and log this and nothing else."""
    with trio.fail_after(PATIENCE):
        done = await trio.run_process(
            [sys.executable, str(EXAMPLES / name), *arguments], capture_stdout=True, capture_stderr=True, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    assert re.fullmatch(log, done.stderr.decode())
    return done.stdout.decode()


@asynccontextmanager
async def running(name: str, *arguments: str) -> AsyncGenerator[str]:
    """The first line that a server among the examples prints; the server ends with the block."""
    process = await trio.lowlevel.open_process(
        [sys.executable, str(EXAMPLES / name), *arguments], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = b""
        with trio.fail_after(PATIENCE):
            while not line.endswith(b"\n"):
                data = await process.stdout.receive_some()
                assert data, f"{name} ended early"
                line += data
        yield line.decode()
    finally:
        process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()
            await process.stdout.aclose()


async def read_until(connection: trio.SocketStream, mark: bytes) -> str:
    text = b""
    with trio.fail_after(PATIENCE):
        while mark not in text:
            data = await connection.receive_some()
            assert data, text
            text += data
    return text.decode()


async def test_the_custom_view_shows_sentences() -> None:
    async with running("custom_view.py") as line:
        found = re.search(r":(\d+)/subtitles/", line)
        assert found is not None
        with trio.fail_after(PATIENCE):
            shown = await trio.to_thread.run_sync(_first_subtitle, int(found[1]))
    assert re.fullmatch(rb"data: [A-Z][^.]*\.\n", shown)


def _first_subtitle(port: int) -> bytes:
    with closing(_connected(port)) as commands, closing(_connected(port)) as events:
        session = json.loads(_ask(commands, "POST", "/v1/sessions").read())["session_id"]
        subtitles = _ask(events, "GET", f"/subtitles/{session}")
        _ask(commands, "POST", f"/v1/sessions/{session}/turns", '{"input": "A bowl of stew, please"}')
        return subtitles.readline()


def _connected(port: int) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", port, timeout=PATIENCE)


def _ask(connection: HTTPConnection, method: str, path: str, body: str | None = None) -> HTTPResponse:
    connection.request(method, path, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.status < 300
    return answer


async def test_the_custom_ledger_keeps_the_contract() -> None:
    assert await run("custom_ledger.py") == "The journal keeps the contract.\n"


def test_the_game_loop_shows_a_turn_and_interrupts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    pygame = pytest.importorskip("pygame")
    frames: list[int] = []
    pictures_of_turns: list[int] = []

    def pictures_until(caption: str, most: int) -> Iterator[None]:
        frames.clear()
        while pygame.display.get_caption()[0] != caption and len(set(frames)) < most:
            yield
        pictures_of_turns.append(len(set(frames)))

    def player() -> Iterator[None]:
        press(pygame.K_SPACE)
        yield from pictures_until("committed: ok", 1_000)
        press(pygame.K_SPACE)
        yield from pictures_until("", 8)
        press(pygame.K_x)
        yield from pictures_until("committed: fail_closed", 1_000)
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        yield

    def press(key: int) -> None:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))

    def flip() -> None:
        show()
        frames.append(hash(pygame.image.tobytes(pygame.display.get_surface(), "RGB")))
        next(playing, None)

    playing, show = player(), pygame.display.flip
    example = runpy.run_path(str(EXAMPLES / "pygame_loop.py"))
    monkeypatch.setattr(pygame.display, "flip", flip)
    example["main"]()
    whole, _, _ = pictures_of_turns
    assert whole > 10, "the text came at once"


def test_players_of_the_asyncio_server_share_a_world_and_can_interrupt() -> None:
    example = runpy.run_path(str(EXAMPLES / "asyncio_server.py"))

    async def hears(player: ClientConnection, end: str) -> str:
        heard = ""
        while not heard.endswith(end):
            heard += str(await player.recv())
        return heard

    async def play() -> None:
        stage = example["StageThread"](example["CAST"])
        async with example["opened"](stage), serve(partial(example["play"], stage), "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with connect(f"{url}/ann%231") as one, connect(f"{url}/bob") as other:
                await one.send("A room, please.")
                assert await hears(one, "]") == "Let me see. Up the stairs, and mind your head.[committed: ok]"
                await other.send("")
                assert await hears(other, "]") == "[invalid_command]"
                await other.send("Good evening.")
                await hears(other, "story. ")
                await other.send("A room, please.")
                assert (await hears(other, "]")).endswith("[barge_in]")
                assert await hears(other, "]") == "[committed: fail_closed]"
                assert (await hears(other, "]")).endswith("your head.[committed: fail_closed]")
                await other.send("A story.")
                await hears(other, "Once")
            async with connect(f"{url}/bob") as again:  # perhaps before his first session is closed
                await again.send("Good evening.")
                await hears(again, "story. ")
        assert stage._thread.has_ended

    asyncio.run(asyncio.wait_for(play(), PATIENCE))


async def test_the_asyncio_server_listens() -> None:
    async with running("asyncio_server.py", "--port", "0") as line:
        assert re.fullmatch(r"Listening on ws://127\.0\.0\.1:\d+/\n", line)


@pytest.mark.parametrize("name", ["asyncio_server.py", "evennia_npc.py", "pygame_loop.py"])
def test_the_glue_of_an_example_has_no_more_lines_than_it_says(name: str) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    found = re.search(r"^# -- glue: at most (\d+) lines$", text, re.MULTILINE)
    assert found is not None
    first = text[: found.start()].count("\n") + 1
    later = [number for number, line in enumerate(text.splitlines(), 1) if number > first and line.startswith("# --")]
    glue = range(first, min(later, default=len(text.splitlines()) + 1))
    lines = {number for number in code_lines(text) if number in glue}
    assert int(found[1]) - 5 <= len(lines) <= int(found[1])


def code_lines(text: str) -> set[int]:
    """The lines that are neither empty nor part of a comment or a docstring."""
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = {
        number
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in ignored
        for number in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=start, end_lineno=int(end)):
                lines.difference_update(range(start, end + 1))
    return lines


async def test_the_npc_says_what_an_openai_compatible_server_streams() -> None:
    answer = Answer((*said("Aye,", " the attic."), END, usage(7, 3), DONE))
    async with open_wire_server(answer) as server:
        shown = await run("ollama_npc.py", "A room?", "--base-url", f"{server.url}/v1", "--model", "qwen3")
    [request] = server.requests
    assert shown == "(Odo wakes up ...)\nAye, the attic.\n[committed: ok]\n"
    assert request.target == "/v1/chat/completions"
    assert request.body["model"] == "qwen3"
    assert [each["role"] for each in request.body["messages"]] == ["system", "user"]
    assert "authorization" not in request.headers


async def test_the_npc_says_why_it_is_silent() -> None:
    async with open_wire_server(Answer(("{}",), status=404)) as server:
        log = r"t1-000001 of s1-000001 failed: model_not_found at \S+: \S+ has no model \S+, or no such path .*\n"
        shown = await run("ollama_npc.py", "A room?", "--base-url", f"{server.url}/v1", log=log)
    assert ", or no such path (HTTP 404). Does Ollama run, and does it have the model?" in shown
    assert shown.endswith("[committed: fail_closed]\n")


async def test_players_of_the_tcp_server_share_a_world_and_can_interrupt() -> None:
    async with running("tcp_game_server.py", "--port", "0") as line:
        port = int(line.rsplit(maxsplit=1)[1])
        one, other = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(2)]
        async with one, other:
            await one.send_all(b"Please ring.\n")
            assert await read_until(one, b"]\n") == "As you wish. Ding!\n[ok, rings: 1]\n"
            await other.send_all(b"\nHello.\n")
            assert (await read_until(other, b"Good")).startswith("! invalid_command\n")
            await other.send_all(b"stop\n")
            assert (await read_until(other, b"]\n")).endswith(" ... (canceled)\n[fail_closed, rings: 1]\n")


async def test_a_tcp_client_that_reads_nothing_is_disconnected_and_delays_no_other(quiet_clock: MockClock) -> None:
    example = runpy.run_path(str(EXAMPLES / "tcp_game_server.py"))
    cast = standard_cast(ScriptedModel(example["innkeeper"], pace=0.02), world={"rings": 0})
    began = trio.current_time()
    async with open_stage(cast) as stage, trio.open_nursery() as nursery:
        (deaf, to_deaf), (other, to_other) = memory_stream_pair(), memory_stream_pair()
        deliver = to_deaf.send_stream.send_all_hook
        assert deliver is not None

        async def deliver_and_block() -> None:
            await deliver()
            await trio.sleep_forever()

        to_deaf.send_stream.send_all_hook = deliver_and_block
        nursery.start_soon(example["serve"], stage, to_deaf)
        nursery.start_soon(example["serve"], stage, to_other)
        await deaf.send_all(b"Hello.\n\n")  # its tokens and the error for its empty line come from two tasks
        await other.send_all(b"Hello.\n")
        heard = b""
        while b"[ok, rings: 0]" not in heard:
            heard += await other.receive_some()
        assert trio.current_time() < began + example["SEND_TIMEOUT"]
        assert [bytes(data) async for data in deaf] == [b"! invalid_command\n"]
        assert trio.current_time() == pytest.approx(began + example["SEND_TIMEOUT"])
        await other.aclose()


@pytest.mark.skipif(not nodes(), reason="there is no Node here")
async def test_the_web_page_plays_a_turn(tmp_path: Path) -> None:
    async with running("web_page.py", "--page-port", "0", "--ws-port", "0") as line:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found is not None
        served = await trio.to_thread.run_sync(_get, int(found[1]), "/footlights.js")
        page = await trio.to_thread.run_sync(_get, int(found[1]), "/")
        (tmp_path / "footlights.js").write_text(served, encoding="utf-8")
        script = re.search(r'<script type="module">(.*)</script>', page, re.DOTALL)
        assert script is not None
        body = script[1].replace('"/footlights.js"', '"./footlights.js"')
        (tmp_path / "package.json").write_text('{"type": "module"}')
        (tmp_path / "page.js").write_text(f'import "./browser.js";\n{body}', encoding="utf-8")
        (tmp_path / "browser.js").write_text(BROWSER, encoding="utf-8")
        with trio.fail_after(PATIENCE):
            done = await trio.run_process([nodes()[0], *FLAGS, str(tmp_path / "page.js")], capture_stdout=True)
    assert served == CLIENT.read_text(encoding="utf-8")
    assert done.stdout.decode().startswith("> A bowl of stew, please\n")
    assert "One stew" in done.stdout.decode()


def _get(port: int, path: str) -> str:
    with closing(_connected(port)) as connection:
        return _ask(connection, "GET", path).read().decode()


def test_every_example_is_on_the_page_with_the_command_that_runs_it() -> None:
    page = (EXAMPLES / "index.md").read_text(encoding="utf-8")
    for example in sorted(EXAMPLES.glob("*.py")):
        command = f".venv/bin/python docs/examples/{example.name}"
        assert f"]({example.name})" in page, example.name
        if example.name == "evennia_npc.py":
            command = "talk A lantern, please."
        assert command in page, example.name
        assert command in example.read_text(encoding="utf-8"), example.name
