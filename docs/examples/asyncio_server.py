"""A game server on asyncio and `websockets`: each connection is a player, and each text that it sends is a turn.

    .venv/bin/python -m pip install websockets
    .venv/bin/python docs/examples/asyncio_server.py
    .venv/bin/websockets ws://127.0.0.1:7651/bob

Say anything, or `room` to rent one. What you say while the innkeeper talks interrupts her.
"""

import argparse
import asyncio
from functools import partial
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from footlights import (
    BusyRule,
    CommitFinal,
    FootlightsError,
    Intent,
    IntentType,
    Prompt,
    SessionParams,
    TokenDelta,
    ToolContext,
    TurnInterrupted,
    TurnParams,
    quote_session_id,
    tool,
)
from footlights.authority import Ruling, accept, patch, refuse
from footlights_actors import Call, Line, Say, ScriptedModel, standard_cast
from footlights_transports import StageThread, ThreadSession
from footlights_transports.embed.asyncio import answer, opened, read

# -- the game: its model, its tool and its rule


def innkeeper(prompt: Prompt) -> list[Line]:
    if prompt.exchanges:
        return [Say("Up the stairs, and mind your head.")]
    if "room" in prompt.user:
        return [Say("Let me see. "), Call("rent_room", {})]
    return [Say("Good evening. Sit down, and I will tell you a story. "), Say("Once upon a time, " * 40)]


@tool
async def rent_room(context: ToolContext) -> str:
    """Rent a room to the player."""
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id))
    return "rented"


def vacancy(world: Any, intents: tuple[Intent, ...]) -> Ruling:
    if len(intents) > world["rooms"]:
        return refuse("full", "There is no room left.")
    return accept(patch.replace("/rooms", world["rooms"] - len(intents))) if intents else accept()


CAST = standard_cast(
    ScriptedModel(innkeeper, pace=0.02), tools=[rent_room], world={"rooms": 1}, rules={"vacancy": vacancy}
)


# -- glue: at most 30 lines


async def play(stage: StageThread, socket: ServerConnection) -> None:
    """One player, from the first text to the end of the connection."""
    assert socket.request is not None
    # With the connection's own id, because a player may be back before his old connection has ended.
    name = f"{quote_session_id(socket.request.path)}.{socket.id.hex}"
    session = await answer(stage.start_soon(SessionParams(session_id=name)))
    try:
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(tell(session, socket))
            async for said in socket:
                try:
                    await answer(session.begin_turn_soon(str(said), TurnParams(busy=BusyRule.INTERRUPT)))
                except FootlightsError as error:  # the text is empty or too long: the player may go on
                    await socket.send(f"[{error.code}]")
            telling.cancel()
    except* ConnectionClosed:
        pass  # the player went while something was sent
    finally:
        await answer(session.close_soon())


async def tell(session: ThreadSession, socket: ServerConnection) -> None:
    async for event in read(session):
        match event.payload:
            case TokenDelta(delta=delta):
                await socket.send(delta)
            case TurnInterrupted(reason=reason):
                await socket.send(f"[{reason}]")
            case CommitFinal(commit_outcome=outcome):
                await socket.send(f"[committed: {outcome}]")


async def main(port: int) -> None:
    async with opened(StageThread(CAST)) as stage, serve(partial(play, stage), "127.0.0.1", port) as server:
        print(f"Listening on ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
        await server.serve_forever()


# -- the program

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=7651)
    asyncio.run(main(parser.parse_args().port))
