"""Console as a view: its page, the routes that it asks, and the settings of `[console]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from footlights_transports.config.schema import FLAG, Setting
from footlights_transports.views.base.view import Mount, View
from footlights_transports.views.console.audits import Audits
from footlights_transports.views.console.page import PageRoutes
from footlights_transports.views.console.recorder import Recorder
from footlights_transports.views.console.routes import ConsoleRoutes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import Cast, Limits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.source import Source

_SETTINGS = (
    Setting(
        "enabled",
        FLAG,
        "Whether the server shows a page at `/`. With tokens, only operators see more than its form for a token.",
        True,
    ),
)


class ConsoleView(View):
    """The page."""

    sections: ClassVar = {"console": _SETTINGS}
    routes: ClassVar[Sequence[type]] = (PageRoutes, ConsoleRoutes)

    @classmethod
    def read(cls, source: Source, cast: Cast | None, limits: Limits) -> ConsoleView:
        return cls() if source.section(("console",), _SETTINGS).get("enabled", True) else NoConsole()

    def mount(self, access: SessionAccess) -> Mount:
        recorder = Recorder(access.stage)
        audits = Audits(access.stage.ledger)
        routes = ConsoleRoutes(access, recorder, audits)
        return Mount(view=self, handlers=[PageRoutes(), routes], run=audits.run)


class NoConsole(ConsoleView):
    """The console, turned off."""

    routes = ()

    def mount(self, access: SessionAccess) -> Mount:
        return Mount(view=self)
