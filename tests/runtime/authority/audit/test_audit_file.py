"""Audit of a ledger file that a real stage wrote and that was then edited: every alteration is found and named."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import trio

from footlights import Limits, open_stage
from footlights.authority import JsonWorld, TurnRequest, canonical, chain
from footlights.authority.audit.audit import audit
from footlights.authority.audit.reader import LedgerUnreadable
from footlights.authority.audit.rebuild import replay
from footlights.authority.ledger.sql.errors import LedgerDamaged
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.authority.ledger.sqlite.schema import VERSION
from footlights.authority.tool_steps import ToolStep
from footlights.testing import take_turn
from footlights_actors.demo.tavern.cast import tavern_cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from footlights.authority.audit.audit import AuditReport
    from footlights.authority.audit.reader import Flaw

SAID = ("Hello", "rent the attic", "rent the great chamber for 1 coin", "an ale, please")
COMMITS = 2 * len(SAID) + 1


async def write_ledger(path: Path) -> None:
    """Two epochs, two sessions, turns that changed something, nothing, were refused, and were interrupted."""
    tavern = tavern_cast(pace=0, load_seconds=0, tool_seconds=0)
    for _ in range(2):
        async with SqliteLedger(path) as ledger, open_stage(tavern, ledger=ledger, limits=Limits()) as stage:
            session = stage.start()
            for said in SAID:
                await take_turn(session, said)
            await take_steps(ledger, stage.epoch)
    async with SqliteLedger(path) as ledger, open_stage(tavern, ledger=ledger) as stage:
        session = stage.start()
        session.cancel(session.begin_turn("Hello"))


async def take_steps(ledger: SqliteLedger, epoch: int) -> None:
    """Tools that end well, fail, are stopped in time, begin again and are cut short."""
    for key in (f"done in {epoch}", "failed", "given back", "unknown"):
        await ledger.begin_tool(key)
    await ledger.complete_tool(f"done in {epoch}", "ok")
    await ledger.complete_tool("failed", "error")
    await ledger.release_tool("given back")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("written") / "tavern.ledger"
    trio.run(write_ledger, path)
    return path.read_bytes()


@pytest.fixture
def path(written: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "tavern.ledger"
    path.write_bytes(written)
    return path


@pytest.fixture
def steps(path: Path) -> int:
    """How many steps tools took: there are some of every kind, in two epochs."""
    taken = rows(path, "SELECT step, epoch FROM tools")
    assert {step for step, _ in taken} == set(ToolStep)
    assert {epoch for _, epoch in taken} == {1, 2}
    return len(taken)


def audited(path: Path, head: str | None = None, tools_head: str | None = None) -> AuditReport:
    with SqliteReader(path) as reader:
        return audit(reader, head, tools_head=tools_head)


def tamper(path: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement, values)


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_what_a_stage_wrote_passes(path: Path, steps: int) -> None:
    report = audited(path)
    assert report.flaw is None
    assert report.tool_steps == steps
    assert (report.commits, report.sessions, report.epochs, report.world_rebuilt) == (COMMITS, 3, 3, True)
    outcomes = {outcome for (outcome,) in rows(path, "SELECT json_extract(record, '$.outcome') FROM commits")}
    assert outcomes == {"ok", "fail_closed"}


def test_what_a_stage_wrote_is_replayed_to_the_same_world(path: Path) -> None:
    with SqliteReader(path) as reader:
        replayed = replay(reader)
    assert replayed.identical
    assert replayed.commits == COMMITS


async def test_a_request_without_its_turn_is_named(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(JsonWorld({}))
        await ledger.begin_tool("cut short", TurnRequest("s1-000001", "mine", "t4-000001"))
    assert audited(path).ok
    tamper(path, "UPDATE requests SET tool_position = NULL")
    assert str(audited(path).flaw) == "request 1: Its turn has neither a commit nor the step of a tool."
    tamper(path, "UPDATE requests SET turn_id = x'00'")
    assert str(audited(path).flaw) == "request 1: Its row holds a value of the wrong kind."


# -- any single field of any row


def columns(path: Path) -> list[tuple[str, str, str]]:
    """Every column of every table, with its table's key."""
    found: list[tuple[str, str, str]] = []
    for (table,) in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'"):
        described = rows(path, f"PRAGMA table_info({table})")
        (key,) = [name for _, name, *_, is_key in described if is_key]
        found += [(table, key, name) for _, name, *_ in described]
    return found


