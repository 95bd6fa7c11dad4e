"""Generator of the parts of the docs that are made from the source.

    python docs/generate            brings every page up to date
    python docs/generate --check    changes nothing; exits with 1 and names the pages that are not

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`; everything around it is written by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import api
import dexi
import intents
import kgent
import recall
import recording
import requirements
import settings
import tables

import footlights
import footlights_actors
from footlights import authority, modes, testing
from footlights.authority import patch
from footlights.redaction import patterns, screen
from footlights.redaction import redactor as redaction
from footlights.testing import faults
from footlights_actors.models.anthropic import AnthropicModel
from footlights_actors.models.local.model import LocalModel
from footlights_actors.models.openai import OpenAIModel
from footlights_transports import PolledFeed, PolledStream, StageThread, ThreadSession, Ticket
from footlights_transports.embed import asyncio as in_asyncio
from footlights_transports.embed import twisted as in_twisted
from footlights_transports.embed.polled import Polled
from footlights_transports.views.mission.announcer import Announcement, Announcer
from footlights_transports.views.mission.caller import Caller
from footlights_transports.views.mission.pure import history as mission_history
from footlights_transports.views.mission.pure import matrix as mission_matrix
from footlights_transports.views.mission.pure import payload as mission_payload
from footlights_transports.views.mission.pure import policy as mission_policy
from footlights_transports.views.mission.pure import raised as mission_raised
from footlights_transports.views.mission.pure import recheck as mission_replay
from footlights_transports.views.mission.pure import requests as mission_requests
from footlights_transports.views.mission.pure import terms as mission_terms
from footlights_transports.views.mission.pure import text as mission_text
from footlights_transports.views.mission.voice import EspeakVoice, Voice

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parent.parent

_PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

_PARTS: dict[str, Callable[[], str]] = {
    "envelope": tables.envelope,
    "event-types": tables.event_types,
    "common-fields": tables.common_fields,
    "payloads": tables.payloads,
    "payload-parts": tables.payload_parts,
    "reasons": tables.reasons,
    "parts": tables.parts,
    "errors": tables.error_codes,
    "failures": tables.failure_codes,
    "limits": tables.limits,
    "laws": tables.all_laws,
    "ag-ui-laws": tables.ag_ui_laws,
    "states": tables.states,
    "diagram": tables.state_diagram,
    "commands": tables.commands,
    "dexi-events": dexi.events,
    "dexi-laws": dexi.laws,
    "dexi-schema": dexi.schemas,
    "config-server": settings.server,
    "config-users": settings.users,
    "config-cast": settings.cast,
    "config-analyst": settings.analyst,
    "config-notebooks": settings.notebooks,
    "config-worlds": settings.worlds,
    "config-dexi": settings.dexi,
    "config-ag-ui": settings.ag_ui,
    "config-mission": settings.mission,
    "config-chat-feed": settings.chat_feed,
    "config-console": settings.console,
    "config-models": settings.models,
    "config-personas": settings.personas,
    "config-sampling": settings.sampling,
    "config-budget": settings.budget,
    "config-wire": settings.wire,
    "config-chat": settings.chat,
    "scenario": settings.scenario,
    "scenario-load": settings.scenario_load,
    "scenario-turn": settings.scenario_turn,
    "scenario-trouble": settings.scenario_trouble,
    "scenario-target": settings.scenario_target,
    "kgent-errors": kgent.errors,
    "kgent-modes": kgent.modes,
    "kgent-states": kgent.states,
    "kgent-turn-types": kgent.turn_types,
    "kgent-names": kgent.names,
    "api-stage": lambda: api.described(
        footlights.open_stage,
        footlights.Stage,
        footlights.TraceFiles,
        footlights.TurnSummary,
        footlights.TurnPart,
        footlights.Part,
        footlights.watch_failures,
        footlights.traceback_text,
    ),
    "api-sessions": lambda: api.described(
        footlights.InteractionSession,
        footlights.Subscription,
        footlights.CommitHandle,
        footlights.SessionParams,
        footlights.quote_session_id,
        footlights.TurnParams,
        footlights.BusyRule,
        footlights.Mode,
        footlights.SessionState,
        footlights.DetachReason,
    ),
    "api-cast": lambda: api.described(
        footlights_actors.standard_cast,
        footlights.Cast,
        footlights.Persona,
        footlights.Fact,
        footlights.BudgetConfig,
        footlights.BudgetTier,
        footlights.ModelQuery,
        footlights.ModelChoice,
    ),
    "api-models": lambda: api.described(
        footlights.Model,
        footlights.ModelTraits,
        footlights.Prompt,
        footlights.Sampling,
        footlights.ToolOffer,
        footlights.ToolRequest,
        footlights.ToolExchange,
        footlights.ToolRound,
        footlights.Usage,
    ),
    "api-pool": lambda: api.described(footlights.ModelStatus, footlights.ModelPool, footlights.ModelLease),
    "api-drivers": lambda: api.described(
        LocalModel,
        OpenAIModel,
        AnthropicModel,
        footlights.LLMClient,
        footlights.LLMResponse,
        footlights_actors.ModelClient,
        footlights_actors.ClientModel,
    ),
    "api-scripted": lambda: api.described(
        footlights_actors.ScriptedModel,
        footlights_actors.Say,
        footlights_actors.Pause,
        footlights_actors.Call,
        footlights_actors.Flood,
        footlights_actors.Fail,
        footlights_actors.Stall,
    ),
    "api-tools": lambda: api.described(
        footlights.tool,
        footlights.Tool,
        footlights.ToolContext,
        footlights.ToolReturn,
        footlights.ArtifactNote,
        footlights.SideEffects,
    ),
    "api-workloads": lambda: api.described(
        footlights.Workload, footlights.InteractionContext, footlights.draft_event, footlights.ExtensionManager
    ),
    "api-authority": lambda: api.described(
        footlights.Intent,
        footlights.IntentType,
        authority.Ruling,
        authority.Artifact,
        authority.accept,
        authority.refuse,
        authority.every_turn,
        authority.RuleBook,
        authority.with_approvals,
        authority.same_owner,
        authority.anybody,
        authority.pending_approvals,
        authority.approval_news,
        authority.ApprovalNews,
        authority.ApprovalState,
        authority.PendingApproval,
        authority.decisions,
        authority.World,
        authority.JsonWorld,
        authority.WorldReadOnly,
    ),
    "api-patch": lambda: api.listed(
        patch.add, patch.remove, patch.replace, patch.move, patch.copy, patch.test, prefix="patch."
    ),
    "api-ledger": lambda: api.described(
        footlights.Ledger,
        footlights.MemoryLedger,
        authority.SqliteLedger,
        authority.LedgerInUse,
        authority.LedgerFormat,
        authority.LedgerDamaged,
        authority.Opening,
        authority.CommitRecord,
        authority.IntentEntry,
        authority.Verdict,
        authority.ToolRecord,
        authority.ToolState,
        authority.TurnRequest,
        authority.recompute_digest,
        authority.canonical,
        authority.digest,
    ),
    "api-threads": lambda: api.described(StageThread, ThreadSession, Polled, PolledStream, PolledFeed, Ticket),
    "api-asyncio": lambda: api.described(in_asyncio.opened, in_asyncio.answer, in_asyncio.read),
    "api-twisted": lambda: api.described(in_twisted.answer, in_twisted.read),
    "api-modes": lambda: api.described(
        modes.decide,
        modes.ModeDecision,
        modes.detect,
        modes.Intent,
        modes.IntentKind,
        modes.Activity,
        modes.determine,
        modes.Determination,
        modes.Candidate,
        modes.Condition,
        modes.Confirmation,
        modes.authorize,
        modes.ExecutionPolicy,
        modes.conclude,
    ),
    "api-mode-rules": lambda: api.described(
        modes.ModeHints,
        modes.feature_named,
        modes.Classifier,
        modes.Classification,
        modes.Assistance,
        modes.heed,
    ),
    "api-mission": lambda: api.described(
        mission_policy.decide,
        mission_policy.Decision,
        mission_policy.voice_failed,
        mission_policy.voice_dropped,
        mission_payload.MissionEvent,
        mission_payload.Context,
        mission_history.History,
        mission_payload.UtilityPayload,
        mission_text.TextPayload,
        mission_payload.VoicePayload,
        mission_payload.Suppression,
        mission_text.compose,
        mission_text.compose_plain,
        mission_policy.broken_rules,
        mission_policy.dedupe_key,
        mission_matrix.row_of,
        mission_matrix.Row,
        mission_requests.read_callout,
        mission_requests.CalloutRequest,
        mission_raised.RaisedEvent,
        mission_raised.raise_events,
        mission_replay.replay,
    ),
    "api-mission-terms": lambda: api.described(
        mission_terms.MissionEventType,
        mission_terms.Classification,
        mission_terms.Certainty,
        mission_terms.SuppressionReason,
        mission_terms.Tier,
        mission_terms.SessionState,
        mission_terms.VoiceMode,
        mission_terms.SpeechMode,
        mission_matrix.Speak,
    ),
    "api-callers": lambda: api.described(Caller, Announcer, Announcement, Voice, EspeakVoice),
    "api-redaction": lambda: api.described(
        redaction.Redactor, redaction.Redacted, redaction.RedactedValue, patterns.SecretPattern
    ),
    "api-output-filter": lambda: api.described(screen.OutputFilter, screen.Found),
    "config-redaction": settings.redaction,
    "redaction-recall": lambda: recall.table_of(DOCS.parent / "tests/runtime/redaction/corpus"),
    "still": recording.still,
    "requirements": requirements.page,
    "mode-vetoes": intents.vetoes,
    "confusion-held-out": intents.held_out,
    "api-statistics": lambda: api.described(
        footlights.StageStatistics, footlights.SessionStatistics, footlights.OutboxStatistics
    ),
    "testing-explore": lambda: api.described(
        testing.cancel_everywhere, testing.fail_everywhere, testing.Trial, testing.Exploration
    ),
    "testing-verdicts": lambda: api.described(
        testing.ExplorationFailed,
        testing.Diverged,
        testing.Deadlocked,
        testing.Runaway,
        testing.ThreadStuck,
        testing.GraceExceeded,
        testing.CancelSwallowed,
        testing.CleanupCut,
        testing.TasksLeaked,
        testing.LocksHeld,
        testing.ResourcesLeaked,
        testing.HooksMoved,
    ),
    "testing-threads": lambda: api.described(testing.quiesced_threads, testing.Gate),
    "testing-reading": lambda: api.listed(testing.take_turn, testing.payloads, testing.only),
    "testing-witness": lambda: api.described(testing.witness, testing.Witness, testing.LawsBroken),
    "testing-faults": lambda: api.listed(
        faults.failing_model,
        faults.stalling_model,
        faults.flooding_model,
        faults.failing_load,
        faults.stalling_load,
        faults.raising_tool,
        faults.hanging_tool,
        faults.slow_tool,
        faults.deaf_tool,
        faults.blocking_tool,
        faults.stalled_subscriber,
        faults.vanishing_subscriber,
        prefix="faults.",
    ),
    "testing-ledger": lambda: api.described(testing.check_ledger, faults.FlakyLedger),
}


def main() -> int:
    check = "--check" in sys.argv[1:]
    used: set[str] = set()
    outdated: list[Path] = []
    for page in (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))):
        old = page.read_text(encoding="utf-8")
        new = _PART.sub(lambda part: _filled(part, used), old)
        if new != old:
            outdated.append(page)
            if not check:
                page.write_text(new, encoding="utf-8")
    if left := sorted(_PARTS.keys() - used):
        print("made for no page:", ", ".join(left))
        return 1
    for page in outdated:
        print("out of date:" if check else "written:", page.relative_to(DOCS.parent))
    return 1 if check and outdated else 0


def _filled(part: re.Match[str], used: set[str]) -> str:
    used.add(part[2])
    return f"{part[1]}\n{_PARTS[part[2]]()}\n\n{part[3]}"


if __name__ == "__main__":
    sys.exit(main())
