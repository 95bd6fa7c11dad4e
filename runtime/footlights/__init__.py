"""Footlights: streamed turns in front, audited commits behind.

async with open_stage(cast) as stage:
    session = stage.start()
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("A room?")
        async for event in stream.until_commit(turn_id): ...
"""

from footlights import authority, laws, wire
from footlights.authority.intents import Intent, IntentType
from footlights.authority.ledger import Ledger, MemoryLedger
from footlights.cast import Cast, ModelChoice
from footlights.commits import CommitHandle
from footlights.errors import (
    Busy,
    CommitUnknown,
    Detached,
    FootlightsError,
    IllegalTransition,
    InvalidCommand,
    InvalidEvent,
    LedgerUnavailable,
    ModelError,
    RateLimitError,
    RegistrationError,
    SessionClosed,
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
from footlights.models import Model, ModelTraits, Output, Prompt, ToolExchange, ToolOffer, ToolRequest, ToolRound, Usage
from footlights.outbox import DetachReason, OutboxStatistics
from footlights.params import BusyRule, Mode, SessionParams, TurnParams
from footlights.session import InteractionSession
from footlights.session_core import SessionState, SessionStatistics
from footlights.stage import Stage, StageStatistics, open_stage
from footlights.subscription import Subscription
from footlights.tools import SideEffects, Tool, ToolContext, ToolReturn

__all__ = [
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
    "Ledger",
    "LedgerUnavailable",
    "Limits",
    "MemoryLedger",
    "Mode",
    "Model",
    "ModelChoice",
    "ModelError",
    "ModelLoading",
    "ModelReady",
    "ModelSelected",
    "ModelTraits",
    "OutboxStatistics",
    "Output",
    "Payload",
    "Prompt",
    "RateLimitError",
    "RegistrationError",
    "SeqRange",
    "SessionClosed",
    "SessionParams",
    "SessionState",
    "SessionStatistics",
    "SideEffects",
    "Stage",
    "StageStatistics",
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
    "TurnAccepted",
    "TurnFinal",
    "TurnInterrupted",
    "TurnParams",
    "TurnState",
    "UnknownSession",
    "UnknownTurn",
    "Usage",
    "WarmState",
    "Workload",
    "authority",
    "draft_event",
    "laws",
    "open_stage",
    "wire",
]
