"""The race is fair and counts right; Footlights and bare trio play the turn. No test measures speed.

The other peers need environments of their own, so no test runs them: a fake peer with known numbers stands in.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import sys
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve

from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from peers import kit, race
from peers.asyncio_model import Model
from peers.entrants import OURS, Entrant, Skipped, entrants
from peers.footlights.peer import Footlights
from peers.kit import TEXT, TOKEN, TOKENS, Cancelled, Consumer, Played, answer, weigh
from peers.laps import QUICK, Pace, run_race
from peers.peer_process import PeerFailed, open_peer
from peers.race_report import RaceReport
from peers.results import Verdict, results, verdicts
from peers.trio_channel.peer import TrioChannel

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.kit import Manner, Peer

PEERS = Path(kit.__file__).parent
PACE = Pace(laps=3, lap_seconds=1.0, warm_up_turns=2, cancels_per_lap=4, open_turns=2)

FAKE = """
import json, sys
seconds_a_turn, orders_until_it_dies = float(sys.argv[1]), int(sys.argv[2])
print(json.dumps({"python": "3", "packages": {"fake": sys.argv[1]}}), flush=True)
for number, line in enumerate(sys.stdin):
    if number == orders_until_it_dies:
        sys.exit(1)
    order = json.loads(line)
    count = order["count"]
    if order["do"] == "turns":
        reply = {
            "seconds": count * seconds_a_turn,
            "cpu_seconds": count * seconds_a_turn / 2,
            "events": count * 200,
            "given": count * 100,
            "first_event": [seconds_a_turn / 100] * count,
            "first_token": [seconds_a_turn / 50] * count,
        }
    elif order["do"] == "cancel":
        reply = {"told": [seconds_a_turn] * count, "stopped": [seconds_a_turn * 3] * count}
    else:
        reply = {"allocated": 2048.0, "resident": None}
    print(json.dumps(reply), flush=True)
