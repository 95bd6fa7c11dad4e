"""The audit finds every row that is not what it must be, names the first, and says what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
from attrs import define, evolve, field

from footlights.authority import (
    Artifact,
    CommitRecord,
    Intent,
    IntentType,
    JsonWorld,
    JudgeRequest,
    RuleBook,
    accept,
    canonical,
    chain,
    judge,
    patch,
    refuse,
    sealed,
)
from footlights.authority.audit.audit import AuditReport, audit
from footlights.authority.audit.reader import (
    Altered,
    EndsRow,
    Entry,
    EpochRow,
    Flaw,
    GenesisRow,
    LedgerUnreadable,
    RequestRow,
    ToolRow,
    WorldRow,
)
from footlights.authority.audit.rebuild import read_record, replay
from footlights.authority.record import record_to_json
from footlights.authority.world.checkpoint import Checkpoint, NodeRow, RowSpace
from footlights.events import CommitOutcome, InterruptReason, Issue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from footlights.authority import Ruling, World

GENESIS: dict[str, Any] = {"purse": 5, "log": []}


def spend(world: dict[str, Any], intents: Sequence[Intent]) -> Ruling:
    left = world["purse"] - len(intents)
    if left < 0:
        return refuse("purse_short", "The purse is empty.")
    if not intents:
        return accept()
    receipt = Artifact("receipt", {"left": left, "share": 0.5})
    return accept(patch.replace("/purse", left), patch.add("/log/-", len(intents)), artifacts=[receipt])


@define
class Book:
    """A ledger as a few lists: what an auditor reads, and what a forger writes."""

    genesis_row: GenesisRow
    world_rows: list[WorldRow] = field(factory=list[WorldRow])
    node_rows: list[NodeRow] = field(factory=list[NodeRow])
    epoch_rows: list[EpochRow] = field(factory=list[EpochRow])
    entry_rows: list[Entry] = field(factory=list[Entry])
    tool_rows: list[ToolRow] = field(factory=list[ToolRow])
    request_rows: list[RequestRow] = field(factory=list[RequestRow])

    def genesis(self) -> GenesisRow:
        return self.genesis_row

    def epochs(self) -> Iterator[EpochRow]:
        return iter(self.epoch_rows)

    def entries(self, after: int = 0) -> Iterator[Entry]:
        return (entry for entry in self.entry_rows if entry.position > after)

    def worlds(self) -> list[WorldRow]:
        return self.world_rows

    def nodes(self, first: int, last: int) -> Iterator[NodeRow]:
        return (row for row in self.node_rows if first <= row[0] <= last)

    def tools(self) -> Iterator[ToolRow]:
        return iter(self.tool_rows)

    def requests(self) -> Iterator[RequestRow]:
        return iter(self.request_rows)

    def tools_head(self) -> str:
        return self.tool_rows[-1].digest if self.tool_rows else chain.seed(self.genesis_row.digest)

    def ends(self) -> EndsRow:
        """As a forger with care would leave them: whatever is last now."""
        commits, epochs = self.entry_rows, self.epoch_rows
        if commits and commits[-1].epoch == len(epochs):
            return EndsRow(commits[-1].entry_digest, self.tools_head())
        return EndsRow(epochs[-1].digest if epochs else chain.seed(self.genesis_row.digest), self.tools_head())

    def check_schema(self) -> None: ...

    def check_file(self) -> None: ...


@define
class Writer:
    """Writes a true book."""

    world: World
    book: Book
    head: str
    heads: dict[str, str] = field(factory=dict[str, str])

    @classmethod
    def begin(cls, world: World) -> Writer:
        genesis = GenesisRow(chain.FORMAT, world.digest(), isinstance(world, JsonWorld))
        writer = cls(world, Book(genesis), chain.seed(world.digest()))
        writer.keep(0)
        return writer

    def keep(self, position: int) -> None:
        if isinstance(self.world, JsonWorld):
            checkpoint = Checkpoint(self.world, position, RowSpace(), 1, len(self.book.node_rows) + 1)
            self.book.node_rows += checkpoint.take(100)
            self.book.world_rows.append(WorldRow(position, checkpoint.root, 1, self.world.digest()))

    def open(self) -> None:
        epoch, first = len(self.book.epoch_rows) + 1, len(self.book.entry_rows) + 1
        self.head = chain.link_epoch(self.head, epoch, first)
        self.book.epoch_rows.append(EpochRow(epoch, first, self.head))

    def commit(self, session_id: str, number: int, spent: int, *, interrupted: InterruptReason | None = None) -> None:
        turn_id = f"t{len(self.book.epoch_rows)}-{number:06d}"
        intents = tuple(Intent(IntentType.TOOL_RESULT, f"c{each}", each) for each in range(spent))
        request = JudgeRequest(session_id, turn_id, interrupted, intents)
        judgement = judge(request, self.world, RuleBook({"spend": spend}), self.heads.get(session_id))
        self.append(judgement.record, judgement.world)

    def take_step(self, key: str, step: str) -> None:
        position, epoch = len(self.book.tool_rows) + 1, len(self.book.epoch_rows)
        digest = chain.link_tool(self.book.tools_head(), position, epoch, key, step)
        self.book.tool_rows.append(ToolRow(position, epoch, key, step, digest))

    def append(self, record: CommitRecord, world: World) -> None:
        position, epoch = len(self.book.entry_rows) + 1, len(self.book.epoch_rows)
        self.head = chain.link(self.head, position, epoch, record.commit_digest)
        self.book.entry_rows.append(row_of(record, position, epoch, self.head))
        self.heads[record.session_id] = record.commit_digest
        self.world = world
        self.keep(position)


def row_of(record: CommitRecord, position: int, epoch: int, head: str) -> Entry:
    data = canonical(record_to_json(record))
    return Entry(position, epoch, record.session_id, record.turn_id, data, record.commit_digest, head)


def new_writer() -> Writer:
    return Writer.begin(JsonWorld(GENESIS))


@pytest.fixture
def writer() -> Writer:
    """Two sessions, three epochs of which the second has no commits, one commit of each kind."""
    writer = new_writer()
    writer.open()
    writer.commit("ann", 1, 1)
    writer.commit("bob", 1, 2)
    writer.commit("ann", 2, 9)
    writer.open()
    writer.open()
    writer.commit("ann", 1, 1, interrupted=InterruptReason.CANCELED)
    writer.commit("bob", 1, 0)
    writer.commit("ann", 2, 1)
    writer.take_step("k", "started")
    writer.take_step("k", "ok")
    return writer


@pytest.fixture
def book(writer: Writer) -> Book:
    return writer.book


def flaw_of(book: Book, head: str | None = None) -> Flaw:
    report = audit(book, head)
    assert report.flaw is not None
    assert not report.ok
    return report.flaw


def test_a_ledger_as_it_was_written_passes(writer: Writer) -> None:
    assert audit(writer.book) == AuditReport(
        flaw=None,
        commits=6,
        sessions=2,
        epochs=3,
        world_digest=JsonWorld({"purse": 1, "log": [1, 2, 1]}).digest(),
        world_rebuilt=True,
        head=writer.head,
        head_position=None,
        tool_steps=2,
        tools_head=writer.book.tool_rows[-1].digest,
        tools_head_position=None,
    )


def test_a_ledger_that_was_never_written_to_passes() -> None:
    report = audit(new_writer().book)
    assert (report.ok, report.commits, report.epochs) == (True, 0, 0)
    assert report.world_digest == JsonWorld(GENESIS).digest()


# -- one thing is altered


ROW_FIELDS = ["position", "epoch", "session_id", "turn_id", "record_json", "commit_digest", "entry_digest"]


def other(value: Any) -> Any:
    """Something of the same kind that is not the same."""
    match value:
        case None:
            return "x"
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return "f" * 64 if len(value) == 64 else value + "x"
        case bytes():
            return value + b" "
        case list():
            return [*value, *value[:1]] if value else ["x"]
        case dict():
            return {**value, "x": 1}
        case _:
            raise TypeError(value)


@pytest.mark.parametrize("name", ROW_FIELDS)
@pytest.mark.parametrize("index", range(6))
def test_any_field_of_any_commit_that_was_altered_is_found_there(book: Book, index: int, name: str) -> None:
    row = book.entry_rows[index]
    book.entry_rows[index] = evolve(row, **{name: other(getattr(row, name))})
    assert flaw_of(book).position == row.position


@pytest.mark.parametrize("name", ["epoch", "first_position", "digest"])
@pytest.mark.parametrize("index", range(3))
def test_any_field_of_any_epoch_that_was_altered_is_found(book: Book, index: int, name: str) -> None:
    row = book.epoch_rows[index]
    book.epoch_rows[index] = evolve(row, **{name: other(getattr(row, name))})
    flaw_of(book)


@pytest.mark.parametrize(
    "forged",
    [
        {"digest": "f" * 64},
        {"format": chain.FORMAT + 1},
    ],
)
def test_a_genesis_that_was_altered_is_found(book: Book, forged: dict[str, Any]) -> None:
    book.genesis_row = evolve(book.genesis_row, **forged)
    assert flaw_of(book).place == "genesis"


@pytest.mark.parametrize("forged", [{"root": 2}, {"root": 99}, {"first": 2}, {"first": 0}, {"digest": "f" * 64}])
@pytest.mark.parametrize("position", [0, 3, 6])
def test_a_kept_world_that_was_altered_is_found(book: Book, position: int, forged: dict[str, Any]) -> None:
    assert book.world_rows[position].root == position + 1
    book.world_rows[position] = evolve(book.world_rows[position], **forged)
    assert flaw_of(book).place.startswith("world after commit ")


@pytest.mark.parametrize("removed", [slice(None), slice(1)])
def test_kept_worlds_that_were_removed_are_missed(book: Book, removed: slice) -> None:
    del book.world_rows[removed]
    assert flaw_of(book).place == "world"


def test_a_kept_world_is_not_taken_for_one_of_the_hosts_own_kind(book: Book) -> None:
    book.genesis_row = evolve(book.genesis_row, is_json=False)
    assert flaw_of(book).place == "world"


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*path, key))


def altered_at(value: Any, path: tuple[str | int, ...]) -> Any:
    if not path:
        return other(value)
    copy = value.copy()
    copy[path[0]] = altered_at(value[path[0]], path[1:])
    return copy


def test_any_part_of_any_record_that_was_altered_is_found_there(book: Book) -> None:
    rows = list(book.entry_rows)
    for index, row in enumerate(rows):
        record = orjson.loads(row.record_json)
        for path in paths(record):
            forged = canonical(altered_at(record, path))
            book.entry_rows = [*rows[:index], evolve(row, record_json=forged), *rows[index + 1 :]]
            assert flaw_of(book).position == row.position, path


@pytest.mark.parametrize("index", range(5))
def test_a_commit_that_was_taken_out_is_missed(book: Book, index: int) -> None:
    del book.entry_rows[index]
    assert str(flaw_of(book)) == f"commit {index + 1}: It is missing."


@pytest.mark.parametrize("index", range(2))
def test_an_epoch_that_was_taken_out_is_missed(book: Book, index: int) -> None:
    del book.epoch_rows[index]
    flaw_of(book)


@pytest.mark.parametrize(("one", "two"), [(0, 1), (1, 2), (0, 5), (3, 4)])
def test_two_commits_that_changed_places_are_found(book: Book, one: int, two: int) -> None:
    rows = book.entry_rows
    first, second = rows[one], rows[two]
    rows[one], rows[two] = evolve(second, position=first.position), evolve(first, position=second.position)
    assert flaw_of(book).position == first.position


def test_a_commit_that_is_there_twice_is_found(book: Book) -> None:
    book.entry_rows.insert(2, book.entry_rows[1])
    assert flaw_of(book).position == 2


# -- somebody forges with care: the digests of the row itself are right


def forge(book: Book, record: CommitRecord) -> int:
    """Append a record of the forger's making, sealed and chained. Returns its position."""
    last = book.entry_rows[-1]
    position, record = last.position + 1, sealed(record)
    head = chain.link(last.entry_digest, position, last.epoch, record.commit_digest)
    book.entry_rows.append(row_of(record, position, last.epoch, head))
    return position


