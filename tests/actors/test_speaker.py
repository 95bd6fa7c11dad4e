"""Who speaks: facts, tools, workloads and rules see what the host says about this player, and about no other."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from footlights import (
    BusyRule,
    CommitOutcome,
    Ext,
    Fact,
    Intent,
    IntentType,
    InteractionContext,
    InvalidCommand,
    Persona,
    Prompt,
    RegistrationError,
    SessionParams,
    Speaker,
    ToolContext,
    TurnAccepted,
    TurnParams,
    open_stage,
    tool,
)
from footlights.authority import RuleBook, accept, patch, refuse, with_approvals
from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.speaker import MAX_ABOUT_BYTES, written_about
from footlights.testing import only, take_turn
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from footlights_transports import StageThread

if TYPE_CHECKING:
    from pathlib import Path

    from footlights import Cast
    from footlights.authority import Ruling
    from footlights_actors import Line

BOB: dict[str, Any] = {"name": "Bob", "class": "thief", "reputation": -3}
BUY = Intent(IntentType.DECISION, "buy", {"coins": 1})


def told(world: Any, speaker: Speaker) -> list[Fact]:
    return [Fact("About", repr(sorted(speaker.about.items()))), Fact("Session", speaker.session_id)]


@tool
async def buy(context: ToolContext) -> dict[str, Any]:
    """Buy something."""
    context.request_commit(Intent(IntentType.TOOL_RESULT, "buy", {"coins": 1}, about={"class": "knight"}))
    return {"persona": context.persona, **context.speaker.about}


def no_thieves(world: Any, intents: tuple[Intent, ...]) -> Ruling:
    if any(intent.about.get("class") == "thief" for intent in intents):
        return refuse("thief", "Thieves buy nothing here.")
    return accept(patch.replace("/sold", world["sold"] + len(intents)))


def shop(prompts: list[Prompt], rules: Any = None) -> Cast:
    def script(prompt: Prompt) -> list[Line]:
        prompts.append(prompt)
        return [Call("buy", {})] if prompt.user == "Buy!" and not prompt.exchanges else [Say("Well.")]

    return standard_cast(
        ScriptedModel(script),
        tools=[buy],
        world={"sold": 0},
        rules=RuleBook(rules or {"no_thieves": no_thieves}),
        personas={"mira": Persona(text="You sell.", facts=told), "odo": Persona(text="You row.", facts=told)},
    )


texts = st.text(st.characters(codec="utf-8"), max_size=20)
abouts = st.dictionaries(texts, texts | st.integers(-(2**53) + 1, 2**53 - 1) | st.booleans() | st.none(), max_size=5)


@given(one=abouts, other=abouts, order=st.lists(st.booleans(), min_size=2, max_size=8))
def test_each_prompt_has_only_its_own_players_facts(
    one: dict[str, Any], other: dict[str, Any], order: list[bool]
) -> None:
    prompts: list[Prompt] = []

    async def main() -> None:
        async with open_stage(shop(prompts)) as stage:
            players = [
                stage.start(SessionParams(session_id="one", about=one)),
                stage.start(SessionParams(session_id="other", about=other)),
            ]
            handles = [
                session.finalize(session.begin_turn(session.session_id, TurnParams(busy=BusyRule.CONCURRENT)))
                for session in (players[which] for which in order)
            ]
            for handle in handles:
                await handle.wait()

    trio.run(main)
    assert len(prompts) == len(order)
    for prompt in prompts:
        about = {"one": one, "other": other}[prompt.user]
        lines = [f"About: {sorted(about.items())!r}", f"Session: {prompt.user}"]
        assert prompt.system == "\n".join(["You sell.", *lines]).strip()


async def test_a_tool_sees_who_speaks_and_to_whom() -> None:
    prompts: list[Prompt] = []
    async with open_stage(shop(prompts)) as stage:
        session = stage.start(SessionParams(about=BOB))
        await session.finalize(session.begin_turn("Buy!", TurnParams(persona="odo"))).wait()
    assert prompts[-1].exchanges[0].value == {"persona": "odo", **BOB}


async def test_rules_judge_by_what_the_host_says_and_never_by_what_a_tool_says() -> None:
    async with open_stage(shop([])) as stage:
        thief, knight = stage.start(SessionParams(about=BOB)), stage.start()
        refused = await thief.finalize(thief.begin_turn("Buy!")).wait()
        assert refused.issues[0].code == "thief"
        assert (await knight.finalize(knight.begin_turn("Buy!")).wait()).commit_outcome is CommitOutcome.OK
        assert (await stage.commit([BUY], "a gift")).commit_outcome is CommitOutcome.OK
        assert stage.world == {"sold": 2}


async def test_a_rule_that_changes_what_it_is_shown_changes_it_for_nobody() -> None:
    def forger(world: Any, intents: tuple[Intent, ...]) -> Ruling:
        for intent in intents:
            intent.about.clear()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        return accept()

    async with open_stage(shop([], {"forger": forger, "no_thieves": no_thieves})) as stage:
        session = stage.start(SessionParams(about=BOB))
        assert (await session.finalize(session.begin_turn("Buy!")).wait()).issues[0].code == "thief"


async def test_an_approved_act_is_judged_for_its_own_session_only() -> None:
    seen: list[Any] = []

    def see(world: Any, intents: tuple[Intent, ...]) -> Ruling:
        seen.extend(dict(intent.about) for intent in intents)
        return accept()

    rules = with_approvals({"see": see}, needs=lambda *_: "Really?", may_answer=lambda *_: True)
    async with open_stage(shop([], rules)) as stage:
        bob, ann = stage.start(SessionParams(about=BOB)), stage.start(SessionParams(about={"name": "Ann"}))
        for answering in (bob, ann):
            await bob.finalize(bob.begin_turn("Buy!")).wait()
            (asked,) = stage.world["approvals"]["pending"]
            seen.clear()
            await answering.finalize(answering.begin_turn("Yes.", TurnParams(approvals={asked: True}))).wait()
            assert seen == [BOB if answering is bob else {}]


async def test_a_workload_sees_who_speaks_and_to_whom() -> None:
    seen: list[Any] = []

    class Look:
        async def run(self, context: InteractionContext) -> None:
            seen.append((context.persona, context.speaker.about))

    async with open_stage(standard_cast(workloads={"look": Look()})) as stage:
        session = stage.start(SessionParams(about=BOB))
        await session.finalize(session.begin_turn("Hm.", TurnParams(workload="look"))).wait()
    assert seen == [("default", BOB)]


@pytest.mark.parametrize(
    ("about", "persona", "shown"),
    [
        ({}, None, None),
        ({}, "odo", {"persona": "odo"}),
        (BOB, None, {"persona": "mira", "speaker": "Bob"}),
        ({"class": "thief"}, "odo", {"persona": "odo"}),
        ({"name": 7}, None, {"persona": "mira"}),
    ],
)
async def test_the_stream_shows_the_persona_and_the_name_and_nothing_else(
    about: Any, persona: str | None, shown: Any
) -> None:
    async with open_stage(shop([])) as stage:
        events = await take_turn(stage.start(SessionParams(about=about)), "Hm.", TurnParams(persona=persona))
    assert only(events, TurnAccepted).ext == (None if shown is None else Ext("ext.footlights.turn", shown))


def test_no_ledger_trace_or_log_holds_it_and_the_digests_can_be_computed_without_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = {"name": "Zebedee", "class": "quicksilver"}
    ledger = tmp_path / "ledger.db"

    async def main() -> None:
        async with open_stage(shop([]), ledger=ledger, trace=tmp_path) as stage:
            session = stage.start(SessionParams(about=secret))
            await session.finalize(session.begin_turn("Buy!")).wait()

    trio.run(main)
    with SqliteReader(ledger) as reader:
        assert audit(reader).ok
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    intent = Intent(IntentType.DECISION, "x", about=secret)
    shown = f"{caplog.text} {SessionParams(about=secret)!r} {Speaker('s', written_about(secret))!r} {intent!r}"
    assert not any(word in shown or word.encode() in written for word in secret.values())


@pytest.mark.parametrize(
    "about",
    [7, ["Bob"], "Bob", {"coins": 2**60}, {7: "seven"}, {"x": {1, 2}}, {"x": float("nan")}, {"x": "\ud800"}],
)
def test_what_is_no_json_object_is_refused_without_a_word_of_it(about: Any) -> None:
    with pytest.raises(InvalidCommand, match="about") as refused:
        SessionParams(about=about)
    assert "Bob" not in str(refused.value)


def test_it_is_bounded() -> None:
    room = MAX_ABOUT_BYTES - len('{"a":""}')
    SessionParams(about={"a": "x" * room})
    deep: Any = 1
    for _ in range(9):
        deep = {"a": deep}
    for about in ({"a": "x" * (room + 1)}, deep):
        with pytest.raises(InvalidCommand, match=f"at most {MAX_ABOUT_BYTES} bytes"):
            SessionParams(about=about)


async def test_later_changes_of_the_hosts_own_object_change_nothing() -> None:
    given: dict[str, Any] = {"name": "Bob", "tags": []}
    prompts: list[Prompt] = []
    async with open_stage(shop(prompts)) as stage:
        session = stage.start(SessionParams(about=given))
        given["tags"].append("forged")
        await session.finalize(session.begin_turn("Hm.")).wait()
    assert "forged" not in prompts[0].system


async def test_a_session_that_is_opened_again_is_told_again() -> None:
    prompts: list[Prompt] = []
    async with open_stage(shop(prompts)) as stage:
        await stage.start(SessionParams(session_id="bob", about=BOB)).close()
        for about in ({}, BOB):
            session = stage.resume("bob", about=about)
            await session.finalize(session.begin_turn("Hm.")).wait()
            await session.close()
    assert ["thief" in prompt.system for prompt in prompts] == [False, True]


def test_a_stage_on_a_thread_is_told_too() -> None:
    prompts: list[Prompt] = []
    with StageThread(shop(prompts)) as stage:
        session = stage.start(SessionParams(session_id="bob", about=BOB))
        session.finalize(session.begin_turn("Hm."))
        session.close()
        again = stage.resume("bob", about={"name": "Bob", "class": "knight"})
        again.finalize(again.begin_turn("Hm."))
    assert ["thief" in prompt.system for prompt in prompts] == [True, False]


def test_facts_of_the_world_alone_are_refused_where_they_are_registered() -> None:
    with pytest.raises(
        RegistrationError,
        match=r"called with 2 arguments: write def <lambda>\(world, speaker\), not def <lambda>\(world\)\.$",
    ):
        Persona(facts=lambda world: [])  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType]
