"""Counts of turns and commits must not exceed their bounds. Machine load cannot change them."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights import MemoryLedger, Subscription, wire
from footlights.authority.ledger.sqlite.store import SqliteStore
from footlights.turn.turn import Turn
from footlights_actors import ScriptedModel
from suites.__main__ import main
from suites.counts import __main__ as command
from suites.counts import suite as counts
from suites.counts.bounds import FILE, HERE, advice, bound_of, grown, read_bounds, write_bounds
from suites.counts.memory import SESSION, TURN, count_blocks
from suites.counts.meter import BY_PYTHON, METERED, Count, is_ours, repeatable
from suites.counts.suite import SUBJECTS, count_workload
from suites.counts.workloads import Expected, local_turn
from suites.lib.scripts import TOKENS_PER_TURN, whole_turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from footlights import Prompt, StreamEvent
    from suites.counts.bounds import Counted


def judge(counted: Counted) -> None:
    if sentences := grown(counted, read_bounds()):
        pytest.fail("\n".join([*sentences, advice()]), pytrace=False)


# -- the guard


@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_count_exceeds_its_bound(subject: str) -> None:
    judge({subject: count_workload(SUBJECTS[subject])})


def test_the_memory_of_a_session_and_of_a_kept_turn_is_within_its_bound() -> None:
    judge(repeatable(count_blocks))


def test_every_count_has_a_bound_and_every_bound_a_count() -> None:
    bounds = read_bounds()
    assert list(bounds) == [*SUBJECTS, SESSION, TURN]
    for subject in SUBJECTS:
        assert set(METERED) <= set(bounds[subject])
    for subject, table in bounds.items():
        for count, bound in table.items():
            assert isinstance(bound, dict) is (count in BY_PYTHON), (subject, count)


def test_an_event_is_encoded_once_for_all_clients() -> None:
    one, eight = (count_workload(SUBJECTS[f"WebSocket, {clients}"]) for clients in ("1 client", "8 clients"))
    assert eight[Count.FRAMES] == 8 * one[Count.FRAMES]
    assert eight[Count.ENCODES] == one[Count.ENCODES]


# -- the guard finds planted costs


def checkpoint_after_every_token(monkeypatch: pytest.MonkeyPatch) -> None:
    generate = ScriptedModel.generate

    async def slower(self: ScriptedModel, prompt: Prompt) -> AsyncGenerator[Any, None]:
        async for item in generate(self, prompt):
            yield item
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(ScriptedModel, "generate", slower)


def encode_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = Subscription.receive_nowait

    def wasteful(self: Subscription, limit: int = 256) -> list[StreamEvent]:
        events = receive(self, limit)
        for event in events:
            wire.encode(event)
        return events

    monkeypatch.setattr(Subscription, "receive_nowait", wasteful)


def go_to_a_thread_to_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    append = MemoryLedger.append

    async def in_a_thread(self: MemoryLedger, *arguments: Any) -> None:
        await trio.to_thread.run_sync(int)
        await append(self, *arguments)

    monkeypatch.setattr(MemoryLedger, "append", in_a_thread)


def ask_the_file_before_each_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    append = SqliteStore.append

    def asking(self: SqliteStore, *arguments: Any) -> None:
        self.find("s1-000001", "t1-000001")
        append(self, *arguments)

    monkeypatch.setattr(SqliteStore, "append", asking)


@pytest.mark.parametrize(
    ("plant", "subject", "count", "at_least"),
    [
        (checkpoint_after_every_token, "1 subscriber, flooding", Count.STEPS, TOKENS_PER_TURN),
        (encode_once_more, "WebSocket, 1 client", Count.ENCODES, 50),
        (go_to_a_thread_to_commit, "1 subscriber, flooding", Count.HOPS, 1),
        (ask_the_file_before_each_commit, "durable commit, a session's next", Count.STATEMENTS, 1),
    ],
)
def test_a_planted_cost_is_found_and_named(
    plant: Callable[[pytest.MonkeyPatch], None],
    subject: str,
    count: Count,
    at_least: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    clean = count_workload(SUBJECTS[subject])
    bounds = tmp_path / "bounds.toml"
    write_bounds({subject: clean}, bounds)
    assert grown({subject: clean}, read_bounds(bounds)) == []
    plant(monkeypatch)
    planted = count_workload(SUBJECTS[subject])
    assert planted[count] >= clean[count] + at_least
    sentence = f"{subject}: {count} grew from {clean[count]:,} to {planted[count]:,}."
    assert sentence in grown({subject: planted}, read_bounds(bounds))


def test_planted_memory_of_a_turn_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    settle = Turn.settle
    kept: list[list[object]] = []

    def keeping(self: Turn, *arguments: Any) -> None:
        kept.append([object() for _ in range(10)])
        settle(self, *arguments)

    clean = repeatable(count_blocks)
    monkeypatch.setattr(Turn, "settle", keeping)
    planted = repeatable(count_blocks)
    assert planted[TURN][Count.BLOCKS] - clean[TURN][Count.BLOCKS] in (11, 12)
    assert planted[SESSION] == clean[SESSION]


def test_a_grown_count_is_reported_with_advice() -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        judge({"1 subscriber, flooding": {Count.STEPS: 1_000_000}})
    sentence, what_to_do = str(failed.value).splitlines()
    assert sentence.startswith("1 subscriber, flooding: task steps grew from ")
    assert sentence.endswith(" to 1,000,000.")
    assert what_to_do == ("If this is worth it, raise the bound in counts/bounds.toml and say why in the commit.")


# -- the counts are repeatable


@pytest.mark.parametrize("subject", ["with a tool", "SSE, 1 client"])
def test_counts_are_the_same_every_time(subject: str) -> None:
    assert count_workload(SUBJECTS[subject]) == count_workload(SUBJECTS[subject])


@pytest.mark.parametrize("subject", ["WebSocket, 1 client", "SSE, 1 client"])
def test_every_send_is_counted(subject: str) -> None:
    counted = count_workload(SUBJECTS[subject])
    # However it is sent: a way that the meter does not know would look like no cost at all.
    assert 0 < counted[Count.SENDS] <= counted[Count.FRAMES] <= counted[Count.ENCODES]
    assert counted[Count.FRAMES] * 100 < counted[Count.BYTES]


def test_all_parts_of_a_commit_are_counted() -> None:
    counted = count_workload(SUBJECTS["durable commit, a session's next"])
    counts_of_a_commit = (Count.STEPS, Count.HOPS, Count.CALLS, Count.CANONICAL, Count.DIGESTS, Count.STATEMENTS)
    assert all(counted[count] > 0 for count in counts_of_a_commit)


def test_a_turn_with_unexpected_events_is_an_error() -> None:
    wrong = counts.Subject(partial(local_turn, whole_turn, Expected(7)))
    with pytest.RaisesGroup(
        pytest.RaisesExc(AssertionError, match="The turn had 205 events, not 7"), flatten_subgroups=True
    ):
        count_workload(wrong)


def test_code_of_the_harness_and_of_the_test_kit_is_not_counted() -> None:
    assert is_ours(Turn.finish.__code__.co_filename)
    assert is_ours("<attrs generated methods footlights.events.StreamEvent>")
    assert not is_ours("<attrs generated methods footlights.testing.witness.Recording>")
    assert not is_ours(counts.__file__)
    assert not is_ours(trio.__file__)


# -- the bounds


def test_bounds_round_trip_and_other_versions_of_python_keep_theirs(tmp_path: Path) -> None:
    file = tmp_path / "bounds.toml"
    file.write_text('["a"]\n"Python calls" = { "2.7" = 9 }\n')
    write_bounds({"a": {Count.CALLS: 4, Count.STEPS: 3}}, file)
    bounds = read_bounds(file)
    assert bounds == {"a": {Count.CALLS: {"2.7": 9, HERE: 4}, Count.STEPS: 3}}
    assert bound_of(bounds, "a", Count.CALLS) == 4
    assert bound_of(bounds, "a", Count.CALLS, "3.99") is None
    assert bound_of(bounds, "b", Count.STEPS) is None
    assert grown({"a": {Count.STEPS: 3}, "b": {Count.STEPS: 5}}, bounds) == []


FEW = {name: SUBJECTS[name] for name in ("1 subscriber, flooding", "with a tool")}


def test_the_command_shows_every_count_with_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "counts.json"
    monkeypatch.setattr(counts, "SUBJECTS", FEW)
    assert main(["counts", "--quick", "--strict", "--json", str(path)]) == 0
    printed = capsys.readouterr()
    assert "counting with a tool" in printed.err
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["bench"] == "counts"
    figures = {(figure["subject"], figure["name"]): figure for figure in written["figures"]}
    steps = figures["1 subscriber, flooding", "task steps"]
    assert steps["aim"] == {"kind": "at most", "bound": read_bounds()["1 subscriber, flooding"][Count.STEPS]}
    assert steps["met"] is True
    assert steps["spread"] == {"an event": round(steps["value"] / 205, 2)}
    assert f"{steps['value']:,} times" in printed.out


def test_the_command_writes_bounds_and_the_next_run_judges_by_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / FILE.name
    monkeypatch.setattr(counts, "SUBJECTS", FEW)
    for module in (counts, command):
        monkeypatch.setattr(module, "FILE", file)
    assert command.main(["--write-bounds"]) == 0
    assert list(read_bounds(file)) == [*FEW, SESSION, TURN]
    assert counts.run(quick=True, json_path=None, strict=True) == 0
    file.write_text(file.read_text().replace('"task steps" = ', '"task steps" = -'))
    assert command.main([]) == 1
    assert "NO" in capsys.readouterr().out