FORGERIES: dict[str, tuple[str, Callable[[CommitRecord], CommitRecord]]] = {
    "another session's history": (
        "chained to the commit before it of its session",
        lambda it: evolve(it, previous=None),
    ),
    "a turn twice": ("committed before", lambda it: evolve(it, turn_id="t3-000002")),
    "a turn of another epoch": ("not one of epoch 3", lambda it: evolve(it, turn_id="t2-000009")),
    "a turn of no epoch": ("not one of epoch 3", lambda it: evolve(it, turn_id="nine")),
    "another world before": ("world that the commit before it left", lambda it: evolve(it, world_before="f" * 64)),
    "another world after": ("do not lead to the world", lambda it: evolve(it, world_after="f" * 64)),
    "a change that does not fit": ("do not fit", lambda it: evolve(it, changes=(patch.remove("/crown"),))),
    "a world out of nothing": ("no changes, and the world", lambda it: evolve(it, changes=())),
    "ok with issues": ("ok and has issues", lambda it: evolve(it, issues=(Issue("x", "x"),))),
    "a failure without a reason": ("without a reason", lambda it: evolve(it, outcome=CommitOutcome.FAIL_CLOSED)),
    "a failure that changes": (
        "failed closed and has changes",
        lambda it: evolve(it, outcome=CommitOutcome.FAIL_CLOSED, issues=(Issue("x", "x"),)),
    ),
    "a failure that leaves something": (
        "failed closed and has changes or artifacts",
        lambda it: evolve(
            it,
            outcome=CommitOutcome.FAIL_CLOSED,
            issues=(Issue("x", "x"),),
            changes=(),
            world_after=it.world_before,
            artifacts=(Artifact("deed", 1),),
        ),
    ),
}


