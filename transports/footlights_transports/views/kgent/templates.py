"""Template answers as workloads: turns like all others, and each says in its text's `ext` that it is a template.

cast = with_templates(cast, STANDARD_TEMPLATES)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import evolve, frozen

from footlights.errors import ModelError
from footlights.turn.extensions import ExtensionManager, draft_event
from footlights_transports.views.kgent.pure.messages import DialogueMode
from footlights_transports.views.kgent.pure.reading import NAMESPACE
from footlights_transports.views.kgent.pure.templates import TemplateUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.cast import Cast
    from footlights.turn.extensions import InteractionContext
    from footlights_transports.views.kgent.pure.templates import Templates

SMALL_TALK = "kgent.small_talk"


def fallback_name(mode: DialogueMode) -> str:
    """The workload that answers in this mode when no model can."""
    return f"kgent.fallback.{mode}"


def with_templates(cast: Cast, templates: Templates) -> Cast:
    """The same cast, whose turns may be answered by these templates. Raises `RegistrationError` if some are already."""
    known = ((name, cast.workloads.get(name)) for name in cast.workloads.names)
    workloads = ExtensionManager({name: workload for name, workload in known if workload is not None})
    workloads.register(SMALL_TALK, _Said(TemplateUse.SHORT_CIRCUIT, templates.short_circuit))
    for mode in DialogueMode:
        workloads.register(fallback_name(mode), _Said(TemplateUse.FALLBACK, _always(templates.fallback(mode))))
    return evolve(cast, workloads=workloads)


def _always(text: str | None) -> Callable[[str], str | None]:
    return lambda _: text


@frozen
class _Said:
    """Says one text, and why."""

    use: TemplateUse
    answer: Callable[[str], str | None]

    async def run(self, context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()
        text = self.answer(context.input)
        if not text:
            raise ModelError("There is no template for this.")
        mark = {"namespace": NAMESPACE, "data": {"template": self.use.value}}
        context.emit_event(draft_event("token_delta", {"delta": text, "ext": mark}))
