"""The clients follow what changes in the world: over lost connections, without a gap and without a repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from footlights import InvalidCommand
from footlights.authority import Intent, IntentType, JsonWorld, accept, apply_patch, patch
from footlights_actors import ScriptedModel, standard_cast
from footlights_transports import ConnectionLost, Retry, connect
from footlights_transports.access.policy import AccessPolicy
from footlights_transports.errors import Unauthorized
from tests.kit.cutting_proxy import Fate, open_proxy
from tests.kit.peers.js_peer import nodes, run_js
from tests.kit.peers.ws_liar import open_liar
from tests.kit.peers.ws_peer import open_house

if TYPE_CHECKING:
    from footlights import Cast, Stage

ANN, BOB = "the-token-of-ann", "the-token-of-bob"
AT_ONCE = Retry(first=1e-6, longest=1e-6)
MANY = 40


def no_secret(view: Any, user: Any) -> Any:
    return view if user.game_server else {name: each for name, each in view.items() if name != "secret"}


def paying_cast() -> Cast:
    def pay(world: Any, intents: tuple[Intent, ...]) -> Any:
        return accept(*(patch.replace(f"/{each.ref}", world[each.ref] + 1) for each in intents))

    world = JsonWorld({"purse": 0, "secret": 0})
    return standard_cast(ScriptedModel(lambda _: []), world=world, rules={"pay": pay}, visibility=no_secret)


def policy() -> AccessPolicy:
    return AccessPolicy({"ann": ANN, "bob": BOB}, roles={"bob": {"game_server": True}})


async def pay(stage: Stage, times: int, *places: str) -> None:
    for _ in range(times):
        await stage.commit([Intent(IntentType.DECISION, place) for place in places], "an act of the host")


async def test_a_player_mirrors_what_he_sees_over_cut_connections() -> None:
    fates = [Fate(), *(Fate(cut_down=size) for size in (900, 1500, 2100))]
    async with (
        open_house(cast=paying_cast(), policy=policy()) as house,
        open_proxy(house.listening.port, fates) as proxy,
        connect(f"ws://127.0.0.1:{proxy.port}", token=ANN, retry=AT_ONCE) as client,
        client.follow_commits() as feed,
        trio.open_nursery() as nursery,
    ):
        mirror = feed.world
        assert mirror == {"purse": 0}
        nursery.start_soon(pay, house.stage, MANY, "purse", "secret")
        told = [await anext(feed) for _ in range(MANY)]
        for commit in told:
            assert (commit.session_id, commit.turn_id, commit.commit_id, commit.why) == (None, None, None, None)
            mirror = apply_patch(mirror, commit.changes or ())
        assert mirror == {"purse": MANY}
        assert proxy.cuts == 3
        assert feed.cursor == told[-1].cursor


async def test_a_game_server_gets_whole_commits_and_goes_on_in_another_process() -> None:
    async with open_house(cast=paying_cast(), policy=policy()) as house:
        url = f"ws://127.0.0.1:{house.listening.port}"
        await pay(house.stage, 2, "secret")
        async with (
            connect(url, token=BOB, retry=AT_ONCE) as client,
            client.follow_commits(after="genesis", under="/secret") as feed,
        ):
            first = await anext(feed)
            assert (first.why, first.commit_id, feed.cursor) == ("an act of the host", first.cursor, first.cursor)
        async with (
            connect(url, token=BOB, retry=AT_ONCE) as client,
            client.follow_commits(after=first.cursor) as feed,
        ):
            assert (await anext(feed)).changes == (patch.replace("/secret", 2),)


async def test_a_refusal_and_the_end_of_a_feed_say_why() -> None:
    async with (
        open_house(cast=paying_cast(), policy=policy()) as house,
        connect(f"ws://127.0.0.1:{house.listening.port}", token=ANN, retry=AT_ONCE) as client,
    ):
        with pytest.raises(InvalidCommand, match="Begin anew"):
            async with client.follow_commits(after="c-0000000000000000"):
                pass
    async with (
        open_house(cast=paying_cast(), policy=policy()) as house,
        connect(f"ws://127.0.0.1:{house.listening.port}", token=BOB, retry=AT_ONCE) as client,
        client.follow_commits() as feed,
    ):
        house.access.admission.renew(AccessPolicy({"ann": ANN, "bob": BOB}))
        await pay(house.stage, 1, "purse")
        with pytest.raises(Unauthorized):
            await anext(feed)


@pytest.mark.parametrize("lie", [{}, {"cursor": 1}, {"cursor": "x", "changes": [{"op": "steal"}]}, 7])
async def test_a_commit_that_is_none_ends_the_feed(lie: Any) -> None:
    replies = [{"reply": 1, "ok": True, "result": {"cursor": "genesis"}}, {"commit": lie}]
    async with (
        open_liar(lambda _: replies) as url,
        connect(url, retry=Retry(first=1e-6, longest=1e-6, patience=0)) as client,
        client.follow_commits() as feed,
    ):
        with pytest.raises(ConnectionLost):
            await anext(feed)


async def test_the_javascript_client_follows_and_goes_on() -> None:
    if not nodes():
        pytest.skip("THE JAVASCRIPT CLIENT WAS NOT TESTED: there is no node here")
    async with open_house(cast=paying_cast(), policy=policy()) as house:
        url = f"ws://127.0.0.1:{house.listening.port}"
        async with run_js(nodes()[-1], "follow_commits.mjs", url=url, token=ANN, maxWaiting=3) as script:
            await script.say({"count": 1})
            assert (await script.told())["world"] == {"purse": 0}
            await pay(house.stage, 1, "purse", "secret")
            first = await script.told()
            change = {"op": "replace", "path": "/purse", "value": 1}
            assert first == {"cursor": first["cursor"], "session_id": None, "turn_id": None, "changes": [change]}
            assert await script.told() == {"left": first["cursor"]}

            # More than may wait: it hangs up, and goes on from what it has.
            await script.say({"count": 9, "after": first["cursor"], "isSlow": True})
            assert (await script.told())["world"] is None
            await pay(house.stage, 9, "purse")
            await script.say({})
            assert [(await script.told())["changes"][0]["value"] for _ in range(9)] == list(range(2, 11))
            await script.told()

            await script.say({"count": 1, "after": "nonsense"})
            assert await script.told() == {"refused": "invalid_command"}
            await script.say(None)
