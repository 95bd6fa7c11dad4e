"""A game server over plain TCP: one line in is one turn, and all players share one world.

    .venv/bin/python docs/examples/tcp_game_server.py
    nc 127.0.0.1 7650

Say anything, `ring` to ring the bell, and `stop` to interrupt. A client that reads slowly slows no other: its
subscription joins tokens. A client that does not take what it is sent within `SEND_TIMEOUT` seconds is disconnected.
"""

import argparse
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import trio

from footlights import (
    CommitFinal,
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
SEND_TIMEOUT = 10

Send = Callable[[str], Awaitable[None]]


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


async def serve(stage: Stage, connection: trio.abc.Stream) -> None:
    """Serve one player. Errors that a client can cause end its own connection, and no other."""
    try:
        async with connection:
            await play(stage, connection)
    except* (trio.BrokenResourceError, trio.TooSlowError, FootlightsError):
        pass  # the player is gone or reads nothing, or the stage has no room for another session


async def play(stage: Stage, connection: trio.abc.Stream) -> None:
    """Begin a turn for each line, and send what happens, until the connection ends."""
    send = partial(send_text, connection, trio.Lock())
    session = stage.start()
    try:
        async with aclosing(lines(connection)) as said, session.subscribe() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(tell, stage, stream, send)
            async for line in said:
                try:
                    _ = session.cancel() if line == "stop" else session.begin_turn(line)
                except FootlightsError as error:  # it is busy, or the line is empty: the player may go on
                    await send(f"! {error.code}\n")
            nursery.cancel_scope.cancel()
    finally:
        await session.close()


async def tell(stage: Stage, stream: Subscription, send: Send) -> None:
    """Send one player what happens in its session. Raises `Detached` if it is too far behind."""
    async for event in stream:
        match event.payload:
            case TokenDelta(delta=delta):
                await send(delta)
            case TurnInterrupted(reason=reason):
                await send(f" ... ({reason})")
            case CommitFinal(commit_outcome=outcome):
                await send(f"\n[{outcome}, rings: {stage.world['rings']}]\n")


async def send_text(connection: trio.abc.SendStream, lock: trio.Lock, text: str) -> None:
    """Send for one task at a time. Raises `TooSlowError` for a client that does not read."""
    with trio.fail_after(SEND_TIMEOUT):
        async with lock:
            await connection.send_all(text.encode())


async def lines(connection: trio.abc.ReceiveStream) -> AsyncGenerator[str, None]:
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
        listen = partial(trio.serve_tcp, partial(serve, stage), port, host="127.0.0.1")
        [listener] = await nursery.start(listen)
        print(f"Listening on 127.0.0.1, port {listener.socket.getsockname()[1]}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=7650)
    trio.run(main, parser.parse_args().port)
