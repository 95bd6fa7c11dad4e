"""The JavaScript client in Node, against the real server. Its events are checked against the laws in Python."""

from __future__ import annotations

import re
import subprocess
from importlib.resources import files
from itertools import count, repeat
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import fields

from footlights import BusyRule, Limits, Mode, ModelUnreachable, SessionParams, TurnParams, laws
from footlights.events import PAYLOAD_TYPES, CommitOutcome, InterruptReason, Payload, WarmState
from footlights.limits import MAX_REPLAY_TURNS
from footlights.models.budget import BudgetTier
from footlights.stream.cursor import ALL_SEEN, RESTART_SEQ
from footlights_actors import Fail, Say, ScriptedModel
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.errors import WIRE_CODES
from tests.kit.paths import ROOT
from tests.kit.peers.dying_server import dying_server
from tests.kit.peers.js_peer import FLAGS, JS, HeldModel, held_server, nodes, open_cutter, open_house, run_js

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

NODES: Sequence[str | None] = nodes() or [None]
TOKEN = "a-token-of-the-tests"
BEFORE_ALL = {"t1-000000": ALL_SEEN}
"""Cursor before every turn."""

_INTERFACE = re.compile(r"^export interface (\w+)[^{]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^    (?:readonly )?(\w+)\??:", re.MULTILINE)
_PROGRAM = re.compile(r"^```js\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def version(node: str | None) -> str:
    if node is None:
        return "none"
    return subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def found(node: str | None) -> str:
    if node is None:
        pytest.skip("THE JAVASCRIPT CLIENT WAS NOT TESTED: there is no node here")
    return node


@pytest.fixture
def node() -> str:
    return found(NODES[-1])


async def test_a_node_without_websocket_is_told_what_to_do(node: str) -> None:
    client = (files("footlights_transports") / "static" / "footlights.js").read_text(encoding="utf-8")
    program = (
        f"delete globalThis.WebSocket;\n{client}\nconnect('ws://127.0.0.1:1').catch((e) => console.log(e.message));"
    )
    command = [node, "--no-warnings", "--input-type=module", "-"]
    done = await trio.run_process(command, stdin=program.encode(), capture_stdout=True)
    assert done.stdout.decode() == (
        "There is no WebSocket here: use Node 22 or newer, start Node 20 with --experimental-websocket, or pass a "
        "class as options.WebSocket.\n"
    )


@pytest.fixture(params=NODES, ids=version)
def every_node(request: pytest.FixtureRequest) -> str:
    return found(request.param)


def talker(*words: str) -> ScriptedModel:
    return ScriptedModel(lambda _: [Say(word) for word in words])


def test_the_module_and_its_types_are_part_of_the_package() -> None:
    static = files("footlights_transports") / "static"
    assert "export async function connect" in (static / "footlights.js").read_text(encoding="utf-8")
    assert "export declare function connect" in (static / "footlights.d.ts").read_text(encoding="utf-8")


def test_the_types_know_every_field_of_every_payload() -> None:
    types = (files("footlights_transports") / "static" / "footlights.d.ts").read_text(encoding="utf-8")
    interfaces = {name: set(_FIELD.findall(body)) for name, body in _INTERFACE.findall(types)}
    for kind, payload in PAYLOAD_TYPES.items():
        own = {each.name for each in fields(payload)} - {each.name for each in fields(Payload)}
        assert interfaces[payload.__name__] == own
        assert f"    {kind}: {payload.__name__};" in types
    assert interfaces["Payload"] == {each.name for each in fields(Payload)}
    assert interfaces["SessionParams"] == {each.name for each in fields(SessionParams)}
    of_the_host_alone = {"facts"}
    assert interfaces["TurnParams"] == {each.name for each in fields(TurnParams)} - of_the_host_alone
    for name in (*InterruptReason, *CommitOutcome, *WarmState, *BusyRule, *Mode, *BudgetTier, *WIRE_CODES):
        assert f'"{name}"' in types


def test_the_laws_have_the_names_that_they_have_everywhere() -> None:
    source = (files("footlights_transports") / "static" / "footlights.js").read_text(encoding="utf-8")
    table = source[source.index("const BROKEN") : source.index("/** State of each turn")]
    named = {*re.findall(r'LawBroken\("(\w+)"', source), *re.findall(r'"(\w+_\w+)"', table)}
    assert len(named) == 11
    assert named <= set(laws.LAWS)


def test_more_turns_are_remembered_than_a_server_retains() -> None:
    source = (files("footlights_transports") / "static" / "footlights.js").read_text(encoding="utf-8")
    (kept,) = re.findall(r"const WHOLE_TURNS_KEPT = ([\d_]+);", source)
    assert int(kept) > MAX_REPLAY_TURNS


async def test_the_program_in_the_docs_prints_what_they_say(node: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "clients" / "use-from-javascript.md").read_text(encoding="utf-8")
    ((program, output),) = _PROGRAM.findall(page)
    async with open_house(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as house:
        (tmp_path / "program.mjs").write_text(program.replace("ws://127.0.0.1:7600", house.url), encoding="utf-8")
        (tmp_path / "footlights.js").symlink_to(ROOT / "transports/footlights_transports/static/footlights.js")
        (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
        command = [node, *FLAGS, "--preserve-symlinks", str(tmp_path / "program.mjs")]
        done = await trio.run_process(command, capture_stdout=True)
    assert done.stdout.decode() == output


def test_the_client_keeps_its_promises_to_a_server_that_breaks_them(every_node: str) -> None:
    command = [every_node, *FLAGS, "--test", str(JS / "client.test.mjs")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("batch", [False, True])
async def test_a_turn_is_played_from_start_to_commit(every_node: str, batch: bool) -> None:
    async with open_house() as house, run_js(every_node, "whole_turn.mjs", url=house.url, batch=batch) as script:
        told = await script.told()
        assert script.types()[0] == "turn_accepted"
        assert script.types()[-2:] == ["turn_final", "commit_final"]
        assert script.text(told["turnId"]) == "Good evening, my friend."
        assert told["commit"]["commit_outcome"] == "ok"
        assert told["commit"]["commit_digest"] == script.events[-1]["payload"]["commit_digest"]
        assert told["cursor"] == {**BEFORE_ALL, told["turnId"]: ALL_SEEN}


async def test_a_turn_that_fails_says_why(node: str) -> None:
    away = ScriptedModel(lambda _: [Fail(ModelUnreachable(sentence="inn.example cannot be reached (ConnectError)."))])
    async with open_house(away) as house, run_js(node, "whole_turn.mjs", url=house.url) as script:
        assert (await script.told())["commit"]["commit_outcome"] == "fail_closed"
        assert script.events[-2]["payload"]["error"] == {
            "code": "model_unreachable",
            "message": "inn.example cannot be reached (ConnectError).",
        }


async def test_the_path_need_not_be_named(node: str) -> None:
    async with open_house() as house, run_js(node, "whole_turn.mjs", url=house.url.removesuffix("/v1")) as script:
        assert (await script.told())["commit"]["commit_outcome"] == "ok"


@pytest.mark.parametrize("batch", [False, True])
async def test_two_sessions_share_a_connection_and_nothing_else(node: str, batch: bool) -> None:
    async with open_house() as house, run_js(node, "two_sessions.mjs", url=house.url, batch=batch) as script:
        one, other = await script.told()
        assert (one["seen"], other["seen"]) == ([one["session"]], [other["session"]])
        for each in (one, other):
            assert script.text(each["turnId"], each["session"]) == "Good evening, my friend."


async def test_a_cancel_ends_the_turn_and_a_close_ends_the_session(node: str) -> None:
    async with open_house(HeldModel()) as house, run_js(node, "cancel.mjs", url=house.url) as script:
        (first,) = (await script.told())["canceled"]
        assert (await script.told())["canceled"] == []
        assert script.types(first)[-2:] == ["turn_interrupted", "commit_final"]
        last = (await script.told())["closed"]
        assert await script.told() is None
        assert script.types(last)[-2:] == ["turn_interrupted", "commit_final"]
        reasons = [each["payload"]["reason"] for each in script.events if each["event_type"] == "turn_interrupted"]
        assert reasons == ["canceled", "session_closed"]


async def test_every_refusal_has_its_code(node: str) -> None:
    policy = AccessPolicy(limits=WireLimits(max_frame_bytes=8_192))
    async with (
        open_house(HeldModel(), policy=policy, limits=Limits(max_input_bytes=4_096)) as house,
        run_js(node, "refusals.mjs", url=house.url, inputLimit=4_096, frameLimit=8_192) as script,
    ):
        assert await script.told() == {
            "unknownSession": "unknown_session",
            "foreignStream": "unknown_session",
            "unknownTurn": "unknown_turn",
            "busy": "busy",
            "tooDeep": "invalid_command",
            "notUnicode": "invalid_command",
            "badParams": "invalid_command",
            "followedTwice": "invalid_command",
            "noSuchSeq": "invalid_command",
            "tooLong": "too_large",
            "muchTooLong": "too_large",
            "afterwards": None,
        }
        assert await script.told() == {"closed": "unknown_session", "closedTwice": "unknown_session"}
        assert await script.told() == {"clientClosed": "connection_lost"}
        assert script.types()[-2:] == ["turn_interrupted", "commit_final"]


async def test_a_token_goes_as_a_subprotocol(node: str) -> None:
    policy = AccessPolicy({"ada": TOKEN})
    async with open_house(policy=policy) as house, run_js(node, "whole_turn.mjs", url=house.url, token=TOKEN) as script:
        assert (await script.told())["sessionId"].startswith("ada:")


async def test_a_client_without_a_token_is_refused(node: str) -> None:
    async with open_house(policy=AccessPolicy({"ada": TOKEN})) as house:
        for token in (None, "another-token-of-the-tests"):
            async with run_js(node, "refused.mjs", url=house.url, token=token) as script:
                assert await script.told() == "connection_lost"


# -- connections that break


def cut_after(frames: Iterable[int]) -> Iterator[int | None]:
    """The first connection of each round is broken, the second is not."""
    for each in frames:
        yield each
        yield None


@pytest.mark.parametrize("batch", [False, True])
async def test_a_connection_that_breaks_after_any_frame_costs_nothing(every_node: str, batch: bool) -> None:
    model = HeldModel()
    async with (
        open_house(model) as house,
        open_cutter(house.port, cut_after(count())) as cutter,
        run_js(every_node, "follow.mjs") as script,
    ):
        for frames in count():
            session = house.stage.start(SessionParams(session_id=f"s-{frames}"))
            model.may_go_on = trio.Event()
            await script.say({"url": cutter.url, "sessionId": session.session_id, "commits": 2, "batch": batch})
            assert await script.told() == "ready"
            one, other = session.begin_turn("One."), session.begin_turn("Two.")
            model.may_go_on.set()
            told = await script.told()
            _, *taken = told["cursor"]  # the first is where it began
            assert (taken, {*told["cursor"].values()}, told["terminalSeen"]) == ([one, other], {ALL_SEEN}, [])
            for turn_id in (one, other):
                assert script.text(turn_id, session.session_id) == "Well, good evening."
            if cutter.broken <= frames:
                break
        assert script.types().count("commit_final") == 2 * (frames + 1)
        assert frames >= (2 if batch else 10)
        await script.say(None)


async def test_a_connection_that_breaks_after_any_frame_ends_every_turn_once_also_where_nothing_is_retained(
    node: str,
) -> None:
    limits = Limits(replay_turns=0)
    async with (
        open_house(talker("Well, ", "good evening."), limits=limits) as house,
        open_cutter(house.port, cut_after(count())) as cutter,
        run_js(node, "follow.mjs") as script,
    ):
        forgotten = 0
        for frames in count():
            session = house.stage.start(SessionParams(session_id=f"s-{frames}"))
            await script.say({"url": cutter.url, "sessionId": session.session_id, "commits": 1})
            assert await script.told() == "ready"
            session.begin_turn("A room?")
            told = await script.told()
            assert (set(told["cursor"].values()), told["terminalSeen"]) == ({ALL_SEEN}, [])
            events = [each for each in script.events if each["session_id"] == session.session_id]
            assert [each["event_type"] for each in events].count("turn_final") == 1
            assert [each["event_type"] for each in events].count("commit_final") == 1
            assert laws.check(events) == []
            forgotten += any("text_forgotten" in each["payload"] for each in events)
            if cutter.broken <= frames:
                break
        assert forgotten
        await script.say(None)


async def test_a_connection_that_breaks_all_the_time_costs_nothing(node: str) -> None:
    words = [f"word {number} " for number in range(40)]
    async with (
        open_house(talker(*words)) as house,
        open_cutter(house.port, repeat(3)) as cutter,
        run_js(node, "follow.mjs") as script,
    ):
        session = house.stage.start()
        await script.say({"url": cutter.url, "sessionId": session.session_id, "commits": 3})
        assert await script.told() == "ready"
        turns = [session.begin_turn("Go on.") for _ in range(3)]
        assert (await script.told())["cursor"] == BEFORE_ALL | dict.fromkeys(turns, ALL_SEEN)
        assert [script.text(turn_id) for turn_id in turns] == ["".join(words)] * 3
        assert cutter.broken >= 3
        await script.say(None)


async def test_a_turn_whose_reply_is_lost_is_found_and_not_begun_again(node: str) -> None:
    replies_to_start_and_subscribe = 2
    async with (
        open_house() as house,
        open_cutter(house.port, [replies_to_start_and_subscribe]) as cutter,
        run_js(node, "lost_reply.mjs", url=cutter.url) as script,
    ):
        assert [await script.told(), await script.told(), await script.told()] == ["t1-000001", "t1-000002", None]
        assert script.types()[0] == "turn_accepted"
        assert script.types()[-2:] == ["turn_final", "commit_final"]


async def test_a_turn_whose_reply_is_lost_and_whose_server_is_killed_is_found_with_its_end(
    node: str, tmp_path: Path
) -> None:
    ledger = tmp_path / "inn.ledger"
    async with (
        dying_server(ledger, "tool") as (process, port),
        open_cutter(port, [2]) as cutter,  # behind the replies to start and subscribe
        run_js(node, "lost_reply.mjs", url=cutter.url) as script,
    ):
        await process.wait()
        async with dying_server(ledger, "tool", port):
            assert [await script.told(), await script.told(), await script.told()] == ["t1-000001", "t2-000001", None]
        assert script.types()[-2:] == ["turn_interrupted", "commit_final"]
        assert script.events[-2]["payload"]["reason"] == "runtime_restart"
        assert {each["turn_id"] for each in script.events} == {"t1-000001"}


async def test_a_server_that_was_killed_and_comes_back_tells_how_the_turn_ended(node: str, tmp_path: Path) -> None:
    ledger = tmp_path / "inn.ledger"
    async with (
        held_server(ledger) as (port, kill),
        run_js(node, "begin_and_wait.mjs", url=f"ws://127.0.0.1:{port}") as script,
    ):
        assert await script.told() == "speaking"
        kill()
        async with held_server(ledger, port):
            other = await script.told()
            (one,) = {each["turn_id"] for each in script.events}
            assert [each["seq"] for each in script.events[-2:]] == [RESTART_SEQ, ALL_SEEN]
            assert script.events[-2]["payload"]["reason"] == "runtime_restart"
            assert await script.told() is None
            assert script.types(one).count("commit_final") == script.types(other).count("commit_final") == 1


async def test_a_client_that_saw_nothing_of_a_turn_gets_its_end_after_a_kill(node: str, tmp_path: Path) -> None:
    ledger = tmp_path / "inn.ledger"
    async with held_server(ledger) as (port, kill):
        async with run_js(node, "unread.mjs", url=f"ws://127.0.0.1:{port}") as script:
            told = await script.told()
        assert told["cursor"] == {**BEFORE_ALL, told["turnId"]: -1}
        kill()
        async with held_server(ledger, port), run_js(node, "follow.mjs") as script:
            back = {"sessionId": told["sessionId"], "after": told["cursor"], "commits": 1}
            await script.say({"url": f"ws://127.0.0.1:{port}", **back})
            assert await script.told() == "ready"
            assert (await script.told())["cursor"] == {**BEFORE_ALL, told["turnId"]: ALL_SEEN}
            assert [each["seq"] for each in script.events] == [RESTART_SEQ, ALL_SEEN]
            await script.say(None)


async def test_a_session_without_a_stream_goes_on_after_a_restart(node: str, tmp_path: Path) -> None:
    ledger = tmp_path / "inn.ledger"
    async with (
        held_server(ledger) as (port, kill),
        run_js(node, "without_stream.mjs", url=f"ws://127.0.0.1:{port}") as script,
    ):
        before = (await script.told())["before"]
        kill()
        async with held_server(ledger, port):
            await script.say("go on")
            told = await script.told()
            assert told["after"].startswith("t2-")
            assert told["canceled"] == [told["after"]]
            assert told["commit"]["commit_outcome"] == "fail_closed"
            assert await script.told() is None
            assert [each["seq"] for each in script.events if each["turn_id"] == before] == [RESTART_SEQ, ALL_SEEN]


async def test_a_connection_over_which_nothing_comes_any_more_is_replaced(every_node: str) -> None:
    async with open_house() as house, open_cutter(house.port, []) as cutter:
        session = house.stage.start()
        async with run_js(every_node, "half_open.mjs", url=cutter.url, sessionId=session.session_id) as script:

            async def pass_time(*shown: str) -> None:
                await script.say("pass")
                assert [await script.told() for _ in shown] == [*shown]

            assert [await script.told(), await script.told()] == ["open", "ready"]
            for _ in range(3):
                await pass_time("passed")
                await pass_time("ping", "passed", "answer")
            cutter.silent = cutter.connections
            await pass_time("passed")
            await pass_time("ping", "passed")
            await pass_time("passed")
            await pass_time("passed", "open")  # the pause before the next connection
            session.begin_turn("Hello?")
            assert await script.told() == "committed"
            cutter.hang_up()
            await script.say("end")


# -- consumers that are slow


@pytest.mark.shows("core-14")
async def test_gaps_are_declared(node: str) -> None:
    async with open_house(talker("one ", "two ", "three")) as house, run_js(node, "follow.mjs") as script:
        session = house.stage.start()
        turn_id = session.begin_turn("Count.")
        await session.finalize(turn_id).wait()
        await script.say({"url": house.url, "sessionId": session.session_id, "commits": 1, "after": {}})
        assert await script.told() == "ready"
        await script.told()
        assert script.text(turn_id) == "one two three"
        (joined,) = [each for each in script.events if each["event_type"] == "token_delta"]
        before = script.events[script.events.index(joined) - 1]
        assert before["seq"] + 1 < joined["seq"]
        gap = {"start_seq": before["seq"] + 1, "end_seq": joined["seq"] - 1}
        assert joined["payload"]["dropped_seq_ranges"] == [gap]
        await script.say(None)


async def test_a_consumer_that_is_too_slow_comes_back_for_the_rest(node: str) -> None:
    words = [f"word {number} " for number in range(200)]
    model = talker(*words)
    async with open_house(model) as house, run_js(node, "follow.mjs") as script:
        session = house.stage.start()
        wish = {"url": house.url, "sessionId": session.session_id, "commits": 2, "maxWaiting": 2, "isSlow": True}
        await script.say(wish)
        assert await script.told() == "ready"
        turns = [session.begin_turn("Go on."), session.begin_turn("Go on.")]
        for turn_id in turns:
            await session.finalize(turn_id).wait()
        await script.say("begin")
        assert (await script.told())["cursor"] == BEFORE_ALL | dict.fromkeys(turns, ALL_SEEN)
        assert [script.text(turn_id) for turn_id in turns] == ["".join(words)] * 2
        await script.say(None)
