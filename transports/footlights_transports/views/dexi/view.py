"""Narrated runs as a view: their routes, their task, and the settings of `[dexi]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from footlights.checks import listed
from footlights.errors import RegistrationError
from footlights.modes import NO_HINTS, ModeHints
from footlights.redaction.patterns import STANDARD_PATTERNS
from footlights.redaction.redactor import STANDARD_FIELDS, Redactor
from footlights_transports.config.redaction import host_patterns
from footlights_transports.config.schema import TEXT, TEXTS, Setting
from footlights_transports.views.base.run_keeper import UnknownAgent, UnknownRun
from footlights_transports.views.base.view import Mount, View
from footlights_transports.views.dexi.openapi import DEXI_SCHEMAS
from footlights_transports.views.dexi.routes import DexiRoutes
from footlights_transports.views.dexi.runs import Runs, RunSettings

if TYPE_CHECKING:
    from footlights import Cast, Limits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.source import Source

_SETTINGS = (
    Setting("chat_agent", TEXT, "The persona that answers POST /api/chat; the first if not set, the tavern's analyst."),
    Setting("secret_patterns", TEXTS, "Regular expressions of further text that runs must not show.", ()),
    Setting(
        "secret_fields", TEXTS, 'Names of further fields whose values runs must not show, such as "maiden name".', ()
    ),
)
_MODES = (
    Setting("work", TEXTS, "Messages that ask for work: one that is much like them is executed.", ()),
    Setting("chat", TEXTS, "Messages that ask for words only: nothing is executed for one that is much like them.", ()),
    Setting("veto", TEXTS, "Phrases that forbid any execution, wherever they stand in a message.", ()),
)


class DexiView(View):
    """Narrated runs."""

    sections: ClassVar = {"dexi": _SETTINGS, "modes": _MODES}
    routes = (DexiRoutes,)
    schemas = DEXI_SCHEMAS
    errors: ClassVar = {UnknownRun: 404, UnknownAgent: 404}

    def __init__(self, settings: RunSettings | None = None) -> None:
        self.settings = settings or RunSettings()

    @classmethod
    def read(cls, source: Source, cast: Cast | None, limits: Limits) -> DexiView:
        given = source.section(("dexi",), _SETTINGS)
        agent = given.get("chat_agent", source.chat_agent)
        if agent is not None and cast is not None and agent not in cast.personas:
            source.complain(("dexi", "chat_agent"), f"is not a persona; there are: {listed(cast.personas)}.")
        patterns = (
            *STANDARD_PATTERNS,
            *host_patterns(source, ("dexi", "secret_patterns"), given.get("secret_patterns", ())),
        )
        redactor = Redactor(patterns, (*STANDARD_FIELDS, *given.get("secret_fields", ())))
        return cls(RunSettings(hints=_hints(source), chat_agent=agent, redactor=redactor))

    def mount(self, access: SessionAccess) -> Mount:
        runs = Runs(access, self.settings)
        return Mount(view=self, handlers=[DexiRoutes(access, runs)], run=runs.keep)


def _hints(source: Source) -> ModeHints:
    try:
        return ModeHints(**source.section(("modes",), _MODES))
    except RegistrationError as error:
        source.complain(("modes",), f"cannot be used: {error}")
        return NO_HINTS
