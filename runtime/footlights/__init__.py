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
    from footlights.authority.intents import Intent, IntentType
    from footlights.authority.ledger.protocol import Ledger, MemoryLedger
    from footlights.cast import Cast, ModelChoice, ModelQuery
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
    from footlights.limits import Limits
    from footlights.models.budget import BudgetConfig, BudgetTier
    from footlights.models.llm_client import LLMClient, LLMResponse
    from footlights.models.model import (
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
    from footlights.models.pool import ModelLease, ModelPool, ModelStatus
    from footlights.models.prompts import Fact, Persona
    from footlights.params import BusyRule, Mode, SessionParams, TurnParams
    from footlights.session.core import SessionState, SessionStatistics
    from footlights.session.session import InteractionSession
    from footlights.stage.stage import Stage, StageStatistics, open_stage
    from footlights.stream.outbox import DetachReason, OutboxStatistics
    from footlights.stream.subscription import Subscription
    from footlights.tools.artifact_notes import ArtifactNote
    from footlights.tools.decorator import tool
    from footlights.tools.tool import SideEffects, Tool, ToolContext, ToolReturn
    from footlights.trace.files import TraceFiles
    from footlights.turn.commit_handle import CommitHandle
    from footlights.turn.extensions import ExtensionManager, InteractionContext, Workload, draft_event
    from footlights.turn.lifecycle import TurnState
    from footlights.turn.summary import TurnSummary

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
    "footlights.tools.artifact_notes": "ArtifactNote",
    "footlights.authority.intents": "Intent IntentType",
    "footlights.authority.ledger.protocol": "Ledger MemoryLedger",
    "footlights.models.budget": "BudgetConfig BudgetTier",
    "footlights.cast": "Cast ModelChoice ModelQuery",
    "footlights.turn.commit_handle": "CommitHandle",
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
    "footlights.turn.extensions": "ExtensionManager InteractionContext Workload draft_event",
    "footlights.turn.lifecycle": "TurnState",
    "footlights.limits": "Limits",
    "footlights.models.llm_client": "LLMClient LLMResponse",
    "footlights.models.model": "Model ModelTraits Output Prompt ToolExchange ToolOffer ToolRequest ToolRound Usage",
    "footlights.stream.outbox": "DetachReason OutboxStatistics",
    "footlights.params": "BusyRule Mode SessionParams TurnParams",
    "footlights.models.pool": "ModelLease ModelPool ModelStatus",
    "footlights.models.prompts": "Fact Persona",
    "footlights.session.session": "InteractionSession",
    "footlights.session.core": "SessionState SessionStatistics",
    "footlights.stage.stage": "Stage StageStatistics open_stage",
    "footlights.stream.subscription": "Subscription",
    "footlights.turn.summary": "TurnSummary",
    "footlights.tools.decorator": "tool",
    "footlights.tools.tool": "SideEffects Tool ToolContext ToolReturn",
    "footlights.trace.files": "TraceFiles",
}

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES, submodules="authority laws wire")