def lookalike(value: object) -> object:
    match value:
        case int():
            return value + 100
        case str():
            return "f" * 64 if len(value) == 64 else value + "0"
        case bytes():
            return value.replace(b"attic", b"cella")
        case _:
            raise TypeError(value)


def respelled(how: Callable[[dict[str, Any]], bytes]) -> Callable[[object], object]:
    """The same document in other bytes. What is no document stays as it is."""
    return lambda value: how(orjson.loads(value)) if isinstance(value, bytes) and value else value


def hiding(document: dict[str, Any]) -> bytes:
    """Says something of each member first that no reader hears, because the same name comes again."""
    hidden = dict.fromkeys(document, "anything at all")
    return canonical(hidden)[:-1] + b"," + canonical(document)[1:]


RESPELLED: dict[str, Callable[[object], object]] = {
    "space at the end": respelled(lambda document: canonical(document) + b" \n"),
    "space inside": respelled(lambda document: orjson.dumps(document, option=orjson.OPT_INDENT_2)),
    "a name twice": respelled(hiding),
    "another order": respelled(lambda document: orjson.dumps(dict(reversed(document.items())))),
}
ALTERATIONS: dict[str, Callable[[object], object]] = {
    **RESPELLED,
    "lookalike": lookalike,
    "another kind": lambda value: value.encode() if isinstance(value, str) else str(value) + "x",
    "nothing": lambda _: None,
    "no text": lambda value: b"\xff\xfe" if isinstance(value, bytes) else "\x1b[2J",
}


@pytest.mark.parametrize("how", ALTERATIONS)
def test_any_field_of_any_row_that_was_altered_is_found_and_named(
    path: Path, written: bytes, steps: int, how: str
) -> None:
    tried = Counter[str]()
    for table, key, column in columns(path):
        for identity, value in rows(path, f"SELECT {key}, {column} FROM {table}"):
            altered = ALTERATIONS[how](value)
            if altered == value:
                continue  # there is nothing in it that could be altered so
            path.write_bytes(written)
            try:
                tamper(path, f"UPDATE {table} SET {column} = ? WHERE {key} = {identity}", values=(altered,))
            except sqlite3.IntegrityError:
                continue  # SQLite itself does not take it there
            tried[table] += 1
            flaw = audited(path).flaw
            assert flaw is not None, (table, column, identity)
            assert_names(flaw, table, identity)
        path.write_bytes(written)
    if how in RESPELLED:
        assert tried == {"commits": COMMITS, "nodes": 1}
    elif how == "nothing":
        assert not tried, "SQLite refuses each"
    else:
        assert tried.total() > 3 * COMMITS
        assert tried["tools"] > 3 * steps
        assert tried["ends"]


def assert_names(flaw: Flaw, table: str, identity: int) -> None:
    match table:
        case "commits":
            assert flaw.position == identity
        case "epochs":
            # An epoch that is not where it was is missed by its first commit.
            assert flaw.place.startswith("epoch ") or "epoch" in flaw.what
        case "nodes" | "worlds":
            assert flaw.place.startswith(("node ", "world"))
        case "meta":
            assert flaw.place in ("genesis", "world")
        case "tools":
            assert flaw.place == f"tool step {identity}"
        case "ends":
            assert flaw.place in ("ends", "ledger", "tools")
        case _:
            assert flaw.place == table


# -- whole rows


@pytest.mark.parametrize("position", range(1, COMMITS))
def test_a_commit_that_was_deleted_is_named(path: Path, position: int) -> None:
    tamper(path, f"DELETE FROM commits WHERE position = {position}")
    assert str(audited(path).flaw) == f"commit {position}: It is missing."


@pytest.mark.parametrize("position", range(1, COMMITS))
def test_a_commit_that_was_deleted_is_found_though_the_others_moved_up(path: Path, position: int) -> None:
    tamper(
        path,
        f"DELETE FROM commits WHERE position = {position}",
        f"UPDATE commits SET position = -position WHERE position > {position}",
        "UPDATE commits SET position = -position - 1 WHERE position < 0",
    )
    flaw = audited(path).flaw
    assert flaw is not None
    assert flaw.position == position or flaw.place.startswith("epoch ")


