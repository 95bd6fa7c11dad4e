"""Nothing that a player or a model said is left behind: not in the ledger, not in a trace, not in a log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from footlights import (
    Intent,
    IntentType,
    InteractionContext,
    SideEffects,
    TokenDelta,
    Tool,
    ToolContext,
    ToolError,
    ToolReturn,
    TurnParams,
    draft_event,
    open_stage,
)
from footlights.authority.digest import digest
from footlights.testing import take_turn
from footlights_actors import Call, Fail, Line, Say, ScriptedModel, Stall, standard_cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from footlights import InteractionSession, Prompt
    from footlights.events import JsonValue

SAID = "xyzzy-said"
ANSWERED = "xyzzy-answered"
ASKED = "xyzzy-asked"
RETURNED = "xyzzy-returned"
RAISED = "xyzzy-raised"
EXTENDED = "xyzzy-extended"
SECRETS = (SAID, ANSWERED, ASKED, RETURNED, RAISED, EXTENDED)


async def tell(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, {"told": 1}))
    return ToolReturn(RETURNED, RETURNED)


async def refuse(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    raise ToolError(RAISED)


async def crash(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    raise ValueError(RAISED)


class Extending:
    """A workload whose events carry data of its own."""

    async def run(self, context: InteractionContext) -> None:
        ext = {"namespace": "ext.acme.mood", "data": {EXTENDED: [EXTENDED]}}
        context.emit_event(draft_event("token_delta", {"delta": ANSWERED, "ext": ext}))


def script(prompt: Prompt) -> list[Line]:
    if "stall" in prompt.user:
        return [Say(ANSWERED), Stall()]
    if prompt.exchanges:
        return [Say(ANSWERED)]
    ending: Line = Fail(RuntimeError(RAISED)) if "fail" in prompt.user else Say(ANSWERED)
    name = prompt.user.split()[0]
    return [Say(ANSWERED), Call(name, {"about": ASKED}), ending]


async def hear_and_cancel(session: InteractionSession) -> None:
    async with session.subscribe() as stream:
        turn_id = session.begin_turn(f"stall {SAID}")
        async for event in stream.until_commit(turn_id):
            if isinstance(event.payload, TokenDelta):
                session.heard(turn_id, event.seq)
                session.cancel(turn_id)


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def test_no_byte_that_a_run_leaves_behind_says_what_was_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tools = [
        Tool(name="tell", run=tell, side_effects=SideEffects.IMMEDIATE),
        Tool(name="refuse", run=refuse),
        Tool(name="crash", run=crash),
        Tool(name="book", run=tell, side_effects=SideEffects.IMMEDIATE, idempotency_key=lambda _: "order-17"),
    ]
    cast = standard_cast(ScriptedModel(script), tools=tools, workloads={"extending": Extending()})
    async with open_stage(cast, ledger=tmp_path / "inn.ledger", trace=tmp_path / "traces") as stage:
        session = stage.start()
        for name in ("tell", "refuse", "crash", "tell fail", "nobody", "book", "book again"):
            await take_turn(session, f"{name} {SAID}")
        await take_turn(session, SAID, TurnParams(workload="extending"))
        await hear_and_cancel(session)
    left = everything_in(tmp_path)
    assert len(left) > 1_000
    assert b"book:order-17" in left  # a key is made of ids, and is kept
    for length in (b'"chars":14', b'"summary_chars":14', b'"message_chars":', b'"heard":{"seq":', b'"bytes":37'):
        assert length in left
    for secret in SECRETS:
        assert secret.encode() not in left
        assert digest(secret).encode() not in left
        assert bytes.fromhex(digest(secret)) not in left
        assert secret not in caplog.text
