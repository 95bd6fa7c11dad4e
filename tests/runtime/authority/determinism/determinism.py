"""One evening at a market, always the same. Run as a program, this file prints its digests.

Several sessions, tools, rules, artifacts, turns at once, turns that are interrupted, refused or fail, and a restart;
numbers and names whose canonical form is not the obvious one. Every moment has its own place on a virtual clock, so
nothing is left to chance, and every run must give the same digests: in any process, under any hash seed, on any
machine, with any Python.

    python determinism.py --write     makes golden_digests.json anew, after a change of format
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen
from trio.testing import MockClock

from footlights import BusyRule, Intent, IntentType, SideEffects, Tool, ToolContext, ToolError, TurnParams, open_stage
from footlights.authority import patch
from footlights.authority.artifacts import Artifact
from footlights.authority.audit.audit import audit
from footlights.authority.audit.rebuild import read_record
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.authority.rules import Ruling, accept, every_turn, refuse
from footlights.testing import quiesced_threads
from footlights_actors import Call, Fail, Line, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights import Cast, Prompt, Stage
    from footlights.authority.audit.reader import Entry
    from footlights.events import JsonValue

GOLDEN = Path(__file__).with_name("golden_digests.json")

GENESIS: dict[str, JsonValue] = {
    "till": 0,
    "stock": {"apple": 7, "Äpfel": 3, "\ue000": 2, "\U0001f34e": 5, "pear": 0},
    "scales": [1.0, 0.1, 1e-7, -0.0, 2.5e21, 123456.789],
    "sold": [],
}


# -- what can be done there


async def sell(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    await trio.sleep(0.03)
    if arguments["good"] not in context.world["stock"]:
        raise ToolError("There is no such thing here.")
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, dict(arguments)))
    return True


async def weigh(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    await trio.sleep(0.05)
    context.request_commit(Intent(IntentType.DECISION, context.tool_call_id, dict(arguments)))
    return True


TOOLS = (
    Tool(name="sell", run=sell, side_effects=SideEffects.IMMEDIATE),
    Tool(name="weigh", run=weigh, cancel_safe=True, side_effects=SideEffects.NONE),
)


@every_turn
def stock(world: dict[str, Any], intents: tuple[Intent, ...]) -> Ruling:
    orders: list[Any] = [intent.payload for intent in intents if intent.type is IntentType.TOOL_RESULT]
    before: dict[str, int] = world["stock"]
    left = dict(before)
    for order in orders:
        left[order["good"]] -= order["number"]
    if short := sorted(good for good, number in left.items() if number < 0):
        return refuse("out_of_stock", f"{len(short)} goods are not there.")
    changes = [
        patch.replace(f"/stock/{good}", number) for good, number in left.items() if number != world["stock"][good]
    ]
    receipts = [Artifact("receipt", {"good": order["good"], "price": order["number"] * 0.1}) for order in orders]
    return accept(*changes, artifacts=receipts)


@every_turn
def till(world: dict[str, Any], intents: tuple[Intent, ...]) -> Ruling:
    orders: list[Any] = [intent.payload for intent in intents if intent.type is IntentType.TOOL_RESULT]
    if not orders:
        return accept()
    taken = sum(order["number"] for order in orders)
    sold = [patch.add("/sold/-", f"{order['number']} {order['good']}") for order in orders]
    return accept(patch.replace("/till", world["till"] + taken), *sold)


@every_turn
def scales(world: dict[str, Any], intents: tuple[Intent, ...]) -> Ruling:
    weights: list[Any] = [intent.payload for intent in intents if intent.type is IntentType.DECISION]
    return accept(*(patch.add("/scales/0", weight["grams"] / 3) for weight in weights))


def script(prompt: Prompt) -> list[Line]:
    if prompt.exchanges:
        return [Say("There you are.")]
    match prompt.user.split():
        case ["buy", number, good]:
            return [Say("One moment."), Pause(0.02), Call("sell", {"good": good, "number": int(number)})]
        case ["weigh", *grams]:
            return [Call("weigh", {"grams": float(each)}) for each in grams]
        case ["both", number, good]:
            return [Call("weigh", {"grams": 1.5}), Call("sell", {"good": good, "number": int(number)})]
        case ["faint"]:
            return [Say("Oh"), Fail(RuntimeError("fainted"))]
        case _:
            return [Say("A fine evening"), Pause(0.7), Say("indeed.")]


def cast() -> Cast:
    rules = {"stock": stock, "till": till, "scales": scales}
    return standard_cast(ScriptedModel(script), tools=TOOLS, world=GENESIS, rules=rules)


# -- who does it, and when


@frozen
class Cue:
    at: float
    """Seconds after the stage opened; no two things happen at once."""
    session: int
    said: str | None
    """None: the session's turns are cancelled."""
    busy: BusyRule = BusyRule.QUEUE