"""
NEVER = 1_000_000


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., Entrant]:
    script = tmp_path / "fake.py"
    script.write_text(FAKE, encoding="utf-8")

    def entrant(name: str, seconds_a_turn: float, *, dies_after: int = NEVER, is_floor: bool = False) -> Entrant:
        command = (sys.executable, str(script), str(seconds_a_turn), str(dies_after))
        return Entrant(name, command, is_floor)

    return entrant


async def test_ratios_are_those_of_the_same_laps(fake: Callable[..., Entrant]) -> None:
    records, failed = await run_race([fake(OURS, 0.25), fake("slow", 2.0), fake("middling", 1.0)], PACE, say)
    assert failed == []
    ours, slow, middling = results(records)
    assert [result.name for result in (ours, slow, middling)] == [OURS, "slow", "middling"]
    assert ours.turns["flooding"].turns_per_second.median == 4.0
    assert ours.turns["flooding"].turns_per_cpu_second.median == 8.0
    assert ours.turns["flooding"].events_per_second.median == 800.0
    assert ours.turns["flooding"].given_per_second.median == 400.0
    assert ours.turns["flooding"].first_event.p50 == pytest.approx(2_500)
    assert ours.turns["flooding"].first_token.p99 == pytest.approx(5_000)
    assert slow.turns["yielding"].ours_is_faster.median == 8.0
    assert slow.turns["yielding"].ours_is_cheaper.low == 8.0
    assert middling.cancel.ours_tells_sooner.median == 4.0
    assert middling.cancel.ours_stops_sooner.high == 4.0
    assert middling.cancel.stopped.p50 == pytest.approx(3_000_000)


async def test_laps_have_as_many_turns_as_fit_and_all_are_kept(fake: Callable[..., Entrant]) -> None:
    records, _ = await run_race([fake(OURS, 0.25), fake("slow", 5.0)], PACE, say)
    ours, slow = records
    for manner in ("flooding", "yielding"):
        assert [lap.turns for lap in ours.turns[manner]] == [4, 4, 4]
        assert [lap.turns for lap in slow.turns[manner]] == [1, 1, 1]
    assert [len(lap.told) for lap in ours.cancels] == [4, 4, 4]
    assert ours.packages == {"fake": "0.25"}
    assert ours.weight is not None
    assert ours.weight.allocated == 2048


async def test_an_aim_is_measured_against_the_best_peer_and_never_against_the_floor(
    fake: Callable[..., Entrant],
) -> None:
    crowd = [fake(OURS, 0.25), fake("slow", 3.0), fake("good", 1.5), fake("floor", 0.125, is_floor=True)]
    records, _ = await run_race(crowd, PACE, say)
    judged = verdicts(results(records))
    assert {verdict.rival for verdict in judged} == {"good"}
    assert {(verdict.value, verdict.bound, verdict.met) for verdict in judged} == {(6.0, 5.0, True), (6.0, 10.0, False)}


async def test_without_rivals_nothing_is_judged(fake: Callable[..., Entrant]) -> None:
    records, _ = await run_race([fake(OURS, 0.25)], PACE, say)
    assert verdicts(results(records)) == []


@pytest.mark.parametrize("orders", range(13))
async def test_a_peer_that_dies_is_named_and_the_others_finish(fake: Callable[..., Entrant], orders: int) -> None:
    """The warm-up has three orders, each of the three laps too, and the last order weighs: it may die at any."""
    records, failed = await run_race([fake(OURS, 0.25), fake("frail", 1.0, dies_after=orders)], PACE, say)
    assert [record.entrant.name for record in records] == [OURS]
    assert failed == [Skipped("frail", "frail ended without an answer.")]
    assert [len(laps) for laps in records[0].turns.values()] == [3, 3]


async def test_a_peer_that_cannot_start_is_named(fake: Callable[..., Entrant]) -> None:
    broken = Entrant("broken", (sys.executable, "-c", "raise SystemExit(3)"))
    records, failed = await run_race([fake(OURS, 0.25), broken], PACE, say)
    assert len(records) == 1
    assert failed == [Skipped("broken", "broken ended without an answer.")]


async def test_without_footlights_there_is_no_race(fake: Callable[..., Entrant]) -> None:
    with pytest.raises(PeerFailed, match=OURS):
        await run_race([fake(OURS, 0.25, dies_after=5), fake("other", 1.0)], PACE, say)


async def test_a_peer_that_says_nothing_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    silent = (sys.executable, "-c", "import sys; sys.stdin.read()")
    with pytest.raises(PeerFailed, match="did not answer for 120 seconds"):
        async with open_peer("silent", silent):
            raise AssertionError("It has greeted.")


async def test_an_order_to_a_peer_that_has_closed_its_ears_fails() -> None:
    deaf = """import os, signal; os.close(0); print('{"packages": {}}', flush=True); signal.pause()"""
    async with open_peer("deaf", (sys.executable, "-c", deaf)) as peer:
        with pytest.raises(PeerFailed, match="deaf has ended"):
            await peer.order(do="turns", count=1)


async def test_no_process_outlives_the_race(tmp_path: Path) -> None:
    script = f"""import os, sys; open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
