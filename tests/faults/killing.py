"""Kill a process that commits as fast as it can, and see what is left: `python tests/faults/killing.py --kills 1000`.

A nest forks one player process after the other on the same ledger file. Each prints what its client sees, one line an
event, until it is killed by SIGKILL at a random moment. Then the ledger is opened again, and must hold: it
passes the audit; every commit that was seen is in it, as it was seen; the world is what the committed turns
make it, and nothing of any other; no turn id was ever given out twice; and a subscriber that resumes at any
point of a turn has exactly one terminal and one commit_final of it in all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from footlights import (
    BusyRule,
    CommitFinal,
    Intent,
    IntentType,
    SideEffects,
    StreamEvent,
    Tool,
    ToolContext,
    TurnFinal,
    TurnParams,
    laws,
    open_stage,
    wire,
)
from footlights.authority import patch
from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.authority.rules import Ruling, accept, refuse
from footlights_actors import Call, Line, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from footlights import Cast, InteractionSession, Prompt, Stage
    from footlights.events import JsonValue

SESSIONS = 6
ENDINGS = ("turn_final", "turn_interrupted")


# -- the play: each turn pays one coin from one purse to another, or is refused


async def pay(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.turn_id, dict(arguments)))
    return True


def purses(world: dict[str, int], intents: tuple[Intent, ...]) -> Ruling:
    after = dict(world)
    for intent in intents:
        order: Any = intent.payload
        after[order["from"]] -= 1
        after[order["to"]] += 1
    if min(after.values()) < 0:
        return refuse("no_coin", "That purse is empty.")
    return accept(*(patch.replace(f"/{name}", coins) for name, coins in after.items() if coins != world[name]))


def script(prompt: Prompt) -> list[Line]:
    if prompt.exchanges:
        return [Say("Paid.")]
    giver, taker = prompt.user.split()
    return [Say("One coin"), Call("pay", {"from": giver, "to": taker})]


def cast() -> Cast:
    tool = Tool(name="pay", run=pay, side_effects=SideEffects.IMMEDIATE)
    world: dict[str, JsonValue] = {"ann": 20, "bob": 20, "cat": 0}
    return standard_cast(ScriptedModel(script), tools=[tool], world=world, rules={"purses": purses})


# -- the process that is killed


async def play(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with SqliteLedger(path) as ledger, open_stage(cast(), ledger=ledger) as stage, trio.open_nursery() as nursery:
        for _ in range(SESSIONS):
            nursery.start_soon(_chat, stage.start(), chance)


async def _chat(session: InteractionSession, chance: random.Random) -> None:
    async with session.subscribe() as stream:
        while True:
            giver, taker = chance.sample(("ann", "bob", "cat"), 2)
            turn_id = session.begin_turn(f"{giver} {taker}", TurnParams(busy=BusyRule.QUEUE))
            cancel_at = chance.randrange(12)
            async for event in stream.until_commit(turn_id):
                sys.stdout.buffer.write(wire.encode(event) + b"\n")
                sys.stdout.buffer.flush()
                if event.seq == cancel_at:
                    session.cancel(turn_id)


def nest() -> None:
    """Fork a player for each line on stdin. Importing once makes a kill cost milliseconds."""
    for line in sys.stdin:
        path, seed = line.rsplit(" ", 1)
        pid = os.fork()
        if not pid:
            with suppress(BrokenPipeError):
                trio.run(play, Path(path), int(seed))
            os._exit(1)
        print(f"pid {pid}", flush=True)
        os.waitpid(pid, 0)
        print("dead", flush=True)


# -- the one who kills, and looks


class Client:
    """What a client has seen: which turns ever, and what of those since the last look."""

    def __init__(self) -> None:
        self.ever: set[tuple[str, str]] = set()
        self.seen: dict[tuple[str, str], list[StreamEvent]] = {}
        self.commits = 0
        self.forgotten = 0
        """Turns that the ledger alone knew the end of."""
        self.head: str | None = None
        self.tools_head: str | None = None
        self.tool_steps = 0

    def see(self, event: StreamEvent) -> None:
        self.seen.setdefault((event.session_id, event.turn_id), []).append(event)
        self.commits += isinstance(event.payload, CommitFinal)


def _events_until_killed(process: subprocess.Popen[bytes], path: Path, seed: int) -> Iterator[StreamEvent]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{path} {seed}\n".encode())
    process.stdin.flush()
    lines = random.Random(seed).randrange(1, 400)
    pid = 0
    for raw in process.stdout:
        if raw == b"dead\n" or raw.endswith(b"dead\n"):
            return
        if raw.startswith(b"pid "):
            pid = int(raw.split()[1])
        elif raw.endswith(b"\n"):
            yield wire.decode(raw)
        lines -= 1
        if lines == 0:
            os.kill(pid, signal.SIGKILL)


async def _told(stage: Stage, got: list[StreamEvent]) -> list[StreamEvent]:
    """What one is told of a turn who comes back with so much of it."""
    turn_id = got[-1].turn_id
    ended = [turn_id] if any(str(event.event_type) in ENDINGS for event in got) else []
    async with stage.resume(got[-1].session_id).subscribe({turn_id: got[-1].seq}, ended) as stream:
        return [event for event in await stream.receive_batch() if event.turn_id == turn_id]


def _is_forgotten(event: StreamEvent) -> bool:
    return isinstance(event.payload, TurnFinal) and event.payload.text_forgotten


def _check(events: list[StreamEvent]) -> None:
    assert laws.check(events) == [], laws.check(events)
    assert sum(str(event.event_type) in ENDINGS for event in events) == 1
    assert sum(isinstance(event.payload, CommitFinal) for event in events) == 1


async def look(path: Path, client: Client, chance: random.Random) -> None:
    with SqliteReader(path) as reader:
        # With the heads of the last look: nothing older was lost.
        report = audit(reader, client.head, tools_head=client.tools_head)
    assert report.ok, report
    client.head, client.tools_head, client.tool_steps = report.head, report.tools_head, report.tool_steps
    async with SqliteLedger(path) as ledger, open_stage(cast(), ledger=ledger) as stage:
        for (session_id, turn_id), events in client.seen.items():
            commit = events[-1].payload
            if isinstance(commit, CommitFinal) and "runtime_restart" not in {issue.code for issue in commit.issues}:
                record = await ledger.find(session_id, turn_id)
                assert record is not None, f"{turn_id} of {session_id} was seen committed, and is not in the ledger"
                assert record.commit_digest == commit.commit_digest
        assert sum(stage.world.values()) == 40, "a coin was lost or made: half of a turn took effect"
        for events in client.seen.values():
            if isinstance(events[-1].payload, CommitFinal):
                # Somebody else may have got less of it than our client.
                got = events[: chance.randrange(1, len(events))]
                whole = got + await _told(stage, got)
                _check(whole)
                client.forgotten += any(_is_forgotten(event) for event in whole)
            else:
                events += await _told(stage, events)
                client.commits += 1
    for events in client.seen.values():
        _check(events)
    client.ever |= set(client.seen)
    client.seen.clear()


def main(kills: int, seed: int, folder: Path) -> None:
    path = folder / "killed.ledger"
    client = Client()
    command = [sys.executable, __file__, "--nest"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for number in range(kills):
            for event in _events_until_killed(process, path, seed + number):
                key = (event.session_id, event.turn_id)
                assert key not in client.ever, f"the turn id {key} came back after a restart"
                client.see(event)
            trio.run(look, path, client, random.Random(seed + number))
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {kills} kills, {client.commits} commits seen", end="", file=sys.stderr)
        process.kill()
    told = {
        "kills": kills,
        "turns": len(client.ever),
        "commits": client.commits,
        "forgotten": client.forgotten,
        "tool_steps": client.tool_steps,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nest", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.nest:
        nest()
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(arguments.kills, arguments.seed, Path(temporary))