def next_record(writer: Writer) -> CommitRecord:
    request = JudgeRequest("ann", "t3-000003", None, (Intent(IntentType.DECISION, "c0", 0),))
    return judge(request, writer.world, RuleBook({"spend": spend}), writer.heads["ann"]).record


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_commit_is_found_by_what_it_claims(writer: Writer, name: str) -> None:
    sentence, change = FORGERIES[name]
    position = forge(writer.book, change(next_record(writer)))
    flaw = flaw_of(writer.book)
    assert flaw.position == position
    assert sentence in flaw.what


@pytest.mark.parametrize(("epoch", "first_position"), [(5, 7), (3, 7), (4, 6)])
def test_a_forged_epoch_that_is_not_the_next_is_found(writer: Writer, epoch: int, first_position: int) -> None:
    digest = chain.link_epoch(writer.head, epoch, first_position)
    writer.book.epoch_rows.append(EpochRow(epoch, first_position, digest))
    assert not audit(writer.book).ok


def test_a_second_commit_in_the_place_of_another_is_found(writer: Writer) -> None:
    record = next_record(writer)
    head = chain.link(writer.head, 6, 3, record.commit_digest)
    writer.book.entry_rows.append(row_of(record, 6, 3, head))
    assert "two commits in its place" in flaw_of(writer.book).what


