"""Notebooks: what is approved is remembered, for its owner alone; nothing else is anywhere."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
import trio
from attrs import evolve

from footlights import CommitFinal, MemoryLedger, SessionParams, TurnParams, open_stage
from footlights.authority import User, decisions, own_approvals, pending_approvals
from footlights.errors import InvalidCommand, RegistrationError
from footlights.notebooks.entries import NoteEntry, kept_notes, with_notes
from footlights.notebooks.limits import NotebookLimits
from footlights.notebooks.notebooks import Notebooks
from footlights.notebooks.store import MemoryNotes
from footlights.testing import only, take_turn
from footlights.tools.tool import Tool
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from footlights_actors.sealed.keys import new_key
from footlights_actors.sealed.notes import SealedNotes
from footlights_kit import Trial, cancel_everywhere
from tests.kit.memory import cast_with, note, recalled, say, start

KEY = new_key()
TEA = "Bob likes green tea."


def notebooks(**settings: Any) -> Notebooks:
    return Notebooks(MemoryNotes(), **settings)


async def test_a_note_is_remembered_after_the_player_approved_it() -> None:
    async with open_stage(cast_with(notebooks())) as stage:
        session = start(stage)
        assert await say(session, "note Bob  likes\ngreen tea.") == "Let me see."
        (approval,) = pending_approvals(stage.world)
        assert approval.question.startswith("Remember note n-t1-000001-")
        assert await say(session, "Hello?") == "Welcome, stranger."
        await say(session, "Yes.", a1=True)
        assert await say(session, "Some tea?") == f"I remember: {TEA}."


async def test_a_note_that_is_denied_is_nowhere() -> None:
    books = notebooks()
    async with open_stage(cast_with(books)) as stage:
        session = start(stage)
        await say(session, f"note {TEA}")
        assert await books.store.read("bob")
        await say(session, "No.", a1=False)
        await trio.testing.wait_all_tasks_blocked()
        assert await say(session, "Some tea?") == "Welcome, stranger."
        assert await books.store.read("bob") == {}
        assert await books.notes(stage.world, "bob") == []


async def test_a_note_that_is_denied_after_a_restart_is_nowhere() -> None:
    with TemporaryDirectory() as folder:
        notes = SealedNotes(f"{folder}/notes", [KEY])
        async with open_stage(cast_with(Notebooks(notes)), ledger=f"{folder}/ledger") as stage:
            await say(start(stage), f"note {TEA}")
        async with open_stage(cast_with(Notebooks(notes)), ledger=f"{folder}/ledger") as stage:
            session = start(stage)
            assert list((await notes.read("bob")).values()) == [TEA]
            await say(session, "No.", a1=False)
            await trio.sleep(1)
            assert await notes.read("bob") == {}


async def test_two_owners_get_their_first_notebooks_in_one_commit() -> None:
    async with open_stage(cast_with(notebooks())) as stage:
        for name in ("bob", "ann"):
            await say(start(stage, name), "note it")
        commit = await stage.commit(decisions({"a-000001": True, "a-000002": True}), "the host answers")
        assert commit.commit_outcome == "ok"
        assert [len(kept_notes(stage.world, name)) for name in ("bob", "ann")] == [1, 1]


async def test_only_a_named_player_has_a_notebook_and_each_has_his_own() -> None:
    async with open_stage(cast_with(notebooks())) as stage:
        await note(stage, start(stage, "bob:1"), TEA)
        assert await say(start(stage, "bob:2"), "Tea?") == f"I remember: {TEA}."
        assert await say(start(stage, "bobby"), "Tea?") == "Welcome, stranger."
        nobody = start(stage, None)
        assert await say(nobody, "Tea?") == "Welcome, stranger. I write nothing down."
        assert "without a name" in await say(nobody, f"note {TEA}")
        players = [SessionParams(session_id=f"game:{n}", about={"id": n}) for n in ("ann", "eve")]
        ann, eve = map(stage.start, players)
        await note(stage, ann, "Ann fears dogs.")
        assert await say(ann, "Dogs?") == "I remember: Ann fears dogs.."
        assert await say(eve, "Dogs?") == "Welcome, stranger."
        other = stage.start(SessionParams(session_id="game:odd", about={"id": "a/b"}))
        assert await say(other, "Dogs?") == "Welcome, stranger. I write nothing down."


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("x" * 41, "1 to 40"),
        ("a\x00b", "printable"),
        ("card 4111 1111 1111 1111", "secret"),
        (TEA.upper(), "already"),
    ],
)
async def test_what_may_not_be_noted_is_refused_and_not_sealed(words: str, why: str) -> None:
    books = notebooks(limits=NotebookLimits(max_note_chars=40))
    async with open_stage(cast_with(books)) as stage:
        session = start(stage)
        await note(stage, session, TEA)
        answer = await say(session, f"note {words}")
        assert why in answer
        assert words not in answer
        assert len(await books.store.read("bob")) == 1


async def test_a_full_notebook_takes_no_more_and_the_turn_goes_on() -> None:
    async with open_stage(cast_with(notebooks(limits=NotebookLimits(max_notes=1)))) as stage:
        session = start(stage)
        await note(stage, session, TEA)
        assert "at most 1 notes" in await say(session, "note Bob sings.")
        assert not pending_approvals(stage.world)


def test_the_rule_refuses_what_is_too_much_whatever_the_tool_let_through() -> None:
    entry = NoteEntry("n-t1-000001-0000abcd-1", "bob", "innkeeper", "player", 3)
    intents = [evolve(evolve(entry, note_id=f"{entry.note_id}{n}").intent, session_id="bob") for n in (1, 2)]
    agreed = {"notes": {"bob": {"agreed": True, "written": 0, "kept": {}}}}
    rules = with_notes({}, consent=True, max_notes=1)
    (issue,) = rules["notes"](agreed, tuple(intents)).issues
    assert issue.code == "notebook_full"


async def test_players_who_do_not_answer_are_asked_no_more_and_leave_places_for_others() -> None:
    async with open_stage(cast_with(notebooks())) as stage:
        silent = start(stage)
        for number in range(3):
            await say(silent, f"note {number}")
        assert "3 notes wait" in await say(silent, "note more")
        for number in range(47):
            await say(start(stage, f"p{number}"), "note it")
        assert "Too many questions" in await say(start(stage, "ann"), "note it")
        assert len(pending_approvals(stage.world)) == 50


async def test_players_of_a_game_server_answer_for_themselves_alone() -> None:
    async with open_stage(cast_with(notebooks())) as stage:
        ann, eve = (stage.start(SessionParams(session_id=f"game:{n}", about={"id": n})) for n in ("ann", "eve"))
        await say(ann, "note Ann fears dogs.")
        for yes in (True, False):
            events = await take_turn(eve, "Hm.", TurnParams(approvals={"a-000001": yes}))
            assert only(events, CommitFinal).issues[0].code == "approval_unknown"
        await say(ann, "Yes.", a1=True)
        assert await say(ann, "Dogs?") == "I remember: Ann fears dogs.."
        for number in range(10):
            who = stage.start(SessionParams(session_id=f"game:p{number}", about={"id": f"p{number}"}))
            await say(who, "note it")
        assert "Too many questions" in await say(eve, "note it")


async def test_a_standing_yes_is_given_by_the_player_and_taken_back() -> None:
    books = notebooks(consent=True)
    async with open_stage(cast_with(books)) as stage:
        session = start(stage)
        await books.agree(stage, "bob", agreed=True)
        await say(session, f"note {TEA}")
        assert not pending_approvals(stage.world)
        assert await say(session, "Tea?") == f"I remember: {TEA}."
        await books.agree(stage, "bob", agreed=False)
        await say(session, "note Bob sings.")
        assert len(pending_approvals(stage.world)) == 1
    async with open_stage(cast_with(notebooks())) as stage:
        with pytest.raises(InvalidCommand, match="asks for each note"):
            await notebooks().agree(stage, "bob", agreed=True)


async def test_erasing_leaves_a_stranger_and_a_chain_without_words() -> None:
    books, ledger = notebooks(consent=True), MemoryLedger()
    async with open_stage(cast_with(books), ledger=ledger) as stage:
        session = start(stage)
        await note(stage, session, TEA)
        await say(session, "note Bob sings.")
        assert await books.erase(stage, "bob") == 2
        assert await say(session, "Tea?") == "Welcome, stranger."
        assert await books.notes(stage.world, "bob") == []
        assert not pending_approvals(stage.world)
        assert await books.erase(stage, "bob") == 0
        await note(stage, session, "Bob is back.")
        assert await say(session, "Tea?") == "I remember: Bob is back.."
    assert not any(b"tea" in record or b"sings" in record for record in ledger._records.values())


async def test_erasing_is_finished_also_if_its_caller_has_gone() -> None:
    books = notebooks()
    async with open_stage(cast_with(books)) as stage:
        await note(stage, start(stage), TEA)
        with trio.CancelScope() as gone:
            gone.cancel()
            await books.erase(stage, "bob")
        assert kept_notes(stage.world, "bob") == []
        assert list(await books.store.owners()) == []


async def test_a_note_that_was_sealed_before_the_notebook_was_erased_is_denied() -> None:
    sealed, go_on = trio.Event(), trio.Event()

    async def wait(_arguments: Any, _context: Any) -> dict[str, Any]:
        sealed.set()
        await go_on.wait()
        return {}

    def script(prompt: Any) -> list[Any]:
        rounds: list[list[Any]] = [[Call("remember", {"note": TEA})], [Call("wait", {})], [Say(".")]]
        return rounds[len(prompt.exchanges)]

    books = notebooks()
    tool = Tool(name="wait", run=wait, description="Wait.", parameters={"type": "object", "properties": {}})
    async with open_stage(standard_cast(ScriptedModel(script), notebooks=books, tools=[tool])) as stage:
        session = start(stage)
        turn = session.begin_turn("Hm.")
        await sealed.wait()
        await books.erase(stage, "bob")
        go_on.set()
        await session.finalize(turn).wait()
        await trio.sleep(1)
        assert not pending_approvals(stage.world)
        assert await books.store.read("bob") == {}


async def test_model_selected_and_the_trace_name_the_recalled_notes(tmp_path: Any) -> None:
    async with open_stage(cast_with(notebooks()), trace=tmp_path) as stage:
        session = start(stage)
        note_id = await note(stage, session, TEA)
        assert recalled(await take_turn(session, "Tea?")) == [note_id]
    lines = [orjson.loads(line) for line in (tmp_path / "interaction_trace.jsonl").read_bytes().splitlines()]
    told = [
        line["payload"]["ext"] for line in lines if line["event_type"] == "model_selected" and "ext" in line["payload"]
    ]
    assert {"namespace": "ext.footlights.notes", "bytes": len(note_id) + 4, "note_ids": [note_id]} in told
    assert b"tea" not in (tmp_path / "interaction_trace.jsonl").read_bytes()


async def test_other_users_see_nothing_of_a_notebook() -> None:
    async with open_stage(cast_with(notebooks())) as stage:
        await note(stage, start(stage, "bob:1"), TEA)
        await note(stage, start(stage, "ann:1"), TEA)
        assert list(own_approvals(stage.world, User("ann"))["notes"]) == ["ann"]
        assert list(own_approvals(stage.world, User("ann", operator=True))["notes"]) == ["ann", "bob"]


@pytest.mark.parametrize("is_real", [False, pytest.param(True, marks=pytest.mark.long)])
def test_memory_equals_what_was_committed_at_every_point_of_a_cancel(is_real: bool) -> None:
    async def scenario(trial: Trial) -> None:
        with TemporaryDirectory() as folder:
            notes = SealedNotes(f"{folder}/notes", [KEY]) if is_real else MemoryNotes()
            ledger = f"{folder}/ledger" if is_real else MemoryLedger()
            async with open_stage(cast_with(Notebooks(notes, consent=True)), ledger=ledger) as stage:
                books = stage.notebooks
                assert books is not None
                await books.agree(stage, "bob", agreed=True)
                session = start(stage)
                trial.aim(session.cancel)
                commit = only(await take_turn(session, f"note {TEA}"), CommitFinal)
                trial.disarm()
                entries = [entry.note_id for entry in kept_notes(stage.world, "bob")]
                told = await books.notes(stage.world, "bob")
                assert [each.entry.note_id for each in told] == entries
                assert [each.words for each in told] == ([TEA] if commit.commit_outcome == "ok" else [])
                await trio.testing.wait_all_tasks_blocked()
                await trio.sleep(1)
                assert list(await notes.read("bob")) == entries  # what was left behind is swept
            async with open_stage(cast_with(Notebooks(notes)), ledger=ledger):
                await trio.sleep(1)
                assert list(await notes.read("bob")) == (entries if is_real else [])  # that ledger is new each time

    cancel_everywhere(scenario)


async def test_approvals_of_the_game_and_of_notes_stand_beside_each_other() -> None:
    from footlights.authority import accept, with_approvals

    rules = with_approvals({"till": lambda _world, _intents: accept()}, lambda _world, _intent: None)
    async with open_stage(cast_with(notebooks(), rules=rules)) as stage:
        session = start(stage)
        await note(stage, session, TEA)
        assert await say(session, "Tea?") == f"I remember: {TEA}."


@pytest.mark.parametrize("held", [["milk"], "milk", {"board": "milk"}])
def test_a_world_whose_notes_are_something_else_takes_no_notebooks(held: Any) -> None:
    with pytest.raises(RegistrationError, match="reserved for notebooks"):
        standard_cast(ScriptedModel(lambda _prompt: [Say(".")]), notebooks=notebooks(), world={"notes": held})
    assert own_approvals({"notes": held}, User("bob")) == {"notes": held}
    assert kept_notes({"notes": held}, "board") == []


def test_mistakes_in_settings_are_refused() -> None:
    with pytest.raises(RegistrationError, match="half_life"):
        NotebookLimits(half_life=0)
    with pytest.raises(RegistrationError, match="one of"):
        notebooks(language="klingon")
    with pytest.raises(RegistrationError, match="notes"):
        cast_with(notebooks(), rules={"notes": lambda _world, _intents: None})


async def test_a_model_that_makes_up_arguments_is_told_what_a_note_is() -> None:
    books = notebooks()
    async with open_stage(cast_with(books)) as stage:
        session = start(stage)
        await say(session, "note  ")
        assert not pending_approvals(stage.world)
        assert await take_turn(session, "Hi", TurnParams())
