"""Privacy between two owners: neither may see or use the sessions of the other."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from footlights_bench.attack.raw.websocket import open_websocket
from footlights_bench.attack.results import Result
from footlights_bench.attack.users import NotServed, fetch_json, play_turn, run_command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from footlights_bench.attack.target import Target

ASKS_FOR_APPROVAL = "Will you sell me the lantern?"
"""Makes the tavern ask for an approval. In another game it is an ordinary turn; session names are checked too."""
_BOUND = "nothing of another owner"


async def world(name: str, target: Target) -> Result:
    secret = f"diary-{secrets.token_hex(8)}"
    async with open_websocket(target.websocket, target.other_token) as socket:
        session_id = (await run_command(socket, "start", params={"session_id": secret}))["session_id"]
        await play_turn(socket, session_id, ASKS_FOR_APPROVAL)
        seen = await fetch_json(target, "GET", "/v1/world", target.token)
        own = await fetch_json(target, "GET", "/v1/world", target.other_token)
        # Decide the approval, so that the suite can run against the same server again.
        await play_turn(socket, session_id, "No, keep it.", approvals=dict.fromkeys(_pending(own), False))
        await run_command(socket, "close", session_id=session_id)
    failures: list[str] = []
    if secret in json.dumps(seen):
        failures.append("GET /v1/world shows one owner the name of a session of another.")
    if shared := set(_pending(own)) & set(_pending(seen)):
        failures.append(f"GET /v1/world shows one owner {len(shared)} pending approvals of another.")
    measured = f"the owner sees {len(_pending(own))} pending approvals, the other {len(_pending(seen))}"
    return Result(name, _BOUND, measured, failures)


def _pending(seen: Any) -> list[str]:
    """The ids of the pending approvals."""
    match seen:
        case {"world": {"approvals": {"pending": pending}}}:
            return list(pending)
        case _:
            return []


async def sessions(name: str, target: Target) -> Result:
    """A session of one owner does not exist for another, on any route or command."""
    async with open_websocket(target.websocket, target.other_token) as socket:
        session_id = (await run_command(socket, "start"))["session_id"]
        turn_id = await play_turn(socket, session_id)
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
                await fetch_json(target, method, path, target.token)
            except NotServed as refused:
                if not str(refused).endswith("404"):
                    opened.append(f"{refused} for a stranger to the session; 404 is expected.")
            else:
                opened.append(f"{method} {path.replace(session_id, '{s}')} let another owner in.")
        async with open_websocket(target.websocket, target.token) as stranger:
            for op, fields in [("subscribe", {}), ("cancel", {}), ("finalize", {"turn_id": turn_id}), ("close", {})]:
                reply = await stranger.ask(op, session_id=session_id, **fields)
                if reply.get("error", {}).get("code") != "unknown_session":
                    opened.append(f"The command {op} did not say unknown_session to another owner.")
    return Result(name, _BOUND, f"{len(doors) + 4} doors, {len(opened)} open", opened)


PRIVACY: Mapping[str, Callable[[str, Target], Awaitable[Result]]] = {
    "privacy/world": world,
    "privacy/sessions": sessions,
}
