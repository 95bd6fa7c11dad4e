"""Privacy between two owners: what one may learn of the other from `/v1/world`."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from footlights_bench.attack.frames import talking
from footlights_bench.attack.players import NotServed, asked, got, play_turn
from footlights_bench.attack.results import Result

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from footlights_bench.attack.target import Target

ASKS_FOR_APPROVAL = "Will you sell me the lantern?"
"""What makes the tavern ask for an approval. Elsewhere it is any turn: names of sessions are looked for too."""
_BOUND = "nothing of another owner"


async def world(name: str, target: Target) -> Result:
    secret = f"diary-{secrets.token_hex(8)}"
    async with talking(target.websocket, target.other_token) as talk:
        session_id = (await asked(talk, "start", params={"session_id": secret}))["session_id"]
        await play_turn(talk, session_id, ASKS_FOR_APPROVAL)
        seen = await got(target, "GET", "/v1/world", target.token)
        own = await got(target, "GET", "/v1/world", target.other_token)
        # So that the suite can be aimed at the same server again: an act waits only once.
        await play_turn(talk, session_id, "No, keep it.", approvals=dict.fromkeys(_pending(own), False))
        await asked(talk, "close", session_id=session_id)
    failures: list[str] = []
    if secret in json.dumps(seen):
        failures.append("GET /v1/world shows one owner the name of a session of another.")
    if shared := set(_pending(own)) & set(_pending(seen)):
        failures.append(f"GET /v1/world shows one owner {len(shared)} pending approvals of another.")
    measured = f"the owner sees {len(_pending(own))} pending approvals, the other {len(_pending(seen))}"
    return Result(name, _BOUND, measured, failures)


def _pending(seen: Any) -> list[str]:
    """The ids of the approvals that wait."""
    match seen:
        case {"world": {"approvals": {"pending": pending}}}:
            return list(pending)
        case _:
            return []


async def sessions(name: str, target: Target) -> Result:
    """A session of one owner does not exist for another, by any door."""
    async with talking(target.websocket, target.other_token) as talk:
        session_id = (await asked(talk, "start"))["session_id"]
        turn_id = await play_turn(talk, session_id)
        doors = [
            ("GET", f"/v1/sessions/{session_id}/events"),
            ("GET", f"/v1/sessions/{session_id}/ledger"),
            ("GET", f"/v1/sessions/{session_id}/chat"),
            ("DELETE", f"/v1/sessions/{session_id}/chat"),
            ("POST", f"/v1/sessions/{session_id}/cancel"),
            ("POST", f"/v1/sessions/{session_id}/turns/{turn_id}/finalize"),
            ("DELETE", f"/v1/sessions/{session_id}"),
        ]
        opened: list[str] = []
        for method, path in doors:
            try:
                await got(target, method, path, target.token)
            except NotServed as refused:
                if not str(refused).endswith("404"):
                    opened.append(f"{refused} for a stranger to the session; 404 is expected.")
            else:
                opened.append(f"{method} {path.replace(session_id, '{s}')} let another owner in.")
        async with talking(target.websocket, target.token) as stranger:
            for op, fields in [("subscribe", {}), ("cancel", {}), ("finalize", {"turn_id": turn_id}), ("close", {})]:
                reply = await stranger.ask(op, session_id=session_id, **fields)
                if reply.get("error", {}).get("code") != "unknown_session":
                    opened.append(f"The command {op} did not say unknown_session to another owner.")
    return Result(name, _BOUND, f"{len(doors) + 4} doors, {len(opened)} open", opened)


PRIVACY: Mapping[str, Callable[[str, Target], Awaitable[Result]]] = {
    "privacy/world": world,
    "privacy/sessions": sessions,
}