print('{{"packages": {{}}}}', flush=True)
sys.stdin.read()"""
    async with open_peer("patient", (sys.executable, "-c", script)):
        pid = int((tmp_path / "pid").read_text(encoding="ascii"))
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_peers_without_an_environment_are_skipped_by_name(tmp_path: Path) -> None:
    (tmp_path / "pykka").mkdir()
    (tmp_path / "pykka/.ready").touch()
    ready, skipped = entrants(5, tmp_path)
    assert [entrant.name for entrant in ready] == [OURS, "trio, 5 stages", "trio, one channel", "Pykka"]
    assert [entrant.name for entrant in ready if entrant.is_floor] == ["trio, one channel"]
    assert ready[-1].command == (str(tmp_path / "pykka/bin/python"), "-m", "peers.pykka.peer", "5")
    assert [peer.name for peer in skipped] == ["Pipecat", "LangGraph", "Pydantic AI"]


def test_with_one_stage_bare_trio_is_only_the_floor(tmp_path: Path) -> None:
    ready, _ = entrants(1, tmp_path)
    assert [(entrant.name, entrant.is_floor) for entrant in ready] == [(OURS, False), ("trio, one channel", True)]


async def test_the_report_names_everybody_in_every_table(fake: Callable[..., Entrant]) -> None:
    records, _ = await run_race([fake(OURS, 0.25), fake("good", 1.5)], PACE, say)
    report = RaceReport(this_machine(), PACE, 5, results(records), [Skipped("absent", "it was not there")])
    text = report.to_markdown()
    assert "*** SKIPPED: absent: it was not there ***" in text
    tables = text.split("### ")[1:]
    assert len(tables) == 5
    for table in tables[:-1]:
        assert table.count(f"| {OURS} |") == table.count("| good       |") == 1
    assert "6.0x (6.0 to 6.0)" in tables[0]
    assert re.search(r"cancel until the consumer knows +\| +good \| +6.0x \| +≥ 10.0x \| +NO \|", tables[-1])
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in lines)
    written = json.loads(json.dumps(report.to_json()))
    assert written["results"][1]["turns"]["yielding"]["ours_is_faster"]["median"] == 6.0
    assert written["results"][1]["weight"] == {"allocated": 2048.0, "resident": None}
    assert [verdict["met"] for verdict in written["verdicts"]] == [True] * 4 + [False] * 2
    assert written["skipped"] == [{"name": "absent", "reason": "it was not there"}]


async def test_a_report_without_facts_leaves_them_out(fake: Callable[..., Entrant]) -> None:
    records, _ = await run_race([fake(OURS, 0.25)], PACE, say)
    records[0].weight = None
    report = RaceReport(evolve(this_machine(), load_average=None), PACE, 5, results(records), [])
    assert "load unknown" in report.to_markdown()
    assert report.to_markdown().count("KiB") == 0
    assert report.to_json()["results"][0]["weight"] is None
    with_stacks = kit.Weight(allocated=1024.0, resident=3072.0)
    records[0].weight = with_stacks
    assert "3 KiB" in evolve(report, results=results(records)).to_markdown()


def test_an_aim_that_is_reached_exactly_is_met() -> None:
    assert Verdict("turns/s", "good", 5.0, 5.0).met
    assert not Verdict("turns/s", "good", 4.9, 5.0).met


def test_a_quick_race_of_those_who_need_no_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shortest = evolve(QUICK, laps=1, lap_seconds=0.001, warm_up_turns=1, cancels_per_lap=1, open_turns=1)
    monkeypatch.setattr(race, "QUICK", shortest)
    json_path, markdown_path = tmp_path / "race.json", tmp_path / "race.md"
    race.main(["--quick", "--environments", str(tmp_path), "--json", str(json_path), "--markdown", str(markdown_path)])
    printed = capsys.readouterr()
    assert "*** SKIPPED: Pipecat: its environment could not be made ***" in printed.err
    assert markdown_path.read_text(encoding="utf-8") in printed.out
    written = json.loads(json_path.read_text(encoding="utf-8"))
    assert [result["name"] for result in written["results"]] == [OURS, "trio, 5 stages", "trio, one channel"]
    assert written["results"][0]["packages"]["trio"] == trio.__version__
    assert [peer["name"] for peer in written["skipped"]] == ["Pipecat", "LangGraph", "Pydantic AI", "Pykka"]
    assert all(result["weight"]["allocated"] > 0 for result in written["results"])


@pytest.mark.parametrize(("peer", "events"), [(Footlights(), 205), (TrioChannel(5), 202), (TrioChannel(1), 202)])
@pytest.mark.parametrize("manner", ["flooding", "yielding"])
def test_a_peer_plays_whole_turns(peer: Peer, events: int, manner: Manner) -> None:
    played = Played(**answer(peer, {"do": "turns", "count": 3, "manner": manner}))
    assert played.events == 3 * events
    assert 0 < played.given <= played.events
    assert len(played.first_event) == len(played.first_token) == 3
    assert all(event < token for event, token in zip(played.first_event, played.first_token, strict=True))
    assert sum(played.first_event) < played.seconds
    assert played.cpu_seconds > 0


@pytest.mark.parametrize("peer", [Footlights(), TrioChannel(5), TrioChannel(1)])
def test_a_peer_tells_its_consumer_of_a_cancel_and_stops_its_model(peer: Peer) -> None:
    cancelled = Cancelled(**answer(peer, {"do": "cancel", "count": 3}))
    assert len(cancelled.told) == len(cancelled.stopped) == 3
    assert all(0 < told <= stopped for told, stopped in zip(cancelled.told, cancelled.stopped, strict=True))


@pytest.mark.parametrize("peer", [Footlights(), TrioChannel(5)])
def test_an_open_turn_weighs_something(peer: Peer) -> None:
    assert answer(peer, {"do": "memory", "count": 5})["allocated"] > 0


@pytest.mark.parametrize("peer", [Footlights(), TrioChannel(5), TrioChannel(1)])
def test_every_player_who_is_weighed_has_a_consumer_that_heard_all(peer: Peer) -> None:
    def listening() -> int:
        gc.collect()
        consumers = [each for each in gc.get_objects() if isinstance(each, Consumer)]
        for consumer in consumers:
            consumer.check()
        return len(consumers)

    assert peer.hold(3, listening) == (0, 3)


@pytest.mark.parametrize("manner", ["flooding", "yielding"])
def test_the_model_of_the_peers_on_asyncio_says_the_turn(manner: Manner) -> None:
    model = Model(manner)

    async def listen() -> str:
        return "".join([token async for token in model.speak()])

    assert asyncio.run(listen()) == TEXT
    assert model.silent_at > 0


@pytest.mark.parametrize(("manner", "tokens"), [("endless", 2 * TOKENS), ("stalled", TOKENS)])
def test_a_model_that_does_not_end_notes_when_it_was_closed(manner: Manner, tokens: int) -> None:
    model = Model(manner)
    heard: list[str] = []
    enough = asyncio.Event()

    async def listen() -> None:
        async with aclosing(model.speak()) as speaking:
            async for token in speaking:
                heard.append(token)
                if len(heard) == tokens:
                    enough.set()

    async def cancel_when_enough_was_heard() -> None:
        listening = asyncio.create_task(listen())
        await enough.wait()
        await asyncio.sleep(0)
        assert model.silent_at == 0
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening

    asyncio.run(cancel_when_enough_was_heard())
    assert len(heard) >= tokens
    assert model.silent_at > 0


def test_where_the_system_does_not_tell_there_is_no_resident_memory() -> None:
    class Weightless:
        def play(self, turns: int, manner: Manner) -> Played:
            raise NotImplementedError

        def cancel(self, turns: int) -> Cancelled:
            raise NotImplementedError

        def hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
            return (0, 0) if weigh is kit.resident else (100, 100 + 64 * turns)

    assert weigh(Weightless(), 2) == kit.Weight(allocated=64.0, resident=None)


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ValueError, match="no order 'dance'"):
        answer(TrioChannel(1), {"do": "dance", "count": 1})


def test_a_consumer_that_missed_a_token_says_so() -> None:
    consumer = Consumer()
    consumer.ask()
    for _ in range(TOKENS - 1):
        consumer.hear(TOKEN)
    with pytest.raises(AssertionError, match="did not hear"):
        consumer.check()
    consumer.hear(TOKEN)
    consumer.check()


def test_a_consumer_counts_what_was_joined_and_knows_the_middle() -> None:
    consumer = Consumer()
    consumer.ask()
    consumer.take()
    has_heard_half: list[bool] = []
    for part in (TEXT[: len(TEXT) // 2 - 1], TEXT[len(TEXT) // 2 - 1 :]):
        consumer.hear(part, joined=99)
        has_heard_half.append(consumer.has_heard_half)
    assert has_heard_half == [False, True]
    consumer.check()
    assert (consumer.played.events, consumer.played.given) == (201, 3)
    assert len(consumer.played.first_event) == len(consumer.played.first_token) == 1


def test_a_cancelled_turn_has_stopped_when_the_last_of_the_two_has() -> None:
    cancelled = Cancelled()
    cancelled.note(asked=1.0, told=1.5, silent=3.0)
    cancelled.note(asked=1.0, told=2.0, silent=1.5)
    assert cancelled == Cancelled(told=[0.5, 1.0], stopped=[2.0, 1.0])


@pytest.mark.parametrize("folder", ["pipecat", "langgraph", "pydantic_ai", "pykka"])
def test_the_environment_of_a_peer_is_pinned(folder: str) -> None:
    pins = [
        line
        for line in (PEERS / folder / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9A-Za-z.+]*", pin) for pin in pins)
    [wanted] = (PEERS / folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    name, _, bound = wanted.partition(">=")
    assert bound
    assert any(pin.startswith(f"{name}=={bound}") for pin in pins)
