"""A server to be killed: `python ws_house.py LEDGER PORT` prints the port that it listens on, and serves until then."""

from __future__ import annotations

import sys
from functools import partial

import trio

from footlights import Prompt, open_stage
from footlights_actors import Line, Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.native.view import NativeView
from footlights_transports.websocket.server import serve_ws

WORDS = " ".join(f"word{number}" for number in range(12))
PACE = 0.005


def script(prompt: Prompt) -> list[Line]:
    return [Say(WORDS), Stall()] if "for ever" in prompt.user else [Say(WORDS)]


async def main(ledger: str, port: int) -> None:
    cast = standard_cast(ScriptedModel(script, pace=PACE))
    async with open_stage(cast, ledger=ledger) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage)
        mounts = [NativeView().mount(access)]
        listening = await nursery.start(partial(serve_ws, access, mounts, host="127.0.0.1", port=port))
        print(listening.port, flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]))