def test_a_record_in_another_spelling_is_found(book: Book) -> None:
    row = book.entry_rows[0]
    spelled = orjson.dumps(orjson.loads(row.record_json), option=orjson.OPT_INDENT_2)
    book.entry_rows[0] = evolve(row, record_json=spelled)
    assert "canonical" in flaw_of(book).what


@pytest.mark.parametrize("nonsense", [b"", b"null", b"{}", b"[" * 5000, b'{"outcome": NaN}', b"\xff"])
def test_a_record_that_cannot_be_read_is_found(book: Book, nonsense: bytes) -> None:
    book.entry_rows[1] = evolve(book.entry_rows[1], record_json=nonsense)
    assert flaw_of(book).position == 2


@pytest.mark.parametrize("value", [2**60, [[]]])
def test_a_record_that_holds_what_none_can_hold_is_found(book: Book, value: Any) -> None:
    for _ in range(199 if isinstance(value, list) else 0):
        value = [value]
    row = book.entry_rows[0]
    record = orjson.loads(row.record_json)
    record["changes"][0]["value"] = value
    book.entry_rows[0] = evolve(row, record_json=orjson.dumps(record))
    assert flaw_of(book).position == 1


# -- the end


def test_a_cut_end_is_seen_only_by_who_kept_a_head(writer: Writer) -> None:
    book, head = writer.book, writer.head
    assert audit(book, head).head_position == 6
    del book.entry_rows[-1]
    del book.world_rows[-1]
    assert audit(book).ok
    assert "kept elsewhere" in flaw_of(book, head).what


def test_a_cut_end_shows_if_the_world_was_not_cut_with_it(book: Book) -> None:
    del book.entry_rows[-1]
    assert flaw_of(book).place == "world after commit 6"


def test_a_head_that_was_kept_earlier_is_found_where_it_was(writer: Writer) -> None:
    early, later = writer.book.entry_rows[2].entry_digest, writer.book.epoch_rows[2].digest
    assert audit(writer.book, early).head_position == 3
    assert audit(writer.book, later).head_position == 3
    assert audit(writer.book, chain.seed(JsonWorld(GENESIS).digest())).head_position == 0


def test_a_ledger_that_was_written_anew_is_seen_by_who_kept_a_head(writer: Writer) -> None:
    anew = new_writer()
    anew.open()
    for number in range(1, 7):
        anew.commit("ann", number, 0)
    assert audit(anew.book).ok
    flaw_of(anew.book, writer.head)


