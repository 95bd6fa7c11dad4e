"""AG-UI as a view: its routes, its task, and the settings of `[ag_ui]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from footlights_transports.config.schema import NUMBER, Setting
from footlights_transports.views.ag_ui.openapi import AG_UI_SCHEMAS
from footlights_transports.views.ag_ui.pure.request import FrontendTools
from footlights_transports.views.ag_ui.routes import AgUiRoutes
from footlights_transports.views.ag_ui.runs import DISCONNECT_GRACE, RESUME_GRACE, AgUiRuns
from footlights_transports.views.base.run_keeper import UnknownAgent, UnknownRun
from footlights_transports.views.base.view import Mount, View

if TYPE_CHECKING:
    from footlights import Cast, Limits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.source import Source

_SETTINGS = (
    Setting(
        "disconnect_grace",
        NUMBER,
        "Seconds after which a run is canceled that its client has left. It may come back before.",
        DISCONNECT_GRACE,
    ),
    Setting(
        "resume_grace",
        NUMBER,
        "The same for a client that says that it resumes, as FootlightsAgent does.",
        RESUME_GRACE,
    ),
)


class AgUiView(View):
    """Runs for clients of AG-UI."""

    sections: ClassVar = {"ag_ui": _SETTINGS}
    routes = (AgUiRoutes,)
    schemas = AG_UI_SCHEMAS
    errors: ClassVar = {UnknownRun: 404, UnknownAgent: 404, FrontendTools: 422}

    def __init__(self, disconnect_grace: float = DISCONNECT_GRACE, resume_grace: float = RESUME_GRACE) -> None:
        self.graces = (disconnect_grace, resume_grace)

    @classmethod
    def read(cls, source: Source, cast: Cast | None, limits: Limits) -> AgUiView:
        given = source.section(("ag_ui",), _SETTINGS)
        for name, grace in given.items():
            if grace < 0:
                source.complain(("ag_ui", name), "must be 0 or more.")
        return cls(**given)

    def mount(self, access: SessionAccess) -> Mount:
        runs = AgUiRuns(access, *self.graces)
        return Mount(view=self, handlers=[AgUiRoutes(access, runs)], run=runs.keep)