@pytest.mark.parametrize("position", range(1, COMMITS))
def test_two_commits_that_were_swapped_are_named(path: Path, position: int) -> None:
    tamper(
        path,
        f"UPDATE commits SET position = -1 WHERE position = {position}",
        f"UPDATE commits SET position = {position} WHERE position = {position + 1}",
        f"UPDATE commits SET position = {position + 1} WHERE position = -1",
    )
    flaw = audited(path).flaw
    assert flaw is not None
    assert flaw.position == position


def test_a_commit_that_was_forged_is_named(path: Path) -> None:
    tamper(
        path,
        "INSERT INTO commits SELECT position + 1, epoch, session_id, 't3-000002', record, commit_digest, entry_digest"
        f" FROM commits WHERE position = {COMMITS}",
    )
    flaw = audited(path).flaw
    assert flaw is not None
    assert flaw.position == COMMITS + 1


@pytest.mark.parametrize("table", ["meta", "worlds", "ends"])
def test_a_row_that_there_must_be_is_missed(path: Path, table: str) -> None:
    tamper(path, f"DELETE FROM {table}")
    assert "missing" in str(audited(path).flaw)


@pytest.mark.parametrize("table", ["meta", "ends"])
def test_a_second_row_of_which_there_can_be_one_is_found(path: Path, table: str) -> None:
    others = ", ".join(name for _, name, *_ in rows(path, f"PRAGMA table_info({table})")[1:])
    tamper(path, f"INSERT INTO {table} SELECT 2, {others} FROM {table}")
    assert "not the only one" in str(audited(path).flaw)


@pytest.mark.parametrize("statement", ["DELETE FROM epochs WHERE epoch = 1", "DELETE FROM epochs WHERE epoch = 2"])
def test_an_epoch_that_was_deleted_is_missed(path: Path, statement: str) -> None:
    tamper(path, statement)
    assert "epoch" in str(audited(path).flaw)


def test_an_epoch_that_was_forged_is_found(path: Path) -> None:
    tamper(path, f"INSERT INTO epochs VALUES (4, {COMMITS + 1}, '{'f' * 64}')")
    assert str(audited(path).flaw).startswith("epoch 4: ")


def test_an_epoch_without_a_commit_is_missed_at_the_end(path: Path) -> None:
    trio.run(open_and_close, path)
    assert audited(path).epochs == 4
    tamper(path, "DELETE FROM epochs WHERE epoch = 4")
    report = audited(path)
    assert str(report.flaw).startswith(f"ledger: Epoch 3 and commit {COMMITS} are not the last")
    assert (report.epochs, report.commits) == (3, COMMITS)


