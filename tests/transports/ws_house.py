"""A server to be killed: `python ws_house.py LEDGER PORT` prints the port that it listens on, and serves until then."""

from __future__ import annotations

import sys
from functools import partial

import trio

from footlights import open_stage
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports.desk import FrontDesk
from footlights_transports.gate import Gate
from footlights_transports.ws_server import serve_ws

WORDS = " ".join(f"word{number}" for number in range(12))
PACE = 0.005


async def main(ledger: str, port: int) -> None:
    cast = standard_cast(ScriptedModel(lambda _: [Say(WORDS)], pace=PACE))
    async with open_stage(cast, ledger=ledger) as stage, trio.open_nursery() as nursery:
        listening = await nursery.start(partial(serve_ws, FrontDesk(stage, Gate()), host="127.0.0.1", port=port))
        print(listening.port, flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]))
