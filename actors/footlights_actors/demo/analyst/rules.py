"""Rule of the analyst: commits the report of a simulation as an artifact. The world does not change.

The intent holds a plan and its counts. The rule runs the plan again and accepts only equal counts, so an artifact
contains nothing but the result of a simulation, independent of the text that a tool or a model got.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attrs import asdict

from footlights.authority import Artifact, Intent, IntentType, accept, refuse
from footlights.errors import ToolError
from footlights.tools.arguments import arguments_reader
from footlights.tools.schema import Member
from footlights_actors.demo.analyst.cohort import Cohort, simulate
from footlights_actors.demo.analyst.report import report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.authority import Rule, Ruling
    from footlights.events import JsonValue

KIND = "cohort_simulation"
_ACT = "keep_simulation"

_read = arguments_reader((Member("act", str, True), Member("cohort", Cohort, True)))


def artifact_of(cohort: Cohort) -> Artifact:
    """The artifact to commit. Its `ref` is known beforehand."""
    return Artifact(KIND, report(cohort))


def intent_to_keep(cohort: Cohort, tool_call_id: str) -> Intent:
    payload: dict[str, JsonValue] = {"act": _ACT, "cohort": _as_json(cohort)}
    return Intent(IntentType.TOOL_RESULT, tool_call_id, payload)


def _as_json(cohort: Cohort) -> JsonValue:
    arms: list[JsonValue] = [{**asdict(arm), "adherent": list(arm.adherent)} for arm in cohort.arms]
    return {"plan": asdict(cohort.plan), "arms": arms}


def asks_to_keep(intent: Intent) -> bool:
    """Whether the intent concerns a simulation."""
    return isinstance(intent.payload, dict) and intent.payload.get("act") == _ACT


def simulations(_: object, intents: tuple[Intent, ...]) -> Ruling:
    """Commit each valid simulation once."""
    kept: dict[str, Artifact] = {}
    for intent in filter(asks_to_keep, intents):
        try:
            cohort = cast(Cohort, _read(intent.payload)["cohort"])
        except ToolError:
            return _not_a_simulation(intent)
        if cohort != simulate(cohort.plan):
            return _not_a_simulation(intent)
        artifact = artifact_of(cohort)
        kept[artifact.ref] = artifact
    return accept(artifacts=kept.values())


def _not_a_simulation(intent: Intent) -> Ruling:
    return refuse("not_a_simulation", "That did not come from a simulation.", intent.ref)


ANALYST_RULES: Mapping[str, Rule] = {"simulations": simulations}
