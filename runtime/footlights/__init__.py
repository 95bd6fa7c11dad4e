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

# Names for type checkers, which take `X as X` for a re-export; `_HOMES` has the same names for Python.
# ruff: noqa: I001 - isort would split these into one statement for each name.
if TYPE_CHECKING:
    from footlights import authority as authority, laws as laws, wire as wire
    from footlights.authority.intents import Intent as Intent, IntentType as IntentType
    from footlights.authority.ledger.memory import MemoryLedger as MemoryLedger
    from footlights.authority.ledger.protocol import Ledger as Ledger
    from footlights.cast import Cast as Cast, ModelChoice as ModelChoice, ModelQuery as ModelQuery
    from footlights.errors import (
        Busy as Busy,
        CommitPending as CommitPending,
        CommitUnknown as CommitUnknown,
        Detached as Detached,
        ExtraMissing as ExtraMissing,
        FootlightsError as FootlightsError,
        IllegalTransition as IllegalTransition,
        InvalidCommand as InvalidCommand,
        InvalidEvent as InvalidEvent,
        KeyMissing as KeyMissing,
        KeyRefused as KeyRefused,
        LedgerFenced as LedgerFenced,
        LedgerInUse as LedgerInUse,
        LedgerUnavailable as LedgerUnavailable,
        ModelError as ModelError,
        ModelLoadFailed as ModelLoadFailed,
        ModelNotFound as ModelNotFound,
        ModelServerError as ModelServerError,
        ModelTimeout as ModelTimeout,
        ModelUnavailable as ModelUnavailable,
        ModelUnreachable as ModelUnreachable,
        PromptTooLarge as PromptTooLarge,
        RateLimitError as RateLimitError,
        RegistrationError as RegistrationError,
        RemoteNotAllowed as RemoteNotAllowed,
        SessionClosed as SessionClosed,
        SessionInUse as SessionInUse,
        StrayCancel as StrayCancel,
        StreamError as StreamError,
        TooLarge as TooLarge,
        ToolError as ToolError,
        UnknownSession as UnknownSession,
        UnknownTurn as UnknownTurn,
    )
    from footlights.events import (
        CommitFinal as CommitFinal,
        CommitOutcome as CommitOutcome,
        DeliveryClass as DeliveryClass,
        ErrorInfo as ErrorInfo,
        EventType as EventType,
        Ext as Ext,
        Heard as Heard,
        InterruptReason as InterruptReason,
        Issue as Issue,
        JsonValue as JsonValue,
        ModelLoading as ModelLoading,
        ModelReady as ModelReady,
        ModelSelected as ModelSelected,
        Payload as Payload,
        SeqRange as SeqRange,
        StreamEvent as StreamEvent,
        TokenDelta as TokenDelta,
        ToolCallResult as ToolCallResult,
        ToolCallStarted as ToolCallStarted,
        TurnAccepted as TurnAccepted,
        TurnFinal as TurnFinal,
        TurnInterrupted as TurnInterrupted,
        WarmState as WarmState,
    )
    from footlights.failures import watch_failures as watch_failures
    from footlights.limits import Limits as Limits
    from footlights.models.budget import BudgetConfig as BudgetConfig, BudgetTier as BudgetTier
    from footlights.models.llm_client import LLMClient as LLMClient, LLMResponse as LLMResponse
    from footlights.models.model import (
        Model as Model,
        ModelTraits as ModelTraits,
        Output as Output,
        Prompt as Prompt,
        ToolExchange as ToolExchange,
        ToolOffer as ToolOffer,
        ToolRequest as ToolRequest,
        ToolRound as ToolRound,
        Usage as Usage,
    )
    from footlights.models.pool import ModelLease as ModelLease, ModelPool as ModelPool, ModelStatus as ModelStatus
    from footlights.models.prompts import Fact as Fact, Persona as Persona
    from footlights.models.sampling import Sampling as Sampling
    from footlights.params import (
        BusyRule as BusyRule,
        Mode as Mode,
        SessionParams as SessionParams,
        TurnParams as TurnParams,
        quote_session_id as quote_session_id,
    )
    from footlights.session.core import SessionState as SessionState, SessionStatistics as SessionStatistics
    from footlights.session.session import InteractionSession as InteractionSession
    from footlights.speaker import Speaker as Speaker
    from footlights.stage.stage import Stage as Stage, StageStatistics as StageStatistics, open_stage as open_stage
    from footlights.stream.outbox import DetachReason as DetachReason, OutboxStatistics as OutboxStatistics
    from footlights.stream.subscription import Subscription as Subscription
    from footlights.tools.artifact_notes import ArtifactNote as ArtifactNote
    from footlights.tools.decorator import tool as tool
    from footlights.tools.tool import (
        SideEffects as SideEffects,
        Tool as Tool,
        ToolContext as ToolContext,
        ToolReturn as ToolReturn,
    )
    from footlights.trace.files import TraceFiles as TraceFiles
    from footlights.tracebacks import traceback_text as traceback_text
    from footlights.turn.commit_handle import CommitHandle as CommitHandle
    from footlights.turn.workloads import (
        ExtensionManager as ExtensionManager,
        InteractionContext as InteractionContext,
        Workload as Workload,
        draft_event as draft_event,
    )
    from footlights.turn.lifecycle import TurnState as TurnState
    from footlights.turn.summary import TurnSummary as TurnSummary
    from footlights.turn.timeline import Part as Part, TurnPart as TurnPart

