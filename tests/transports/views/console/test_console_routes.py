"""What the console's page asks: for operators only, within bounds, and without the words of others."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import trio
from attrs import evolve

from footlights import SideEffects, ToolError, TurnParams, open_stage, tool
from footlights.authority import SqliteLedger
from footlights_actors import Call, Say, ScriptedModel, Stall, standard_cast
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import AccessPolicy
from footlights_transports.config.config import load_config
from footlights_transports.views.console.recorder import PATIENCE, Recorder
from footlights_transports.views.console.view import ConsoleView, NoConsole
from tests.kit.peers.http_peer import House, open_house, refused, taken
from tests.kit.serving import view_of

if TYPE_CHECKING:
    from pathlib import Path

    from footlights import Cast
    from footlights.models.model import Prompt

ANN, BOB, OPS = (f"{name}-has-a-secret-token" for name in ("ann", "bob", "ops"))
TOKENS = AccessPolicy({"ann": ANN, "bob": BOB, "ops": OPS}, roles={"ops": {"operator": True}})
ROUTES = (
    "/console/state",
    "/console/turns/s/t1-000001",
    "/console/commits",
    "/console/world?at=c",
    "/console/difference?from=c",
    "/console/audits",
)


def at_once() -> Cast:
    return tavern_cast(pace=0, load_seconds=0, tool_seconds=0)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def ask(house: House, path: str, **options: Any) -> Any:
    return taken(await house.client.get(path, **options))


async def say(house: House, *lines: str) -> tuple[str, list[str]]:
    guest = await house.start()
    turns = [await guest.begin_turn(each) for each in lines]
    await guest.finalize(turns[-1])
    return guest.session_id, turns


async def test_the_page_runs_nothing_but_its_own_scripts() -> None:
    async with open_house() as house:
        page = await house.client.get("/")
        policy = page.headers["content-security-policy"]
        assert page.status_code == 200
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "style=" not in page.text
        assert "<script>" not in page.text
        script = await house.client.get("/console/files/main.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert script.headers["content-security-policy"] == policy
        for name in ("nothing.js", "..%2ffootlights.js", "index.html", "main.js%00"):
            assert (await house.client.get(f"/console/files/{name}")).status_code == 404


@pytest.mark.parametrize("path", ROUTES)
async def test_only_an_operator_is_answered(path: str) -> None:
    async with open_house(policy=TOKENS) as house:
        assert refused(await house.client.get(path)) == (401, "unauthorized")
        assert refused(await house.client.get(path, headers=bearer(ANN))) == (401, "unauthorized")
        assert (await house.client.get(path, headers=bearer(OPS))).status_code in (200, 400, 404)
        assert refused(await house.client.post("/console/audits", headers=bearer(ANN))) == (401, "unauthorized")


async def test_the_own_page_may_ask_where_tokens_are_wanted_and_no_other() -> None:
    async with open_house(policy=TOKENS) as house:
        own = {**bearer(OPS), "origin": f"http://{house.client.base_url.netloc.decode()}"}
        assert (await house.client.post("/v1/sessions", headers=own)).status_code == 201
        other = {**bearer(OPS), "origin": "http://evil.example"}
        assert (await house.client.post("/v1/sessions", headers=other)).status_code == 403


async def test_the_state_shows_open_turns_and_those_that_were_settled_since() -> None:
    async with open_house(cast=at_once()) as house:
        assert (await ask(house, "/console/state"))["settled"] == []
        session_id, turns = await say(house, "Hello", "I'll take the attic")
        state = await ask(house, "/console/state?after=0")
        assert [each["turn_id"] for each in state["settled"]] == turns
        assert {each["part"] for each in state["settled"][1]["parts"]} >= {"queue", "tool", "write"}
        assert state["settled"][1]["session_id"] == session_id
        assert (await ask(house, f"/console/state?after={state['count']}"))["settled"] == []
        assert refused(await house.client.get("/console/state?after=-1")) == (400, "invalid_command")


async def test_an_open_turn_is_shown_with_its_parts_so_far() -> None:
    async with open_house(ScriptedModel(lambda _: [Say("Well,"), Stall()])) as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("A room?")
        with trio.fail_after(5):
            while True:
                (turn,) = (await ask(house, "/console/state"))["turns"]
                if turn["state"] == "performing":
                    break
        assert (turn["turn_id"], turn["parts"][-1]["part"]) == (turn_id, "speaking")
        assert sum(each["took_us"] for each in turn["parts"]) >= (turn["now_ms"] - turn["accepted_ms"] - 1) * 1000


async def test_nothing_is_recorded_while_nobody_looks(quiet_clock: trio.testing.MockClock) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Hm.")]))) as stage:
        recorder = Recorder(stage)
        session = stage.start()

        async def turn() -> None:
            await session.finalize(session.begin_turn("A room?")).wait()

        await turn()
        assert recorder.after(0) == []
        await turn()
        assert len(recorder.after(0)) == 1
        await trio.sleep(PATIENCE + 1)
        await turn()
        assert recorder.count == 1


async def test_a_turn_is_shown_whole_to_its_owner() -> None:
    async with open_house(cast=at_once()) as house:
        session_id, (turn_id,) = await say(house, "I'll take the attic")
        turn = await ask(house, f"/console/turns/{session_id}/{turn_id}")
        assert [turn["own"], turn["record"]["outcome"], turn["summary"]["turn_id"]] == [True, "ok", turn_id]
        assert turn["events"][-1]["event_type"] == "commit_final"
        assert any("attic" in each["payload"].get("delta", "") for each in turn["events"])
        assert refused(await house.client.get(f"/console/turns/{session_id}/t9-000001")) == (404, "unknown_turn")


async def test_the_words_of_others_are_dots() -> None:
    async with open_house(cast=at_once(), policy=TOKENS, headers=bearer(ANN)) as house:
        session_id, (turn_id,) = await say(house, "I'll take the attic")
        shown = await house.client.get(f"/console/turns/{session_id}/{turn_id}", headers=bearer(OPS))
        assert shown.status_code == 200
        turn = shown.json()
        assert turn["own"] is False
        said = "".join(each["payload"].get("delta", "") for each in turn["events"])
        assert set(said) == {"·"}
        assert {each["payload"].get("text", "·")[:1] for each in turn["events"]} == {"·"}
        assert turn["record"]["changes"]


async def test_what_a_tool_quotes_in_its_error_is_not_shown_to_others() -> None:
    @tool(side_effects=SideEffects.NONE)
    async def find(who: str) -> str:
        """Find somebody."""
        raise ToolError(f"Nobody here is called {who}.")

    def script(prompt: Prompt) -> list[Say | Call]:
        return [Say("Well.")] if prompt.exchanges else [Call("find", {"who": "my secret Zoe"})]

    cast = standard_cast(ScriptedModel(script), tools=[find])
    async with open_house(cast=cast, policy=TOKENS, headers=bearer(ANN)) as house:
        session_id, (turn_id,) = await say(house, "Where is she?")
        shown = await house.client.get(f"/console/turns/{session_id}/{turn_id}", headers=bearer(OPS))
        assert '"tool_error"' in shown.text
        assert "Zoe" not in shown.text


async def test_an_audit_shows_what_was_altered_also_if_it_is_no_text(tmp_path: Path) -> None:
    async with SqliteLedger(tmp_path / "a.ledger") as ledger, open_house(cast=at_once(), ledger=ledger) as house:
        await say(house, "Hello")
        with closing(sqlite3.connect(tmp_path / "a.ledger")) as file:
            file.execute("UPDATE commits SET session_id = CAST(x'ff41' AS TEXT)")
            file.commit()
        assert (await house.client.post("/console/audits")).status_code == 202
        with trio.fail_after(60):
            while (now := await ask(house, "/console/audits"))["running"]:  # noqa: ASYNC110 - the page polls too
                await trio.sleep(0.01)
        assert now["report"]["ok"] is False


async def test_the_world_is_shown_after_any_commit_and_compared() -> None:
    async with open_house(cast=at_once()) as house:
        await say(house, "Hello", "I'll take the attic")
        chain = await ask(house, "/console/commits")
        assert (chain["first"], chain["total"], len(chain["commits"])) == (1, 2, 2)
        first, second = (each["commit_id"] for each in chain["commits"])
        assert (await ask(house, f"/console/world?at={first}&path=/purse"))["world"] == 20
        assert (await ask(house, f"/console/world?at={second}&path=/purse"))["world"] == 18
        changes = (await ask(house, f"/console/difference?from={first}&to={second}"))["changes"]
        assert {"op": "replace", "path": "/purse", "value": 18, "was": 20} in changes
        assert (await ask(house, f"/console/difference?from={first}"))["changes"] == changes
        assert (await ask(house, f"/console/difference?from={second}"))["changes"] == []
        for path in ("/console/world?at=c-0000000000000000", f"/console/world?at={first}&path=/cellar"):
            assert refused(await house.client.get(path)) == (400, "invalid_command")


async def test_what_a_user_may_not_see_is_hidden_in_earlier_worlds_too() -> None:
    cast = evolve(at_once(), visibility=lambda view, _: {"purse": view["purse"]})
    async with open_house(cast=cast) as house:
        await say(house, "Hello")
        first = (await ask(house, "/console/commits"))["commits"][0]["commit_id"]
        assert (await ask(house, f"/console/world?at={first}"))["world"] == {"purse": 20}


async def test_an_audit_reads_the_ledger_while_it_is_written(tmp_path: Path) -> None:
    async with SqliteLedger(tmp_path / "a.ledger") as ledger, open_house(cast=at_once(), ledger=ledger) as house:
        await say(house, "Hello", "I'll take the attic")
        assert (await ask(house, "/console/audits"))["report"] is None
        begun = await house.client.post("/console/audits")
        assert taken(begun, 202)["running"] is True
        with trio.fail_after(10):
            while (now := await ask(house, "/console/audits"))["running"]:
                pass
        assert (now["report"]["ok"], now["report"]["commits"], now["done"], now["total"]) == (True, 2, 2, 2)


async def test_a_ledger_that_is_no_file_is_not_audited() -> None:
    async with open_house() as house:
        assert (await ask(house, "/console/audits"))["possible"] is False
        assert refused(await house.client.post("/console/audits")) == (400, "invalid_command")


async def test_a_client_that_stalls_misses_nothing_in_silence() -> None:
    async with open_house(cast=at_once()) as house:
        guest = await house.start()
        path = f"/v1/sessions/{guest.session_id}/events?stall=1"
        async with house.client.stream("GET", path) as stalled:
            turn_id = await guest.begin_turn("Hello", TurnParams())
            await guest.finalize(turn_id)
            await guest.close()
            text = "".join([each async for each in stalled.aiter_text()])
        assert text.count('"token_delta"') == 1
        assert "dropped_seq_ranges" in text
        assert refused(await house.client.get(f"/v1/sessions/{(await house.start()).session_id}/events?stall=61")) == (
            400,
            "invalid_command",
        )


def test_a_setting_turns_it_off(tmp_path: Path) -> None:
    file = tmp_path / "game.toml"
    file.write_text("[console]\nenabled = false\n")
    assert isinstance(view_of(load_config(file), ConsoleView), NoConsole)
    assert NoConsole().routes == ()
    assert not isinstance(view_of(load_config(), ConsoleView), NoConsole)