# -- replay


def test_a_replay_makes_the_same_world(book: Book) -> None:
    replayed = replay(book)
    assert replayed.identical
    assert replayed.world.view() == {"purse": 1, "log": [1, 2, 1]}
    assert replayed.commits == 6


def test_a_replay_stops_at_the_given_commit(book: Book) -> None:
    replayed = replay(book, at=2)
    assert replayed.identical
    assert replayed.world.view() == {"purse": 2, "log": [1, 2]}
    assert replayed.commits == 0  # a world is kept there
    del book.world_rows[1:4]
    replayed = replay(book, at=2)
    assert (replayed.identical, replayed.commits) == (True, 2)
    assert replayed.world.view() == {"purse": 2, "log": [1, 2]}


def test_a_replay_of_nothing_is_the_genesis() -> None:
    replayed = replay(new_writer().book)
    assert (replayed.commits, replayed.identical, replayed.world.view()) == (0, True, GENESIS)


@pytest.mark.parametrize("check", [replay, audit])
def test_a_kept_world_that_the_commits_did_not_make_is_named(book: Book, check: Callable[[Book], object]) -> None:
    earlier = book.world_rows[1]
    book.world_rows[6] = evolve(book.world_rows[6], root=earlier.root, digest=earlier.digest)
    if check is audit:
        assert flaw_of(book).place == "world after commit 6"
    else:
        with pytest.raises(Altered, match=r"^world after commit 6: "):
            check(book)


def test_a_replay_begins_from_no_other_genesis(book: Book) -> None:
    del book.world_rows[0]
    with pytest.raises(Altered, match=r"^world: "):
        replay(book)


def test_a_replay_names_the_commit_that_does_not_fit(book: Book) -> None:
    row = book.entry_rows[1]
    record = evolve(read_record(row), changes=(patch.remove("/crown"),))
    book.entry_rows[1] = row_of(record, row.position, row.epoch, row.entry_digest)
    with pytest.raises(Altered, match=r"^commit 2 .*do not fit"):
        replay(book)


# -- requests


def test_a_request_with_a_commit_or_the_step_of_a_tool_passes(book: Book) -> None:
    book.request_rows += [RequestRow(1, "ann", "t1-000001", None), RequestRow(2, "ann", "t3-000009", 1)]
    assert audit(book).ok


@pytest.mark.parametrize(
    ("session_id", "turn_id", "step"),
    [("ann", "t1-000003", None), ("cat", "t1-000001", None), ("ann", "t3-000009", 0), ("ann", "t3-000009", 3)],
)
def test_a_request_whose_turn_left_nothing_else_is_found(
    book: Book, session_id: str, turn_id: str, step: int | None
) -> None:
    book.request_rows += [RequestRow(1, "ann", "t1-000001", None), RequestRow(2, session_id, turn_id, step)]
    assert str(flaw_of(book)) == "request 2: Its turn has neither a commit nor the step of a tool."


# -- a world of the host's own kind


class Tally:
    """How often it was changed, and what it came to."""

    def __init__(self, commits: int = 0, purse: int = 5) -> None:
        self.commits = commits
        self.purse = purse

    def view(self) -> dict[str, Any]:
        return {"purse": self.purse}

    def changed(self, changes: tuple[patch.PatchOp, ...]) -> Tally:
        purse = changes[0].value
        assert isinstance(purse, int)
        return Tally(self.commits + 1, purse)

    def digest(self) -> str:
        return f"{self.commits:032d}{self.purse:032d}"


def test_a_world_of_another_kind_is_made_again_from_its_genesis() -> None:
    writer = Writer.begin(Tally())
    writer.open()
    for number, spent in enumerate((1, 9, 1, 1), start=1):
        writer.commit("ann", number, spent)
    alone, helped = audit(writer.book), audit(writer.book, genesis=Tally())
    assert (alone.ok, alone.world_rebuilt) == (True, False)
    assert (helped.ok, helped.world_rebuilt, helped.world_digest) == (True, True, Tally(3, 2).digest())
    assert replay(writer.book, genesis=Tally()).identical
    with pytest.raises(LedgerUnreadable):
        replay(writer.book)


def test_another_genesis_than_the_ledgers_is_refused() -> None:
    writer = Writer.begin(Tally())
    report = audit(writer.book, genesis=Tally(purse=6))
    assert report.flaw is not None
    assert report.flaw.place == "genesis"
