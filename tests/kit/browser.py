"""A real browser: headless Chromium, driven by the DevTools protocol over a WebSocket.

    async with open_browser() as browser, browser.open_page(url) as page:
        await page.wait_for("document.querySelector('h1')")

Debian's package `chromium` is enough. `CHROMIUM` names another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from base64 import b64decode
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import orjson
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

NO_BROWSER = "no browser: install Chromium (Debian: apt-get install chromium), or name one in CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "about:blank",
)
_MAX_MESSAGE = 64 * 1024 * 1024
_GLANCE = 0.02


def find_browser() -> str | None:
    """The program, or None."""
    given = os.environ.get("CHROMIUM")
    return given or next((found for each in NAMES if (found := shutil.which(each))), None)


class PageFailed(AssertionError):
    """The page did not do what a test waited for, or a script in it raised."""


class Page:
    """One tab. `complaints` are what its console said that is an error or a warning."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self.target = target
        self.complaints: list[str] = []

    async def call(self, method: str, **params: Any) -> Any:
        """One command of the DevTools protocol."""
        return await self._browser.call(method, params, self._session)

    async def evaluate(self, script: str) -> Any:
        """The value of an expression, awaited if it is a promise."""
        answer = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise PageFailed(answer["exceptionDetails"].get("exception", {}).get("description", script))
        return answer["result"].get("value")

    async def wait_for(self, script: str, seconds: float = 10) -> None:
        """Wait until an expression is true."""
        with trio.move_on_after(seconds):
            while True:
                if await self.evaluate(f"!!({script})"):
                    return
                await trio.sleep(_GLANCE)
        shown = await self.evaluate("document.body.innerText.slice(0, 1500)")
        raise PageFailed(f"waited for {script}\nconsole: {self.complaints}\nthe page shows:\n{shown}")

    async def click(self, text: str, within: str = "body") -> None:
        """Click the button or link with this text."""
        find = (
            f"[...document.querySelector({within!r}).querySelectorAll('button, a, summary')]"
            f".find((each) => each.innerText.trim().includes({text!r}) && each.checkVisibility())"
        )
        await self.wait_for(f"!!{find}")
        await self.evaluate(f"{find}.click()")

    async def type(self, selector: str, text: str) -> None:
        """Type into a field, as a keyboard does."""
        await self.evaluate(f"document.querySelector({selector!r}).focus()")
        await self.call("Input.insertText", text=text)

    async def press(self, key: str, code: int) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    async def resize(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def prefer(self, theme: str) -> None:
        """The theme that the system prefers: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def screenshot(self, file: Path, *, whole: bool = True) -> None:
        if whole:
            size = await self.evaluate("[innerWidth, Math.max(innerHeight, document.documentElement.scrollHeight)]")
            await self.resize(*size)
        shot = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        await trio.Path(file).write_bytes(b64decode(shot["data"]))


class Browser:
    def __init__(self, socket: WebSocketConnection) -> None:
        self._socket = socket
        self._count = 0
        self._answers: dict[int, tuple[trio.Event, dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}

    async def call(self, method: str, params: dict[str, Any], session: str | None = None) -> Any:
        self._count += 1
        arrived, answer = self._answers[self._count] = trio.Event(), {}
        message = {"id": self._count, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        await self._socket.send_message(orjson.dumps(message).decode())
        await arrived.wait()
        if "error" in answer:
            raise PageFailed(f"{method}: {answer['error']['message']}")
        return answer["result"]

    async def read(self) -> None:
        try:
            while True:
                self._take(orjson.loads(await self._socket.get_message()))
        except ConnectionClosed:
            pass

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            arrived, answer = self._answers.pop(message["id"])
            answer.update(message)
            arrived.set()
            return
        page = self._pages.get(message.get("sessionId", ""))
        if page is None:
            return
        params = message["params"]
        match message["method"]:
            case "Runtime.exceptionThrown":
                page.complaints.append(str(params["exceptionDetails"].get("exception", params)))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                page.complaints.append(str([each.get("value") for each in params["args"]]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                page.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            case _:
                pass

    @asynccontextmanager
    async def open_page(self, url: str, *, width: int = 1280, height: int = 800) -> AsyncGenerator[Page]:
        target = (await self.call("Target.createTarget", {"url": "about:blank"}))["targetId"]
        attached = await self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"], target)
        for domain in ("Page", "Runtime", "Log"):
            await page.call(f"{domain}.enable")
        await page.resize(width, height)
        await page.call("Page.navigate", url=url)
        await page.wait_for("location.href !== 'about:blank' && document.readyState === 'complete'")
        try:
            yield page
        finally:
            with trio.move_on_after(5, shield=True):
                await self.call("Target.closeTarget", {"targetId": target})


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    program = find_browser()
    assert program is not None, "there is no Chromium; ask find_browser first"
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        command = [program, f"--user-data-dir={folder}", *_FLAGS]
        process = await trio.lowlevel.open_process(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        try:
            async with (
                open_websocket_url(await _address(Path(folder)), max_message_size=_MAX_MESSAGE) as socket,
                trio.open_nursery() as nursery,
            ):
                browser = Browser(socket)
                nursery.start_soon(browser.read)
                yield browser
                nursery.cancel_scope.cancel()
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def _address(folder: Path) -> str:
    """The address of the browser, which it writes to a file once it listens."""
    file = trio.Path(folder / "DevToolsActivePort")
    with trio.fail_after(30):
        while True:
            lines = (await file.read_text()).split("\n") if await file.exists() else []
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            await trio.sleep(_GLANCE)
