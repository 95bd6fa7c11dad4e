"""Second opinion on latencies: an independent client on asyncio and `websockets`. It shares no code with the harness.

It plays the plan on its standard input, with one socket a player, and writes every latency in milliseconds:

    {"url": "ws://...", "players": 2, "warm_up": 1.0, "plan": [{"player": 0, "due": 0.5, ...}, ...]}
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import websockets

_PATIENCE = 60.0
_V1 = websockets.Subprotocol("footlights.v1")


class Player:
    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.session = ""
        self.turns: dict[str, dict[str, float]] = {}
        self.over: dict[str, asyncio.Event] = {}
        self.replies: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def ask(self, op: str, **fields: object) -> dict[str, Any]:
        number = len(self.replies) + 1
        reply = self.replies[number] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps({"op": op, "id": number, **fields}))
        result: dict[str, Any] = await reply
        return result

    async def listen(self) -> None:
        async for frame in self.socket:
            now, message = time.perf_counter(), json.loads(frame)
            if "reply" in message:
                self.replies[message["reply"]].set_result(message["result"])
            elif "event_type" in message:
                self.turns.setdefault(message["turn_id"], {}).setdefault(message["event_type"], now)
                if message["event_type"] == "commit_final":
                    self.over.setdefault(message["turn_id"], asyncio.Event()).set()


async def play(order: dict[str, Any]) -> dict[str, list[float]]:
    sockets = [await websockets.connect(order["url"], subprotocols=[_V1]) for _ in range(order["players"])]
    players = [*map(Player, sockets)]
    listening = [asyncio.create_task(player.listen()) for player in players]
    for player in players:
        player.session = (await player.ask("start"))["session_id"]
        await player.ask("subscribe", session_id=player.session)
    found: dict[str, list[float]] = {"accept": [], "first_token": [], "cancel": []}
    start = time.perf_counter() + 0.1

    async def sleep_until(due: float) -> None:
        await asyncio.sleep(max(0.0, start + due - time.perf_counter()))

    async def turn(planned: dict[str, Any]) -> None:
        player, due, cancel_due = players[planned["player"]], planned["due"], planned["cancel_due"]
        await sleep_until(due)
        begun = await player.ask("begin_turn", session_id=player.session, input=planned["said"])
        seen = player.turns.setdefault(begun["turn_id"], {})
        if cancel_due is not None:
            await sleep_until(cancel_due)
            if "turn_final" not in seen:
                await player.ask("cancel", session_id=player.session, turn_id=begun["turn_id"])
        await asyncio.wait_for(player.over.setdefault(begun["turn_id"], asyncio.Event()).wait(), _PATIENCE)
        if due < order["warm_up"]:
            return
        found["accept"].append(1e3 * (seen["turn_accepted"] - start - due))
        if cancel_due is None:
            found["first_token"].append(1e3 * (seen["token_delta"] - start - due))
        elif "turn_interrupted" in seen:
            found["cancel"].append(1e3 * (seen["turn_interrupted"] - start - cancel_due))

    await asyncio.gather(*map(turn, order["plan"]))
    for task in listening:
        task.cancel()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(play(json.load(sys.stdin)))))
