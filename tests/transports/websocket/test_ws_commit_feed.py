"""The feed of commits over WebSocket, for whoever may see that part of the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from footlights.authority import Intent, IntentType, JsonWorld, accept, own_approvals, patch
from footlights_actors import ScriptedModel, standard_cast
from footlights_transports.access.policy import AccessPolicy
from tests.kit.peers.ws_peer import connect, open_house

if TYPE_CHECKING:
    from footlights import Cast
    from footlights.authority.visibility import Visibility

ANN, BOB = "the-token-of-ann", "the-token-of-bob"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def paying_cast(visibility: Visibility = own_approvals) -> Cast:
    def pay(world: Any, intents: tuple[Intent, ...]) -> Any:
        places = {"quest": "purse", "plot": "secret"}
        return accept(*(patch.replace(f"/{at}", world[at] + 1) for at in [places[intent.ref] for intent in intents]))

    world = JsonWorld({"purse": 0, "secret": 7})
    return standard_cast(ScriptedModel(lambda _: []), world=world, rules={"pay": pay}, visibility=visibility)


GAME = AccessPolicy({"ann": ANN, "bob": BOB}, roles={"bob": {"game_server": True}})
PAYING = {"intents": [{"ref": "quest"}], "why": "the quest is done"}
PLOTTING = {"intents": [{"ref": "plot"}], "why": "the plot thickens"}
BOTH = {"intents": [*PAYING["intents"], *PLOTTING["intents"]], "why": "both"}


def no_secret(view: Any, user: object) -> Any:
    return {name: each for name, each in view.items() if name != "secret"}


async def test_a_game_server_follows_what_changed_and_resumes() -> None:
    async with open_house(cast=paying_cast(), policy=GAME) as house:
        async with connect(house, headers=bearer(BOB)) as peer:
            assert await peer.ask("follow_commits", after="genesis", under="/purse") == {"cursor": "genesis"}
            assert await peer.refusal("follow_commits") == "invalid_command"
            await peer.ask("commit", **PAYING)
            await peer.ask("commit", **PAYING)
            found = [await peer.commit() for _ in range(2)]
        assert [each["changes"][0]["value"] for each in found] == [1, 2]
        assert found[0]["why"] == "the quest is done"
        async with connect(house, headers=bearer(BOB)) as peer:
            assert await peer.refusal("follow_commits", after="c-0") == "invalid_command"
            first = found[0]["commit_id"]
            assert await peer.ask("follow_commits", after=first) == {"cursor": first}
            assert await peer.commit() == found[1]


@pytest.mark.parametrize("failure", [None, KeyError("a secret")])
async def test_a_feed_ends_when_its_part_is_hidden_and_its_connection_goes_on(failure: Exception | None) -> None:
    def hide_riches(view: Any, user: object) -> Any:
        if view["purse"] > 1 and failure is not None:
            raise failure
        return {**view, "purse": "a lot"} if view["purse"] > 1 else view

    async with (
        open_house(cast=paying_cast(hide_riches), policy=GAME) as house,
        connect(house, headers=bearer(BOB)) as peer,
    ):
        assert await peer.refusal("follow_commits", under="x") == "invalid_command"
        await peer.ask("follow_commits", after="genesis", under="/purse")
        await peer.ask("commit", **PAYING)
        assert (await peer.commit())["changes"][0]["value"] == 1
        await peer.ask("commit", **PAYING)
        notice = await peer.notice()
        assert notice == {"notice": "detached", "reason": "unauthorized" if failure is None else "internal"}
        assert await peer.refusal("follow_commits", under="/purse") in ("unauthorized", "internal")
        assert await peer.ask("ping") == {}


async def test_a_player_follows_what_he_sees_and_learns_nothing_of_the_rest() -> None:
    async with (
        open_house(cast=paying_cast(no_secret), policy=GAME) as house,
        connect(house, headers=bearer(BOB)) as game,
    ):
        async with connect(house, headers=bearer(ANN)) as peer:
            begun = await peer.ask("follow_commits")
            assert begun["world"] == {"purse": 0}
            for commit in (PLOTTING, PAYING, PLOTTING, BOTH):
                await game.ask("commit", **commit)
            found = [await peer.commit() for _ in range(2)]
            for number, commit in enumerate(found, start=1):
                change = {"op": "replace", "path": "/purse", "value": number}
                assert commit == {"cursor": commit["cursor"], "session_id": None, "turn_id": None, "changes": [change]}
        async with connect(house, headers=bearer(ANN)) as peer:
            assert (await peer.ask("follow_commits", after=found[0]["cursor"])).keys() == {"cursor"}
            assert (await peer.commit())["changes"] == found[1]["changes"]
        async with connect(house, headers=bearer(ANN)) as peer:
            await peer.ask("follow_commits", after="genesis", under="/purse")
            assert [(await peer.commit())["changes"] for _ in found] == [each["changes"] for each in found]
        async with connect(house, headers=bearer(ANN)) as peer:
            await game.ask("follow_commits", after="genesis", under="/purse")
            for unknown in ((await game.commit())["commit_id"], "x", "é", found[0]["cursor"][::-1], "A" * 86):
                assert await peer.refusal("follow_commits", after=unknown) == "invalid_command"
            cursors = [(await peer.ask("follow_commits"))["cursor"]]
        async with connect(house, headers=bearer(ANN)) as peer:
            cursors.append((await peer.ask("follow_commits"))["cursor"])
        assert len(set(cursors)) == 2  # whoever gets the same one twice knows that nothing happened in between
        assert {len(cursor) for cursor in cursors} == {len(found[0]["cursor"])}


async def test_the_position_of_one_player_is_none_of_another() -> None:
    policy = AccessPolicy({"ann": ANN, "bob": BOB})
    async with open_house(cast=paying_cast(), policy=policy) as house, connect(house, headers=bearer(ANN)) as ann:
        cursor = (await ann.ask("follow_commits"))["cursor"]
        async with connect(house, headers=bearer(BOB)) as bob:
            assert await bob.refusal("follow_commits", after=cursor) == "invalid_command"


async def test_a_player_whose_sight_fails_is_detached_without_its_words() -> None:
    def fails(view: Any, user: object) -> Any:
        if view["purse"]:
            raise KeyError("a secret")
        return view

    async with (
        open_house(cast=paying_cast(fails), policy=GAME) as house,
        connect(house, headers=bearer(BOB)) as game,
        connect(house, headers=bearer(ANN)) as peer,
    ):
        await peer.ask("follow_commits")
        await game.ask("commit", **PAYING)
        assert await peer.notice() == {"notice": "detached", "reason": "internal"}
        assert await peer.refusal("follow_commits") == "internal"
        assert await peer.ask("ping") == {}


async def test_who_is_a_game_server_no_more_gets_no_whole_commits() -> None:
    policy = AccessPolicy({"ann": ANN, "bob": BOB}, roles={"bob": {"game_server": True}})
    async with open_house(cast=paying_cast(), policy=policy) as house, connect(house, headers=bearer(BOB)) as peer:
        assert await peer.ask("follow_commits") == {"cursor": "genesis", "world": {"purse": 0, "secret": 7}}
        house.access.admission.renew(AccessPolicy({"ann": ANN, "bob": BOB}))
        await house.stage.commit([Intent(IntentType.DECISION, "quest")], "of the host")
        assert await peer.notice() == {"notice": "detached", "reason": "unauthorized"}


async def test_a_world_too_large_to_be_shown_is_followed_by_those_who_get_whole_commits() -> None:
    large = standard_cast(ScriptedModel(lambda _: []), world=JsonWorld({"text": "x" * 1_000_000}))
    async with open_house(cast=large, policy=GAME) as house:
        async with connect(house, headers=bearer(BOB)) as peer:
            assert await peer.ask("follow_commits") == {"cursor": "genesis"}
        async with connect(house, headers=bearer(ANN)) as peer:
            assert await peer.refusal("follow_commits") == "too_large"
            assert (await peer.ask("follow_commits", under="/none")).keys() == {"cursor"}


async def test_without_tokens_everybody_follows_whole_commits_and_only_the_host_commits() -> None:
    async with open_house(cast=paying_cast()) as house, connect(house) as peer:
        await peer.ask("follow_commits")
        assert await peer.refusal("commit", **PAYING) == "unauthorized"
        decided = await house.stage.commit([Intent(IntentType.DECISION, "quest")], "in process")
        told = await peer.commit()
        assert (told["commit_id"], told["cursor"], told["why"]) == (decided.commit_id, decided.commit_id, "in process")
