"""A web page that talks to the tavern: the WebSocket server of Footlights, and a page that uses its JavaScript client.

    .venv/bin/python docs/examples/web_page.py

The page has another port than the WebSocket server, and so another origin. Without tokens, pages of this machine may
connect all the same; for a page from elsewhere, the policy has to name its origin.
"""

import argparse
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread

import trio

from footlights import open_stage
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import AccessPolicy
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.native.view import NativeView
from footlights_transports.websocket.server import serve_ws

CLIENT = files("footlights_transports") / "static" / "footlights.js"
PAGE = Path(__file__).with_suffix(".html")


def page_server(port: int, pages: dict[str, tuple[str, str]]) -> ThreadingHTTPServer:
    """Serve these paths, each with its type and its text. Any static web server does as well."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, text = pages.get(self.path, ("", ""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


async def main(page_port: int, ws_port: int) -> None:
    pages = {"/footlights.js": ("text/javascript", CLIENT.read_text(encoding="utf-8"))}
    web = page_server(page_port, pages)
    origin = f"http://127.0.0.1:{web.server_port}"
    async with open_stage(tavern_cast(load_seconds=0.5, tool_seconds=0.2)) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage, AccessPolicy())
        native = NativeView().mount(access)
        listening = await nursery.start(partial(serve_ws, access, [native], host="127.0.0.1", port=ws_port))
        page = PAGE.read_text(encoding="utf-8").replace("WS_URL", f"ws://127.0.0.1:{listening.port}")
        pages["/"] = ("text/html; charset=utf-8", page)
        Thread(target=web.serve_forever, daemon=True).start()
        print(f"Open {origin}/ in a browser, and ask for a room.", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--page-port", type=int, default=8000)
    parser.add_argument("--ws-port", type=int, default=7600)
    options = parser.parse_args()
    try:
        trio.run(main, options.page_port, options.ws_port)
    except KeyboardInterrupt:
        print("Closed.")
