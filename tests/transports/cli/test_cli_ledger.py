"""Commands that examine a ledger: their output and exit codes."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import trio
from attrs import frozen

from footlights import Intent, IntentType, TurnParams, open_stage
from footlights.authority import Artifact, accept, canonical, digest, every_turn, patch
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.testing import take_turn
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.cli.ledger import reports
from footlights_transports.cli.ledger.diff import difference
from footlights_transports.cli.ledger.show import harmless
from tests.kit import command

if TYPE_CHECKING:
    from pathlib import Path

    from footlights import Cast, InteractionContext
    from footlights.authority import PatchOp, Rule, Ruling

SAID = ("Hello", "rent the attic", "rent the great chamber for 1 coin", "an ale, please")


async def _write(path: Path, cast: Cast, said: tuple[str, ...] = SAID, params: TurnParams | None = None) -> None:
    async with SqliteLedger(path) as ledger, open_stage(cast, ledger=ledger) as stage:
        session = stage.start()
        for each in said:
            await take_turn(session, each, params)
        await ledger.begin_tool("k")
        await ledger.complete_tool("k", "ok")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("written") / "tavern.ledger"
    trio.run(_write, path, tavern_cast(pace=0, load_seconds=0, tool_seconds=0))
    return path.read_bytes()


@pytest.fixture
def ledger(written: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "tavern.ledger"
    path.write_bytes(written)
    return path


@frozen
class Run:
    code: int
    out: str
    err: str


@pytest.fixture
def footlights(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> Run:
        code = command.footlights(monkeypatch, *map(str, arguments))
        shown = capsys.readouterr()
        return Run(code, shown.out, shown.err)

    return run


def tamper(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


# -- audit


def test_an_audit_sums_up_what_it_proved(footlights: Any, ledger: Path) -> None:
    done = footlights("audit", ledger)
    assert (done.code, done.err) == (0, "")
    first, commits, sessions, epochs, tools, world, head, tools_head = done.out.splitlines()
    assert first == "Nothing was altered."
    assert [line.split() for line in (commits, sessions, epochs, tools)] == [
        ["commits", "4"],
        ["sessions", "1"],
        ["epochs", "1"],
        ["tools", "2", "steps"],
    ]
    assert [len(line.split()[-1]) for line in (world, head, tools_head)] == [64, 64, 64]


def test_an_audit_names_the_first_bad_commit(footlights: Any, ledger: Path) -> None:
    tamper(ledger, "UPDATE commits SET session_id = 's1-000009' WHERE position = 3")
    done = footlights("audit", ledger)
    assert done.code == 1
    first, second = done.out.splitlines()
    assert first.startswith("commit 3 (c-")
    assert first.endswith("t1-000003 of s1-000009): Its row does not say the same as its record.")
    assert second == "2 commits before it are as they were written."


def test_an_audit_names_the_first_bad_step_of_a_tool(footlights: Any, ledger: Path) -> None:
    tamper(ledger, "UPDATE tools SET step = 'error' WHERE position = 2")
    done = footlights("audit", ledger)
    assert done.code == 1
    first, second = done.out.splitlines()
    assert first.startswith("tool step 2: ")
    assert second == "4 commits and 1 tool steps before it are as they were written."


def test_an_audit_can_speak_json(footlights: Any, ledger: Path) -> None:
    good = json.loads(footlights("audit", "--json", ledger).out)
    assert (good["ok"], good["flaw"], good["commits"], good["tool_steps"]) == (True, None, 4, 2)
    tamper(ledger, "DELETE FROM commits WHERE position = 2")
    done = footlights("audit", ledger, "--json")
    assert done.code == 1
    assert json.loads(done.out)["flaw"] == {"place": "commit 2", "position": 2, "what": "It is missing."}


def test_an_audit_with_a_head_sees_a_cut_end(footlights: Any, ledger: Path, tmp_path: Path) -> None:
    head = json.loads(footlights("audit", "--json", ledger).out)["head"]
    done = footlights("audit", ledger, "--head", head)
    assert done.code == 0
    assert done.out.endswith("the head that was given is at commit 4\n")
    shorter = tmp_path / "shorter.ledger"
    trio.run(_write, shorter, tavern_cast(pace=0, load_seconds=0, tool_seconds=0), SAID[:2])
    assert footlights("audit", shorter).code == 0
    cut = footlights("audit", shorter, "--head", head)
    assert cut.code == 1
    assert cut.out.startswith("after commit 2: ")


def test_an_audit_with_a_head_of_the_tools_sees_that_their_end_was_cut_with_care(footlights: Any, ledger: Path) -> None:
    kept = json.loads(footlights("audit", "--json", ledger).out)["tools_head"]
    done = footlights("audit", ledger, "--tools-head", kept)
    assert done.code == 0
    assert done.out.endswith("the head of the tools that was given is at step 2\n")
    assert json.loads(footlights("audit", ledger, "--json", "--tools-head", kept).out)["tools_head_position"] == 2
    tamper(ledger, "DELETE FROM tools WHERE position = 2")
    tamper(ledger, "UPDATE ends SET tool_digest = (SELECT entry_digest FROM tools)")
    assert footlights("audit", ledger).code == 0
    cut = footlights("audit", ledger, "--tools-head", kept)
    assert cut.code == 1
    assert cut.out.startswith("tools: ")


@pytest.mark.parametrize("command", [["audit"], ["replay"], ["ledger", "show"]])
def test_a_file_that_cannot_be_read_is_named(footlights: Any, tmp_path: Path, command: list[str]) -> None:
    words = tmp_path / "words.txt"
    words.write_text("Once upon a time. " * 100)
    for path in (words, tmp_path / "nothing.ledger"):
        done = footlights(*command, path)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"{path}: ")
        assert done.err.count("\n") == 1
    assert done.err.endswith(": There is no such file.\n")


def test_a_terminal_shows_the_progress(footlights: Any, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert footlights("audit", ledger).code == 0
    assert terminal.getvalue() == ""
    monkeypatch.setattr(reports, "_LARGE", 1)
    done = footlights("audit", ledger)
    assert done.out.startswith("Nothing was altered.")
    shown = terminal.getvalue()
    assert [each in shown for each in ("auditing", "auditing tools", "auditing the file")] == [True, True, True]


# -- replay


def test_a_replay_says_identical_and_how_fast(footlights: Any, ledger: Path) -> None:
    done = footlights("replay", ledger)
    rate, verdict = done.out.splitlines()
    assert done.code == 0
    assert rate.startswith("4 commits in ")
    assert rate.endswith(" a second")
    assert verdict.startswith("identical: ")


def test_a_replay_stops_at_a_commit(footlights: Any, ledger: Path) -> None:
    before, after = (json.loads(footlights("replay", ledger, "--json", "--at", at).out) for at in (1, "t1-000002"))
    assert (before["commits"], before["identical"], before["world"]["purse"]) == (1, True, 20)
    assert (after["commits"], after["identical"], after["world"]["purse"]) == (2, True, 18)


def test_a_replay_names_a_node_of_the_kept_world_that_was_altered(footlights: Any, ledger: Path) -> None:
    tamper(ledger, "UPDATE nodes SET body = CAST(replace(CAST(body AS TEXT), '\"purse\":20', '\"purse\":900') AS BLOB)")
    done = footlights("replay", ledger)
    assert done.code == 1
    assert done.err.startswith("world after commit 0: ")


def test_a_replay_shows_that_a_commit_names_another_world(footlights: Any, ledger: Path) -> None:
    tamper(
        ledger,
        "UPDATE commits SET record = CAST(json_set(record, '$.world_after', 'elsewhere') AS BLOB) WHERE position = 2",
    )
    done = footlights("replay", ledger, "--at", 2)
    assert done.code == 1
    assert done.out.startswith("The commit names another world: elsewhere\n")


def test_a_replay_that_cannot_go_on_names_the_commit(footlights: Any, ledger: Path) -> None:
    tamper(ledger, "UPDATE commits SET record = x'00' WHERE position = 2")
    done = footlights("replay", ledger)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("commit 2 (")
    assert done.err.endswith("Its record cannot be read.\n")


def test_a_replay_at_an_unknown_commit_is_refused(footlights: Any, ledger: Path) -> None:
    done = footlights("replay", ledger, "--at", "t9-000009")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"{ledger}: It has no commit or turn 't9-000009'.\n"


# -- show


def test_the_latest_commits_are_shown_one_line_each(footlights: Any, ledger: Path) -> None:
    lines = footlights("ledger", "show", ledger).out.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
    assert [line.split("  ")[-1] for line in lines] == [
        "ok, nothing changed",
        "ok, 3 changes",
        "fail_closed, wrong_price",
        "ok, 2 changes",
    ]


def test_a_ledger_without_commits_says_so(footlights: Any, tmp_path: Path) -> None:
    path = tmp_path / "empty.ledger"
    trio.run(_write, path, tavern_cast(pace=0, load_seconds=0, tool_seconds=0), ())
    assert footlights("ledger", "show", path) == Run(0, "no commits\n", "")


def test_a_commit_is_shown_with_what_it_changed(footlights: Any, ledger: Path) -> None:
    done = footlights("ledger", "show", ledger, "t1-000002")
    assert done.code == 0
    assert done.out.startswith("commit 2, c-")
    for line in (
        "  session   s1-000001",
        "  turn      t1-000002, in epoch 1",
        "  rules     known_acts: accepted",
        "  changes   - /purse: 20",
        "            + /purse: 18",
        '            + /rooms/attic/guest: "the traveller"',
    ):
        assert f"{line}\n" in done.out
    assert "because" not in done.out


def test_a_refused_commit_is_shown_with_the_rule_and_its_reason(footlights: Any, ledger: Path) -> None:
    shown = footlights("ledger", "show", ledger, 3).out
    assert ": fail_closed\n" in shown
    assert "  because   wrong_price (call-1): The price of the great chamber is 12 coins.\n" in shown
    assert "            lodging: refused, wrong_price\n" in shown
    assert "            stays as it is\n" in shown
    assert "  changes   none\n" in shown


def test_a_commit_behind_a_bad_one_is_shown_by_what_it_says(footlights: Any, ledger: Path) -> None:
    tamper(ledger, "UPDATE commits SET record = x'00' WHERE position = 1")
    shown = footlights("ledger", "show", ledger, 4).out
    assert '  changes   {"op": "replace", "path": "/purse", "value": 17}\n' in shown


def test_a_turn_of_several_sessions_is_shown_as_a_list(footlights: Any, tmp_path: Path) -> None:
    async def write(path: Path) -> None:
        tavern = tavern_cast(pace=0, load_seconds=0, tool_seconds=0)
        async with SqliteLedger(path) as ledger, open_stage(tavern, ledger=ledger) as stage:
            for _ in range(2):
                await take_turn(stage.start(), "Hello")

    path = tmp_path / "two.ledger"
    trio.run(write, path)
    done = footlights("ledger", "show", path, "t1-000001")
    assert [line.split()[2] for line in done.out.splitlines()] == ["s1-000001", "s1-000002"]
    refused = footlights("replay", path, "--at", "t1-000001")
    assert refused.code == 2
    assert "2 commits" in refused.err


def test_characters_that_a_terminal_would_obey_are_spelled_out() -> None:
    assert harmless("a\x1b[2Jb\x9bc\u202ed\udc80\n") == r"a\x1b[2Jb\x9bc\u202ed\udc80\n"
    assert harmless("Grüße, Ørsted 木") == "Grüße, Ørsted 木"


@pytest.mark.parametrize(("forged", "shown"), [("char(27) || '[2J'", r"\x1b[2J"), ("CAST(x'ff' AS TEXT)", r"\udcff")])
def test_what_a_stranger_wrote_into_a_row_is_spelled_out(
    footlights: Any, ledger: Path, forged: str, shown: str
) -> None:
    tamper(ledger, f"UPDATE commits SET turn_id = {forged} WHERE position = 1")
    words, values = footlights("audit", ledger), footlights("audit", ledger, "--json")
    assert (words.code, values.code) == (1, 1)
    assert f", {shown} of s1-000001)" in words.out
    assert shown in json.loads(values.out)["flaw"]["place"]


# -- a world of the host's own kind


@frozen
class Island:
    gold: int

    def view(self) -> Island:
        return self

    def changed(self, changes: tuple[PatchOp, ...]) -> Island:
        gold = changes[-1].value
        assert isinstance(gold, int)
        return Island(gold)

    def digest(self) -> str:
        return digest(self.gold)


def mine(island: Island, intents: tuple[Intent, ...]) -> Ruling:
    return accept(patch.replace("/gold", island.gold + len(intents)))


class Mine:
    async def run(self, context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.DECISION, "mine"))


def test_a_world_of_the_hosts_own_kind_is_audited_as_far_as_that_goes(footlights: Any, tmp_path: Path) -> None:
    path = tmp_path / "island.ledger"
    cast = standard_cast(world=Island(1), rules={"mine": mine}, workloads={"mine": Mine()})
    trio.run(_write, path, cast, ("dig", "dig"), TurnParams(workload="mine"))
    done = footlights("audit", path)
    assert done.code == 0
    assert f"  world     {Island(3).digest()} (not rebuilt)\n" in done.out
    refused = footlights("replay", path)
    assert refused.code == 2
    assert "only its host can rebuild it" in refused.err
    shown = footlights("ledger", "show", path, 2).out
    assert '  changes   {"op": "replace", "path": "/gold", "value": 3}\n' in shown


# -- differences


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["- /a: 1", "+ /a: true"]),
        ({"a": 1}, {"b": 1}, ["- /a: 1", "+ /b: 1"]),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, ["- /a~1b/~0: 1", "+ /a~1b/~0: 2"]),
        ([1, 2, 3], [0, 1, 2, 3], ["+ /0: 0"]),
        ([1, 2, 3], [1, 2], ["- /2: 3"]),
        ([1, 1], [1, 1, 1], ["+ /2: 1"]),
        ([1, {"x": 2}], [1, {"x": 3}], ["- /1/x: 2", "+ /1/x: 3"]),
        ({}, [], ["- (all): {}", "+ (all): []"]),
    ],
)
def test_a_difference_has_one_line_for_each_change(before: Any, after: Any, lines: list[str]) -> None:
    assert list(difference(before, after)) == lines


def test_a_long_value_is_cut() -> None:
    gone, _ = difference("x" * 1000, None)
    assert len(gone) < 250
    assert gone.endswith("(1002 characters)")


# -- artifacts


def test_an_artifact_is_printed_as_the_bytes_that_its_name_is_the_digest_of(footlights: Any, tmp_path: Path) -> None:
    path = tmp_path / "deeds.ledger"
    deed = Artifact("deed", {"room": 3})
    rules: dict[str, Rule] = {"deed": every_turn(lambda world, intents: accept(artifacts=[deed]))}
    trio.run(_write, path, standard_cast(ScriptedModel(lambda _: [Say("Yours.")]), rules=rules), ("A room?",))
    assert footlights("ledger", "artifact", str(path), deed.ref) == Run(0, canonical(deed.document).decode(), "")
    assert f"deed, {deed.ref}" in footlights("ledger", "show", str(path), "1").out
    missing = footlights("ledger", "artifact", str(path), "blake3:nothing")
    assert (missing.code, missing.out) == (2, "")
    assert "no artifact" in missing.err


def test_an_artifact_plays_no_tricks_with_a_terminal(
    footlights: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deeds.ledger"
    deed = Artifact("deed", "\u202eno\x9b2J")
    rules: dict[str, Rule] = {"deed": every_turn(lambda world, intents: accept(artifacts=[deed]))}
    trio.run(_write, path, standard_cast(ScriptedModel(lambda _: [Say("Yours.")]), rules=rules), ("A room?",))
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    shown = footlights("ledger", "artifact", str(path), deed.ref).out
    assert shown == '{"authoritative":true,"data":"\\u202eno\\x9b2J","kind":"deed"}\n'
