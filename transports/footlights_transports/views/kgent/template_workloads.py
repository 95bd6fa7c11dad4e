"""Template workloads: they answer in ordinary turns, and mark their text as a template's in its `ext`.

cast = with_templates(cast, STANDARD_TEMPLATES)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio
from attrs import evolve, frozen

from footlights.errors import ModelError
from footlights.turn.workloads import ExtensionManager, draft_event
from footlights_transports.views.kgent.pure.messages import DialogueMode
from footlights_transports.views.kgent.pure.reader import NAMESPACE
from footlights_transports.views.kgent.pure.templates import TemplateUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.cast import Cast
    from footlights.turn.workloads import InteractionContext
    from footlights_transports.views.kgent.pure.templates import Templates

SMALL_TALK = "kgent.small_talk"


def fallback_name(mode: DialogueMode) -> str:
    """The name of the workload that answers in this mode when no model can."""
    return f"kgent.fallback.{mode}"


def with_templates(cast: Cast, templates: Templates) -> Cast:
    """The cast with these templates as workloads. Raises `RegistrationError` if it has template workloads already."""
    known = ((name, cast.workloads.get(name)) for name in cast.workloads.names)
    workloads = ExtensionManager({name: workload for name, workload in known if workload is not None})
    workloads.register(SMALL_TALK, _TemplateWorkload(TemplateUse.SHORT_CIRCUIT, templates.short_circuit))
    for mode in DialogueMode:
        workloads.register(
            fallback_name(mode), _TemplateWorkload(TemplateUse.FALLBACK, partial(_fallback, templates, mode))
        )
    return evolve(cast, workloads=workloads)


def _fallback(templates: Templates, mode: DialogueMode, _said: str) -> str | None:
    return templates.fallback(mode)


@frozen
class _TemplateWorkload:
    """Emits one text with its mark."""

    use: TemplateUse
    answer: Callable[[str], str | None]

    async def run(self, context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()
        text = self.answer(context.input)
        if not text:
            raise ModelError(sentence="There is no template for this.")
        mark = {"namespace": NAMESPACE, "data": {"template": self.use.value}}
        context.emit_event(draft_event("token_delta", {"delta": text, "ext": mark}))
