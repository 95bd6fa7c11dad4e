"""The tables of the chat gateway."""

from __future__ import annotations

import api
import source
import tables

from footlights_transports.views.kgent.conversation import Conversation, ConversationState
from footlights_transports.views.kgent.pure.messages import (
    MANNERS,
    RECOVERY,
    ChatEvent,
    ChatMessage,
    DialogueMode,
    ErrorCode,
)
from footlights_transports.views.kgent.pure.mirror import HolographicBuffer, Watcher
from footlights_transports.views.kgent.pure.record import Turn, TurnType
from footlights_transports.views.kgent.pure.templates import Templates
from footlights_transports.views.kgent.pure.trace import TraceMonoid
from footlights_transports.views.kgent.responder import Responder
from footlights_transports.views.kgent.store import ContentStore
from footlights_transports.views.kgent.template_workloads import with_templates


def errors() -> str:
    rows = (
        [tables.code(member.text), source.meaning(ErrorCode, member), RECOVERY[ErrorCode(member.text)]]
        for member in source.members(ErrorCode)
    )
    return tables.table(["code", "why", "what a client can do"], rows)


def modes() -> str:
    rows: list[list[str]] = []
    for each in source.members(DialogueMode):
        manner = MANNERS[DialogueMode(each.text)]
        told = manner.instruction
        rows.append([tables.code(each.text), source.meaning(DialogueMode, each), told, f"{manner.temperature:.1f}"])
    return tables.table(["mode", "what is wanted", "what the model is told", "temperature"], rows)


def states() -> str:
    return _values(ConversationState, "state", "meaning")


def turn_types() -> str:
    return _values(TurnType, "turn type", "meaning")


def names() -> str:
    return api.described(
        Conversation,
        Responder,
        ChatMessage,
        ChatEvent,
        Turn,
        TraceMonoid,
        HolographicBuffer,
        Watcher,
        Templates,
        with_templates,
        ContentStore,
    )


def _values(kind: type, name: str, meaning: str) -> str:
    rows = ([tables.code(each.text), source.meaning(kind, each)] for each in source.members(kind))
    return tables.table([name, meaning], rows)