FIRST_EVENING = (
    Cue(0.001, 0, "buy 2 apple"),
    Cue(0.012, 1, "buy 1 \U0001f34e"),
    Cue(0.023, 2, "weigh 100 7e-5 0.3"),
    Cue(0.034, 0, "both 1 \ue000"),
    Cue(0.037, 1, "buy 1 Äpfel", BusyRule.CONCURRENT),
    Cue(0.041, 1, "buy 9 apple", BusyRule.CONCURRENT),
    Cue(0.046, 3, "buy 1 apple"),
    Cue(0.073, 3, None),  # while its tool runs
    Cue(0.252, 4, "chat"),
    Cue(0.363, 4, "buy 1 pear", BusyRule.INTERRUPT),
    Cue(0.474, 5, "faint"),
    Cue(0.585, 5, "buy 1 moon"),
    Cue(0.696, 6, "chat"),
    Cue(0.707, 6, "weigh 1e20 1e21"),
    Cue(0.718, 7, "chat"),
    Cue(0.819, 7, None),
    Cue(0.923, 0, "buy 4 \U0001f34e"),
)
SECOND_EVENING = (
    Cue(0.004, 0, "buy 1 apple"),
    Cue(0.115, 1, "buy 2 Äpfel"),
    Cue(0.226, 0, "chat"),
    Cue(0.337, 0, "weigh 5e-324"),
    Cue(0.448, 0, None),  # both of them
)


async def evening(path: Path, cues: Sequence[Cue]) -> None:
    async with SqliteLedger(path) as ledger, open_stage(cast(), ledger=ledger) as stage:
        await _play(stage, cues)


async def _play(stage: Stage, cues: Sequence[Cue]) -> None:
    sessions = [stage.start() for _ in range(1 + max(cue.session for cue in cues))]
    began = trio.current_time()
    commits = []
    for cue in cues:
        await trio.sleep_until(began + cue.at)
        session = sessions[cue.session]
        if cue.said is None:
            session.cancel()
        else:
            commits.append(session.finalize(session.begin_turn(cue.said, TurnParams(busy=cue.busy))))
    for commit in commits:
        await commit.wait()


def digests() -> dict[str, JsonValue]:
    """All that the two evenings leave behind."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "market.ledger"
        for cues in (FIRST_EVENING, SECOND_EVENING):
            with quiesced_threads():
                trio.run(evening, path, cues, clock=MockClock(autojump_threshold=0))
        with SqliteReader(path) as reader:
            report = audit(reader)
            commits: list[JsonValue] = [_told(entry) for entry in reader.entries()]
    assert report.ok, report.flaw
    return {"commits": commits, "world": report.world_digest, "head": report.head}


def _told(entry: Entry) -> JsonValue:
    record = read_record(entry)
    return {
        "turn": f"{entry.turn_id} of {entry.session_id}",
        "decided": " ".join([record.outcome, *(issue.code for issue in record.issues)]),
        "commit": entry.commit_digest,
    }


if __name__ == "__main__":
    found = json.dumps(digests(), indent=1) + "\n"
    if "--write" in sys.argv[1:]:
        GOLDEN.write_text(found, encoding="utf-8")
    else:
        sys.stdout.write(found)
