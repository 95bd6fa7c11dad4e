"""A game server over plain TCP: one line in is one turn, and all players share one world.

    .venv/bin/python docs/examples/tcp_game_server.py
    nc 127.0.0.1 7650

Say anything, `ring` to ring the bell, and `stop` to interrupt. A client that reads slowly slows nobody down: its
subscription joins tokens, and a client that reads nothing at all is detached and disconnected.
"""

import argparse
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import trio

from footlights import (
    CommitFinal,
    Detached,
    FootlightsError,
    Intent,
    IntentType,
    Prompt,
    Stage,
    Subscription,
    TokenDelta,
    ToolContext,
    TurnInterrupted,
    open_stage,
    tool,
)
from footlights.authority import Ruling, accept, patch
from footlights_actors import Call, Line, Say, ScriptedModel, standard_cast

MAX_LINE = 1_000


def innkeeper(prompt: Prompt) -> list[Line]:
    if prompt.exchanges:
        return [Say(" Ding!")]
    if "ring" in prompt.user:
        return [Say("As you wish."), Call("ring_bell", {})]
    return [Say("Good evening. Sit down, and I will tell you a story. "), Say("Once upon a time, " * 40)]


@tool
async def ring_bell(context: ToolContext) -> str:
    """Ring the bell on the counter."""
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, {}))
    return "rung"


def bell(world: Any, intents: tuple[Intent, ...]) -> Ruling:
    return accept(patch.replace("/rings", world["rings"] + len(intents)))


async def play(stage: Stage, connection: trio.SocketStream) -> None:
    """Serve one player until the connection ends."""
    session = stage.start()
    try:
        async with connection, session.subscribe() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(tell, stage, stream, connection, nursery.cancel_scope)
            async for line in lines(connection):
                try:
                    _ = session.cancel() if line == "stop" else session.begin_turn(line)
                except FootlightsError as error:  # it is busy, or the line is empty: the player may go on
                    await connection.send_all(f"! {error.code}\n".encode())
            nursery.cancel_scope.cancel()
    except* trio.BrokenResourceError:
        pass  # the player is gone
    finally:
        await session.close()


async def tell(stage: Stage, stream: Subscription, connection: trio.SocketStream, everything: trio.CancelScope) -> None:
    """Send one player what happens in its session."""
    try:
        async for event in stream:
            match event.payload:
                case TokenDelta(delta=delta):
                    await connection.send_all(delta.encode())
                case TurnInterrupted(reason=reason):
                    await connection.send_all(f" ... ({reason})".encode())
                case CommitFinal(commit_outcome=outcome):
                    await connection.send_all(f"\n[{outcome}, rings: {stage.world['rings']}]\n".encode())
    except Detached:
        everything.cancel()  # the player reads nothing


async def lines(connection: trio.SocketStream) -> AsyncIterator[str]:
    waiting = b""
    async for data in connection:
        *whole, waiting = (waiting + data).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace").strip()
        if len(waiting) > MAX_LINE:
            return


async def main(port: int) -> None:
    model = ScriptedModel(innkeeper, pace=0.02)
    cast = standard_cast(model, tools=[ring_bell], world={"rings": 0}, rules={"bell": bell})
    async with open_stage(cast) as stage, trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, partial(play, stage), port, host="127.0.0.1")
        [listener] = await nursery.start(serve)
        print(f"Listening on 127.0.0.1, port {listener.socket.getsockname()[1]}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=7650)
    trio.run(main, parser.parse_args().port)
