"""Tools of the analyst: a search over a folder of documents, and a cohort simulation.

Both have no side effects: the rule in `footlights_actors.demo.analyst.rules` commits the report of a simulation. They
run in threads, and note every artifact that they read or generate.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from footlights.errors import ToolError
from footlights.redaction.secret_fields import REDACTED
from footlights.tools.artifact_notes import ArtifactNote
from footlights.tools.decorator import tool
from footlights.tools.tool import SideEffects, Tool, ToolContext, ToolReturn
from footlights_actors.demo.analyst.cohort import CohortPlan, simulate
from footlights_actors.demo.analyst.documents import DocumentShelf
from footlights_actors.demo.analyst.report import sentence
from footlights_actors.demo.analyst.rules import artifact_of, intent_to_keep

if TYPE_CHECKING:
    import os

    from footlights.events import JsonValue

DOCUMENTS = Path(__file__).parents[1] / "documents"
"""The sample documents of the package."""
MAX_HITS = 20

_looking = tool(side_effects=SideEffects.NONE, timeout=20.0)


def analyst_tools(documents: str | os.PathLike[str] = DOCUMENTS) -> tuple[Tool, ...]:
    """`search_documents` over this folder, and `simulate_cohort`. Raises `RegistrationError` if it is not a folder."""
    return search_tool(DocumentShelf(documents)), simulate_cohort


def search_tool(shelf: DocumentShelf) -> Tool:
    @_looking
    def search_documents(
        query: Annotated[str, "words to look for"],
        limit: Annotated[int, f"how many documents to return at most, 1 to {MAX_HITS}"] = 5,
    ) -> ToolReturn:
        """Search the documents for words, and return those that speak of them most."""
        if not 1 <= limit <= MAX_HITS:
            raise ToolError(f"limit must be from 1 to {MAX_HITS}.")
        found = shelf.search(query, limit)
        redacted = sum(hit.is_redacted for hit in found.hits)
        hidden = f", {redacted} shown with parts {REDACTED}" if redacted else ""
        hits: list[JsonValue] = [
            {"identifier": hit.identifier, "title": hit.title, "snippet": hit.snippet} for hit in found.hits
        ]
        return ToolReturn(
            {"hits": hits, "documents": found.documents},
            f"{len(hits)} found in {found.documents} documents{hidden}",
            reads=(ArtifactNote("document", hit.identifier) for hit in found.hits),
        )

    return search_documents


@_looking
def simulate_cohort(
    context: ToolContext,
    people: Annotated[int, "how many people, 8 to 2000"] = 200,
    weeks: Annotated[int, "for how many weeks, 1 to 52"] = 12,
    onboarding: Annotated[bool, "whether to study what onboarding does"] = True,
    reminders: Annotated[bool, "whether to study what reminders do"] = True,
    seed: Annotated[int, "the same seed gives the same people"] = 1,
) -> ToolReturn:
    """Simulate how many people keep to a habit, week by week, with and without onboarding and reminders."""
    plan = CohortPlan(people=people, weeks=weeks, onboarding=onboarding, reminders=reminders, seed=seed)
    cohort = simulate(plan)
    artifact, summary = artifact_of(cohort), sentence(cohort)
    context.request_commit(intent_to_keep(cohort, context.tool_call_id))
    return ToolReturn(
        {"artifact": artifact.ref, "summary": summary, "report": artifact.data},
        summary,
        generates=[ArtifactNote(artifact.kind, artifact.ref, summary)],
    )
