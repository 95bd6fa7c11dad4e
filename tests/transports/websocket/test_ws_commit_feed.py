"""The feed of commits over WebSocket, for whoever may see that part of the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from footlights.authority import JsonWorld, accept, own_approvals, patch
from footlights_actors import ScriptedModel, standard_cast
from footlights_transports.access.policy import AccessPolicy
from tests.kit.peers.ws_peer import connect, open_house

if TYPE_CHECKING:
    from footlights import Cast, Intent
    from footlights.authority.visibility import Visibility

ANN, BOB = "the-token-of-ann", "the-token-of-bob"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def paying_cast(visibility: Visibility = own_approvals) -> Cast:
    def pay(world: Any, intents: tuple[Intent, ...]) -> Any:
        return accept(*(patch.replace("/purse", world["purse"] + 1) for _ in intents))

    world = JsonWorld({"purse": 0, "secret": 7})
    return standard_cast(ScriptedModel(lambda _: []), world=world, rules={"pay": pay}, visibility=visibility)


GAME = AccessPolicy({"ann": ANN, "bob": BOB}, roles={"bob": {"game_server": True}})
PAYING = {"intents": [{"ref": "quest"}], "why": "the quest is done"}


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
        async with connect(house, headers=bearer(ANN)) as peer:
            assert await peer.refusal("follow_commits") == "unauthorized"


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
