"""A ping is a command that does nothing: for clients that cannot send the WebSocket's own."""

from __future__ import annotations

from footlights_transports.access.policy import WireLimits
from tests.kit.peers.ws_peer import HeldModel, connect, error_code, open_house


async def test_a_ping_is_answered_and_nothing_else_happens() -> None:
    async with open_house() as house, connect(house) as peer:
        assert await peer.ask("ping") == {}
        assert peer.frames == [{"reply": 1, "ok": True, "result": {}}]
        assert house.stage.statistics().sessions == 0


async def test_pings_are_counted_among_the_commands() -> None:
    limits = WireLimits(commands_per_second=1e-6, command_burst=3)
    async with open_house(wire_limits=limits) as house, connect(house) as peer:
        ids = [await peer.send("ping") for _ in range(4)]
        *answered, refused = [await peer.reply(each) for each in ids]
        assert all(reply["ok"] for reply in answered)
        assert error_code(refused) == "rate_limited"


async def test_a_ping_is_answered_while_a_finalize_waits() -> None:
    async with open_house(HeldModel()) as house, connect(house) as peer:
        session_id = (await peer.ask("start"))["session_id"]
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="Hello?"))["turn_id"]
        waiting = await peer.send("finalize", session_id=session_id, turn_id=turn_id)
        assert await peer.ask("ping") == {}
        assert waiting not in [frame.get("reply") for frame in peer.frames]