async def open_and_close(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(tavern_cast().world)


def test_an_epoch_that_was_forged_with_its_digest_is_found(path: Path) -> None:
    digest = chain.link_epoch(audited(path).head, 4, COMMITS + 1)
    tamper(path, f"INSERT INTO epochs VALUES (4, {COMMITS + 1}, '{digest}')")
    assert str(audited(path).flaw).startswith("ledger: ")


def test_a_cut_end_is_seen_only_by_who_kept_the_head(path: Path) -> None:
    head = audited(path).head
    tamper(path, f"DELETE FROM commits WHERE position = {COMMITS}")
    assert str(audited(path).flaw).startswith("ledger: ")
    tamper(path, "UPDATE ends SET entry_digest = (SELECT entry_digest FROM epochs ORDER BY epoch DESC LIMIT 1)")
    assert audited(path).ok
    flaw = audited(path, head).flaw
    assert flaw is not None
    assert "kept elsewhere" in flaw.what


# -- the steps of tools


def test_a_step_of_a_tool_that_was_deleted_is_named(path: Path, written: bytes, steps: int) -> None:
    for position in range(1, steps):
        path.write_bytes(written)
        tamper(path, f"DELETE FROM tools WHERE position = {position}")
        report = audited(path)
        assert str(report.flaw) == f"tool step {position}: It is missing."
        assert (report.commits, report.tool_steps) == (COMMITS, position - 1)


def test_a_step_of_a_tool_that_was_deleted_is_found_though_the_others_moved_up(
    path: Path, written: bytes, steps: int
) -> None:
    for position in range(1, steps):
        path.write_bytes(written)
        tamper(
            path,
            f"DELETE FROM tools WHERE position = {position}",
            f"UPDATE tools SET position = -position WHERE position > {position}",
            "UPDATE tools SET position = -position - 1 WHERE position < 0",
        )
        assert str(audited(path).flaw).startswith(f"tool step {position}: ")


@pytest.mark.parametrize("left", [0, 1, -1])
def test_steps_of_tools_that_are_missing_at_the_end_are_missed(path: Path, steps: int, left: int) -> None:
    # So a tool that has ended would be unknown again, and one that was never stopped would run twice.
    tamper(path, f"DELETE FROM tools WHERE position > {left % steps}")
    assert str(audited(path).flaw).startswith("tools: ")


def test_two_steps_of_tools_that_were_swapped_are_named(path: Path, written: bytes, steps: int) -> None:
    for position in range(1, steps):
        path.write_bytes(written)
        tamper(
            path,
            f"UPDATE tools SET position = -1 WHERE position = {position}",
            f"UPDATE tools SET position = {position} WHERE position = {position + 1}",
            f"UPDATE tools SET position = {position + 1} WHERE position = -1",
        )
        assert str(audited(path).flaw).startswith(f"tool step {position}: ")


@pytest.mark.parametrize("position", [-1, 0])
def test_a_step_of_a_tool_before_the_first_is_named(path: Path, position: int) -> None:
    tamper(path, f"INSERT INTO tools SELECT {position}, epoch, key, step, entry_digest FROM tools WHERE position = 1")
    assert str(audited(path).flaw) == f"tool step {position}: No step has such a number."


def forge_step(path: Path, step: str, *, epoch: int = 3, key: str = "unknown") -> None:
    """Append one as whoever knows how would, and forget that its digest is kept once more."""
    ((position, head),) = rows(path, "SELECT max(position), entry_digest FROM tools")
    digest = chain.link_tool(head, position + 1, epoch, key, step)
    tamper(path, "INSERT INTO tools VALUES (?, ?, ?, ?, ?)", values=(position + 1, epoch, key, step, digest))


def test_a_step_of_a_tool_that_was_forged_is_named(path: Path, steps: int) -> None:
    tamper(path, f"INSERT INTO tools VALUES ({steps + 1}, 3, 'unknown', 'ok', '{'f' * 64}')")
    assert str(audited(path).flaw).startswith(f"tool step {steps + 1}: ")


def test_a_step_of_a_tool_that_was_forged_with_its_digest_is_found(path: Path) -> None:
    forge_step(path, "ok")
    assert str(audited(path).flaw).startswith("tools: ")


@pytest.mark.parametrize(
    ("step", "epoch", "key"),
    [
        ("ok", 4, "unknown"),
        ("ok", 1, "unknown"),
        ("started", 3, "unknown"),
        ("error", 3, "failed"),
        ("released", 3, "given back"),
        ("ok", 3, "never begun"),
        ("finished", 3, "unknown"),
    ],
)
def test_a_step_that_no_tool_can_take_is_named_whatever_its_digest(
    path: Path, steps: int, step: str, epoch: int, key: str
) -> None:
    forge_step(path, step, epoch=epoch, key=key)
    assert str(audited(path).flaw).startswith(f"tool step {steps + 1}: ")


def test_a_step_of_a_tool_with_a_key_that_is_no_text_is_named(path: Path) -> None:
    tamper(path, "UPDATE tools SET key = CAST(x'ff' AS TEXT) WHERE position = 2")
    assert str(audited(path).flaw).startswith("tool step 2: ")


def test_the_key_of_a_tool_is_not_told_because_a_model_may_have_made_it(path: Path) -> None:
    tamper(path, "UPDATE tools SET step = 'ok' WHERE key = 'unknown'")
    assert "unknown" not in str(audited(path).flaw)


def test_steps_of_tools_that_were_written_anew_are_seen_only_by_who_kept_their_head(path: Path) -> None:
    kept = audited(path)
    tamper(path, "DELETE FROM tools WHERE position = (SELECT max(position) FROM tools)")
    tamper(path, "UPDATE ends SET tool_digest = (SELECT entry_digest FROM tools ORDER BY position DESC LIMIT 1)")
    assert audited(path, kept.head).ok
    flaw = audited(path, kept.head, kept.tools_head).flaw
    assert flaw is not None
    assert flaw.place == "tools"
    assert "kept elsewhere" in flaw.what


def test_an_earlier_head_of_the_tools_stays_good_while_they_take_steps(path: Path, steps: int) -> None:
    kept = audited(path).tools_head
    assert audited(path).tools_head_position is None
    assert audited(path, tools_head=kept).tools_head_position == steps
    trio.run(take_another_step, path)
    report = audited(path, tools_head=kept)
    assert (report.ok, report.tool_steps, report.tools_head_position) == (True, steps + 1, steps)
    assert report.tools_head != kept


async def take_another_step(path: Path) -> None:
    """In the next epoch: a tool that was cut short may yet be known to have ended."""
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(tavern_cast().world)
        await ledger.complete_tool("unknown", "ok")


def test_an_earlier_head_stays_good_while_the_ledger_grows(path: Path) -> None:
    head = audited(path).head
    trio.run(write_ledger, path)
    report = audited(path, head)
    assert (report.ok, report.head_position, report.commits) == (True, COMMITS, 2 * COMMITS)


# -- how the file is built: a stage relies on it


SCHEMA = {
    "a trigger": ["CREATE TRIGGER x AFTER INSERT ON epochs BEGIN UPDATE tools SET key = 'k' WHERE key = 'failed'; END"],
    "a view": ["CREATE VIEW x AS SELECT * FROM tools"],
    "an index": ["CREATE INDEX x ON commits (turn_id)"],
    "a table": ["CREATE TABLE x (words TEXT)"],
    "statistics": ["ANALYZE"],
    "an index less": ["DROP INDEX tools_by_key"],
    "an index of another kind": ["DROP INDEX tools_by_key", "CREATE INDEX tools_by_key ON tools (key, step)"],
    "a table less": ["DROP TABLE worlds"],
    "a column more": ["ALTER TABLE worlds ADD COLUMN words TEXT"],
    "a table in which rows can hide": [
        "ALTER TABLE tools RENAME TO hidden",
        "CREATE TABLE tools (position, epoch, key, step, entry_digest)",
        "INSERT INTO tools SELECT * FROM hidden",
        "DROP TABLE hidden",
        "INSERT INTO tools VALUES (NULL, 1, 'pay', 'ok', 'x')",
        "CREATE INDEX tools_by_key ON tools (key)",
    ],
}


@pytest.mark.parametrize("change", SCHEMA)
def test_a_file_that_is_built_otherwise_is_found_and_no_stage_opens_it(path: Path, change: str) -> None:
    kept = audited(path)
    tamper(path, *SCHEMA[change])
    report = audited(path, kept.head, kept.tools_head)
    assert str(report.flaw).startswith("schema: ")
    assert report.commits == 0
    before = path.read_bytes()
    with pytest.raises(LedgerDamaged, match="tables"):
        trio.run(open_and_close, path)
    assert path.read_bytes() == before


def test_a_file_that_was_packed_is_as_good_as_before(path: Path) -> None:
    tamper(path, "VACUUM")
    assert audited(path).ok
    trio.run(open_and_close, path)


@pytest.mark.parametrize(
    ("index", "entry"), [("tools_by_key", b"done in 1"), ("sqlite_autoindex_commits_1", b"t1-000002")]
)
def test_an_index_that_was_altered_is_found(path: Path, index: str, entry: bytes) -> None:
    # A stage that looked there would run a tool again, or miss a commit.
    kept = audited(path)
    ((page,),) = rows(path, f"SELECT rootpage FROM sqlite_master WHERE name = '{index}'")
    ((size,),) = rows(path, "PRAGMA page_size")
    begin, end, data = (page - 1) * size, page * size, path.read_bytes()
    altered = data[begin:end].replace(entry, entry[:-1] + b"9")
    assert altered != data[begin:end]
    path.write_bytes(data[:begin] + altered + data[end:])
    report = audited(path, kept.head, kept.tools_head)
    assert report.flaw is not None
    assert report.flaw.place == "file"
    assert index in report.flaw.what
    assert (report.commits, report.tool_steps) == (kept.commits, kept.tool_steps)


# -- reading


async def test_a_ledger_can_be_audited_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "live.ledger"
    tavern = tavern_cast(pace=0, load_seconds=0, tool_seconds=0)
    async with SqliteLedger(path) as ledger, open_stage(tavern, ledger=ledger) as stage:
        session = stage.start()
        await take_turn(session, "Hello")
        with SqliteReader(path) as reader:
            assert audit(reader).commits == 1
            await take_turn(session, "rent the attic")
            assert audit(reader).ok
            assert audit(reader).commits == 1
        assert (audited(path).ok, audited(path).commits) == (True, 2)


def test_a_reader_changes_nothing_in_the_file(path: Path, written: bytes) -> None:
    assert audited(path).ok
    assert path.read_bytes() == written


def test_commits_are_found_by_position_id_digest_and_turn(path: Path) -> None:
    with SqliteReader(path) as reader:
        (third,) = reader.named("3")
        assert third.position == 3
        for name in (f"c-{third.commit_digest[:16]}", third.commit_digest, third.commit_digest[:12], "t1-000003"):
            assert reader.named(name) == [third]
        assert reader.named("99") == reader.named("t9-000001") == reader.named("c-" + "0" * 16) == []
        assert [entry.position for entry in reader.latest(2)] == [COMMITS - 1, COMMITS]
        assert reader.count() == COMMITS


def _missing(path: Path) -> None:
    path.unlink()


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _words(path: Path) -> None:
    path.write_text("Once upon a time. " * 500)


def _foreign(path: Path) -> None:
    path.unlink()
    tamper(path, "CREATE TABLE t (x)")


def _later(path: Path) -> None:
    tamper(path, f"PRAGMA user_version = {VERSION + 1}")


def _earlier(path: Path) -> None:
    tamper(path, f"PRAGMA user_version = {VERSION - 1}")


def _halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("spoil", [_missing, _directory, _empty, _words, _foreign, _later, _earlier, _halved])
def test_a_file_that_cannot_be_read_says_so(path: Path, spoil: Callable[[Path], None]) -> None:
    spoil(path)
    with pytest.raises(LedgerUnreadable):
        audited(path)


# -- who may read and not write


@pytest.fixture
def shelf(written: bytes) -> Iterator[Path]:
    """A ledger in a folder that anybody may look into, and only its owner may write to."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tavern.ledger"
        path.write_bytes(written)
        yield path


@contextmanager
def stranger(folder: Path, mode: int = 0o444) -> Iterator[None]:
    """Somebody who may read what is in the folder, and write nothing there."""
    is_root = os.geteuid() == 0
    folder.chmod(0o555)
    for path in folder.iterdir():
        path.chmod(mode)
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_a_reader_without_write_access_can_audit_a_ledger_that_is_not_open(shelf: Path) -> None:
    with stranger(shelf.parent):
        assert audited(shelf).ok
    assert [each.name for each in shelf.parent.iterdir()] == ["tavern.ledger"]


def test_an_empty_log_does_not_prevent_reading(shelf: Path) -> None:
    shelf.with_name("tavern.ledger-wal").touch()
    with stranger(shelf.parent):
        assert audited(shelf).ok


def test_a_reader_without_write_access_learns_what_to_copy_while_there_is_a_log(shelf: Path) -> None:
    with closing(sqlite3.connect(shelf, isolation_level=None)) as writer:
        writer.execute(f"PRAGMA user_version = {VERSION}")
        log = shelf.with_name("tavern.ledger-wal").read_bytes()
    shelf.with_name("tavern.ledger-wal").write_bytes(log)  # as after a crash
    with stranger(shelf.parent), pytest.raises(LedgerUnreadable, match=r"tavern\.ledger and tavern\.ledger-wal"):
        audited(shelf)


def test_a_reader_without_write_access_learns_that_the_ledger_was_written_meanwhile(shelf: Path) -> None:
    with stranger(shelf.parent):
        reader = SqliteReader(shelf)
        assert reader.count() == COMMITS
    shelf.chmod(0o644)
    shelf.write_bytes(shelf.read_bytes() + b"\0" * 4096)
    with reader, pytest.raises(LedgerUnreadable, match="meanwhile"):
        reader.count()


def test_a_file_without_read_access_is_reported(shelf: Path) -> None:
    with stranger(shelf.parent, 0o000), pytest.raises(LedgerUnreadable, match="cannot be used"):
        audited(shelf)


def test_a_path_may_hold_what_a_uri_may_not(path: Path) -> None:
    odd = path.rename(path.with_name("50% of a #ledger?mode=rw"))
    assert audited(odd).ok


def test_the_genesis_is_the_world_of_the_cast(path: Path) -> None:
    with SqliteReader(path) as reader:
        assert reader.genesis().digest == JsonWorld(tavern_cast().world.view()).digest()
