"""A server to be killed: its model says one word and then nothing. Prints its port.

python held_server.py LEDGER PORT
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import trio

from footlights import open_stage
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.native.view import NativeView
from footlights_transports.websocket.server import serve_ws


async def main(ledger: Path, port: int) -> None:
    cast = standard_cast(ScriptedModel(lambda _: [Say("Well,"), Stall()]))
    async with open_stage(cast, ledger=ledger) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage)
        serve = partial(serve_ws, access, [NativeView().mount(access)], host="127.0.0.1", port=port)
        listening = await nursery.start(serve)
        print(listening.port, flush=True)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
