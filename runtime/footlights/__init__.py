"""Footlights: streamed turns in front, audited commits behind.

async with open_stage(cast) as stage:
    session = stage.start()
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("A room?")
        async for event in stream.until_commit(turn_id): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

if TYPE_CHECKING:
    from footlights import authority, laws, wire
    from footlights.artifact_notes import ArtifactNote
    from footlights.authority.intents import Intent, IntentType
    from footlights.authority.ledger import Ledger, MemoryLedger
    from footlights.budget import BudgetConfig, BudgetTier
    from footlights.cast import Cast, ModelChoice, ModelQuery
    from footlights.commits import CommitHandle
    from footlights.errors import (
        Busy,
        CommitUnknown,
        Detached,
        FootlightsError,
        IllegalTransition,
        InvalidCommand,
        InvalidEvent,
        LedgerInUse,
        LedgerUnavailable,
        ModelError,
        ModelTimeout,
        PromptTooLarge,
        RateLimitError,
        RegistrationError,
        RemoteNotAllowed,
        SessionClosed,
        StrayCancel,
        StreamError,
        TooLarge,
        ToolError,
        UnknownSession,
        UnknownTurn,
    )
    from footlights.events import (
        CommitFinal,
        CommitOutcome,
        DeliveryClass,
        ErrorInfo,
        EventType,
        Ext,
        Heard,
        InterruptReason,
        Issue,
        JsonValue,
        ModelLoading,
        ModelReady,
        ModelSelected,
        Payload,
        SeqRange,
        StreamEvent,
        TokenDelta,
        ToolCallResult,
        ToolCallStarted,
        TurnAccepted,
        TurnFinal,
        TurnInterrupted,
        WarmState,
    )
    from footlights.extensions import ExtensionManager, InteractionContext, Workload, draft_event
    from footlights.lifecycle import TurnState
    from footlights.limits import Limits
    from footlights.llm import LLMClient, LLMResponse
    from footlights.models import (
        Model,
        ModelTraits,
        Output,
        Prompt,
        ToolExchange,
        ToolOffer,
        ToolRequest,
        ToolRound,
        Usage,
    )
    from footlights.outbox import DetachReason, OutboxStatistics
    from footlights.params import BusyRule, Mode, SessionParams, TurnParams
    from footlights.pool import ModelLease, ModelPool, ModelStatus
    from footlights.prompts import Fact, Persona
    from footlights.session import InteractionSession
    from footlights.session_core import SessionState, SessionStatistics
    from footlights.stage import Stage, StageStatistics, open_stage
    from footlights.subscription import Subscription
    from footlights.summary import TurnSummary
    from footlights.tool_decorator import tool
    from footlights.tools import SideEffects, Tool, ToolContext, ToolReturn
    from footlights.trace_files import TraceFiles

__all__ = [
    "ArtifactNote",
    "BudgetConfig",
    "BudgetTier",
    "Busy",
    "BusyRule",
    "Cast",
    "CommitFinal",
    "CommitHandle",
    "CommitOutcome",
    "CommitUnknown",
    "DeliveryClass",
    "DetachReason",
    "Detached",
    "ErrorInfo",
    "EventType",
    "Ext",
    "ExtensionManager",
    "Fact",
    "FootlightsError",
    "Heard",
    "IllegalTransition",
    "Intent",
    "IntentType",
    "InteractionContext",
    "InteractionSession",
    "InterruptReason",
    "InvalidCommand",
    "InvalidEvent",
    "Issue",
    "JsonValue",
    "LLMClient",
    "LLMResponse",
    "Ledger",
    "LedgerInUse",
    "LedgerUnavailable",
    "Limits",
    "MemoryLedger",
    "Mode",
    "Model",
    "ModelChoice",
    "ModelError",
    "ModelLease",
    "ModelLoading",
    "ModelPool",
    "ModelQuery",
    "ModelReady",
    "ModelSelected",
    "ModelStatus",
    "ModelTimeout",
    "ModelTraits",
    "OutboxStatistics",
    "Output",
    "Payload",
    "Persona",
    "Prompt",
    "PromptTooLarge",
    "RateLimitError",
    "RegistrationError",
    "RemoteNotAllowed",
    "SeqRange",
    "SessionClosed",
    "SessionParams",
    "SessionState",
    "SessionStatistics",
    "SideEffects",
    "Stage",
    "StageStatistics",
    "StrayCancel",
    "StreamError",
    "StreamEvent",
    "Subscription",
    "TokenDelta",
    "TooLarge",
    "Tool",
    "ToolCallResult",
    "ToolCallStarted",
    "ToolContext",
    "ToolError",
    "ToolExchange",
    "ToolOffer",
    "ToolRequest",
    "ToolReturn",
    "ToolRound",
    "TraceFiles",
    "TurnAccepted",
    "TurnFinal",
    "TurnInterrupted",
    "TurnParams",
    "TurnState",
    "TurnSummary",
    "UnknownSession",
    "UnknownTurn",
    "Usage",
    "WarmState",
    "Workload",
    "authority",
    "draft_event",
    "laws",
    "open_stage",
    "tool",
    "wire",
]

_HOMES = {
    "footlights.artifact_notes": "ArtifactNote",
    "footlights.authority.intents": "Intent IntentType",
    "footlights.authority.ledger": "Ledger MemoryLedger",
    "footlights.budget": "BudgetConfig BudgetTier",
    "footlights.cast": "Cast ModelChoice ModelQuery",
    "footlights.commits": "CommitHandle",
    "footlights.errors": (
        "Busy CommitUnknown Detached FootlightsError IllegalTransition InvalidCommand InvalidEvent "
        "LedgerInUse LedgerUnavailable ModelError ModelTimeout PromptTooLarge RateLimitError RegistrationError "
        "RemoteNotAllowed SessionClosed StrayCancel StreamError TooLarge ToolError UnknownSession UnknownTurn"
    ),
    "footlights.events": (
        "CommitFinal CommitOutcome DeliveryClass ErrorInfo EventType Ext Heard InterruptReason Issue JsonValue "
        "ModelLoading ModelReady ModelSelected Payload SeqRange StreamEvent TokenDelta ToolCallResult "
        "ToolCallStarted TurnAccepted TurnFinal TurnInterrupted WarmState"
    ),
    "footlights.extensions": "ExtensionManager InteractionContext Workload draft_event",
    "footlights.lifecycle": "TurnState",
    "footlights.limits": "Limits",
    "footlights.llm": "LLMClient LLMResponse",
    "footlights.models": "Model ModelTraits Output Prompt ToolExchange ToolOffer ToolRequest ToolRound Usage",
    "footlights.outbox": "DetachReason OutboxStatistics",
    "footlights.params": "BusyRule Mode SessionParams TurnParams",
    "footlights.pool": "ModelLease ModelPool ModelStatus",
    "footlights.prompts": "Fact Persona",
    "footlights.session": "InteractionSession",
    "footlights.session_core": "SessionState SessionStatistics",
    "footlights.stage": "Stage StageStatistics open_stage",
    "footlights.subscription": "Subscription",
    "footlights.summary": "TurnSummary",
    "footlights.tool_decorator": "tool",
    "footlights.tools": "SideEffects Tool ToolContext ToolReturn",
    "footlights.trace_files": "TraceFiles",
}

if not TYPE_CHECKING:  # a checker that saw these would believe in any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES, submodules="authority laws wire")
