"""The public names are these, and every one of them is there. Changing the list is a decision, not an accident."""

from __future__ import annotations

from inspect import isfunction
from typing import TYPE_CHECKING

import footlights
import footlights.errors
import footlights.testing
import footlights_actors
import footlights_transports

if TYPE_CHECKING:
    from types import ModuleType

FOOTLIGHTS = """
    ArtifactNote authority BudgetConfig BudgetTier Busy BusyRule Cast CommitFinal CommitHandle CommitOutcome
    CommitPending CommitUnknown DeliveryClass Detached DetachReason draft_event ErrorInfo EventType Ext ExtensionManager
    ExtraMissing Fact
    FootlightsError Heard IllegalTransition Intent IntentType InteractionContext InteractionSession InterruptReason
    InvalidCommand InvalidEvent Issue JsonValue KeyMissing KeyRefused laws Ledger LedgerFenced LedgerInUse
    LedgerUnavailable Limits LLMClient
    LLMResponse MemoryLedger Mode Model
    ModelChoice ModelError ModelLease ModelLoading ModelPool ModelQuery ModelReady ModelSelected ModelStatus
    ModelLoadFailed ModelNotFound ModelServerError ModelUnavailable ModelUnreachable
    ModelTimeout ModelTraits open_stage OutboxStatistics Output Part Payload Persona Prompt PromptTooLarge
    quote_session_id
    RateLimitError
    RegistrationError RemoteNotAllowed Sampling SeqRange SessionClosed SessionInUse SessionParams
    SessionState SessionStatistics
    SideEffects Speaker Stage StageStatistics StrayCancel StreamError StreamEvent Subscription TokenDelta Tool tool
    TooLarge
    ToolCallResult ToolCallStarted ToolContext ToolError ToolExchange ToolOffer ToolRequest ToolReturn ToolRound
    traceback_text TraceFiles TurnAccepted TurnFinal TurnInterrupted TurnParams TurnPart TurnState TurnSummary
    UnknownSession
    UnknownTurn Usage
    WarmState watch_failures wire Workload
"""

FOOTLIGHTS_ACTORS = "Call ClientModel Fail Flood Line ModelClient Pause Say Script ScriptedModel Stall standard_cast"

FOOTLIGHTS_TRANSPORTS = """
    Client ClientSession ClientStream Commit Config ConfigError connect ConnectionLost LawBroken load_config
    PolledFeed PolledStream RateLimited Retry serve StageThread StageThreadDied StageThreadStuck ThreadSession Ticket
    Unauthorized UnsupportedVersion
"""

CODES = """
    internal invalid_event illegal_transition invalid_command unknown_session unknown_turn session_closed session_in_use
    busy too_large invalid_registration detached commit_pending commit_unknown ledger_fenced ledger_in_use
    ledger_unavailable model_error model_timeout prompt_too_large remote_not_allowed model_broke_off model_rate_limited
    stray_cancel tool_error model_key_missing model_key_refused model_not_found model_unavailable model_unreachable
    model_server_error model_load_failed model_extra_missing
"""


def _public(package: ModuleType) -> list[str]:
    names: list[str] = vars(package)["__all__"]
    return names


def test_the_runtime_exports_exactly_these_names() -> None:
    assert sorted(_public(footlights)) == sorted(FOOTLIGHTS.split())
    assert [name for name in _public(footlights) if not hasattr(footlights, name)] == []


def test_the_actors_export_exactly_these_names() -> None:
    assert sorted(_public(footlights_actors)) == sorted(FOOTLIGHTS_ACTORS.split())
    assert [name for name in _public(footlights_actors) if not hasattr(footlights_actors, name)] == []


def test_the_transports_export_exactly_these_names() -> None:
    assert sorted(footlights_transports.__all__) == sorted(FOOTLIGHTS_TRANSPORTS.split())
    assert [name for name in footlights_transports.__all__ if not hasattr(footlights_transports, name)] == []


def test_every_error_is_public_and_has_a_stable_code_of_its_own() -> None:
    members: list[object] = list(vars(footlights.errors).values())
    errors = [each for each in members if isinstance(each, type) and issubclass(each, footlights.FootlightsError)]
    assert sorted(error.code for error in errors) == sorted(CODES.split())
    assert [error for error in errors if error.__name__ not in _public(footlights)] == []


def test_every_public_class_and_function_says_what_it_is() -> None:
    modules = (footlights, footlights.authority, footlights.testing, footlights_actors, footlights_transports)
    members = [(module, name, getattr(module, name)) for module in modules for name in module.__all__]
    silent = [f"{module.__name__}.{name}" for module, name, it in members if _is_ours(it) and not _own_docstring(it)]
    assert silent == []


def _is_ours(it: object) -> bool:
    return isinstance(it, type) or isfunction(it)


def _own_docstring(it: object) -> str | None:
    # attrs and enums bring one of their own when the class has none.
    return vars(it).get("__doc__") if isinstance(it, type) else it.__doc__