_HOMES = {
    "footlights.tools.artifact_notes": "ArtifactNote",
    "footlights.authority.intents": "Intent IntentType",
    "footlights.authority.ledger.memory": "MemoryLedger",
    "footlights.authority.ledger.protocol": "Ledger",
    "footlights.models.budget": "BudgetConfig BudgetTier",
    "footlights.cast": "Cast ModelChoice ModelQuery",
    "footlights.turn.commit_handle": "CommitHandle",
    "footlights.errors": (
        "Busy CommitPending CommitUnknown Detached ExtraMissing FootlightsError IllegalTransition InvalidCommand "
        "InvalidEvent KeyMissing KeyRefused LedgerFenced LedgerInUse LedgerUnavailable ModelError ModelLoadFailed "
        "ModelNotFound ModelServerError ModelTimeout ModelUnavailable ModelUnreachable PromptTooLarge RateLimitError "
        "RegistrationError RemoteNotAllowed SessionClosed SessionInUse StrayCancel StreamError TooLarge ToolError "
        "UnknownSession UnknownTurn"
    ),
    "footlights.events": (
        "CommitFinal CommitOutcome DeliveryClass ErrorInfo EventType Ext Heard InterruptReason Issue JsonValue "
        "ModelLoading ModelReady ModelSelected Payload SeqRange StreamEvent TokenDelta ToolCallResult "
        "ToolCallStarted TurnAccepted TurnFinal TurnInterrupted WarmState"
    ),
    "footlights.failures": "watch_failures",
    "footlights.tracebacks": "traceback_text",
    "footlights.turn.workloads": "ExtensionManager InteractionContext Workload draft_event",
    "footlights.turn.lifecycle": "TurnState",
    "footlights.limits": "Limits",
    "footlights.models.llm_client": "LLMClient LLMResponse",
    "footlights.models.model": "Model ModelTraits Output Prompt ToolExchange ToolOffer ToolRequest ToolRound Usage",
    "footlights.stream.outbox": "DetachReason OutboxStatistics",
    "footlights.params": "BusyRule Mode SessionParams TurnParams quote_session_id",
    "footlights.models.pool": "ModelLease ModelPool ModelStatus",
    "footlights.models.prompts": "Fact Persona",
    "footlights.models.sampling": "Sampling",
    "footlights.session.session": "InteractionSession",
    "footlights.speaker": "Speaker",
    "footlights.session.core": "SessionState SessionStatistics",
    "footlights.stage.stage": "Stage StageStatistics open_stage",
    "footlights.stream.subscription": "Subscription",
    "footlights.turn.summary": "TurnSummary",
    "footlights.turn.timeline": "Part TurnPart",
    "footlights.tools.decorator": "tool",
    "footlights.tools.tool": "SideEffects Tool ToolContext ToolReturn",
    "footlights.trace.files": "TraceFiles",
}

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES, submodules="authority laws wire")
