"""Chat gateway as a view: its WebSocket endpoints, its task, its templates, and the settings of `[chat]`."""

from __future__ import annotations

from copy import copy
from functools import partial
from importlib.util import find_spec
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from footlights.errors import FootlightsError
from footlights.extras import advice
from footlights_actors.sealed import CONTENT_KEYS_VARIABLE
from footlights_transports.config.schema import FILE, FOLDER, Setting, settings_of, whole_from
from footlights_transports.views.base.view import Mount, Reloaded, View
from footlights_transports.views.kgent.connection import accept_observer, accept_sender
from footlights_transports.views.kgent.gateway import KeeperOfWorlds, KgentGateway, UnknownAgent
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.templates import STANDARD_TEMPLATES
from footlights_transports.views.kgent.pure.wire import SUBPROTOCOL
from footlights_transports.views.kgent.template_workloads import with_templates
from footlights_transports.websocket.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from footlights import Cast, Limits
    from footlights.models.budget import BudgetConfig
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.source import Source
    from footlights_transports.views.kgent.gateway import Keeper

_FLUX = settings_of(ChatFluxConfig)
_STORE = (
    Setting("content_folder", FOLDER, "Where chats are stored, encrypted, if the user consents. None are if not set."),
    Setting("content_days", whole_from(1), "Days that a stored chat is kept. Until it is erased if not set."),
    Setting(
        "content_keys_file",
        FILE,
        f"Keys of stored chats, one a line, newest first; {CONTENT_KEYS_VARIABLE} if not set.",
    ),
)
_FOLDER = ("chat", "content_folder")
_KEYS = ("chat", "content_keys_file")
_DAYS = ("chat", "content_days")


class KgentView(View):
    """The chat gateway."""

    sections: ClassVar = {"chat": (*_FLUX, *_STORE)}
    variables = (CONTENT_KEYS_VARIABLE,)
    errors: ClassVar = {UnknownAgent: 404}

    def __init__(
        self,
        flux: ChatFluxConfig | None = None,
        *,
        budget: BudgetConfig | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        """`budget` should be the cast's own. `keeper` stores the chats of users who consent; without it none is."""
        self.flux = flux or ChatFluxConfig()
        self.budget = budget
        self.keeper = keeper

    @classmethod
    def read(cls, source: Source, cast: Cast | None, limits: Limits) -> KgentView:
        given = source.section(("chat",), (*_FLUX, *_STORE))
        store = {each.name: given.pop(each.name) for each in _STORE if each.name in given}
        flux = source.accepted(("chat",), given, ChatFluxConfig)
        budget = None if cast is None else cast.budget
        if budget is not None and flux.session_tokens < budget.whisper_max:
            source.complain(
                ("chat", "session_tokens"), f"is not enough for a whisper, which may take {budget.whisper_max}."
            )
        return cls(flux, budget=budget, keeper=_keeper(source, store))

    def extend(self, cast: Cast) -> Cast:
        return with_templates(cast, STANDARD_TEMPLATES)

    def in_world(self, name: str) -> KgentView:
        its = copy(self)
        if isinstance(self.keeper, KeeperOfWorlds):
            its.keeper = self.keeper.in_world(name)
        return its

    def mount(self, access: SessionAccess) -> Mount:
        gateway = KgentGateway(access, self.flux, budget=self.budget, keeper=self.keeper)
        endpoints = [
            Endpoint("/perturb/{agent}", SUBPROTOCOL, partial(accept_sender, gateway), requires_subprotocol=False),
            Endpoint("/observe/{agent}", SUBPROTOCOL, partial(accept_observer, gateway), requires_subprotocol=False),
        ]

        def reload(fresh: KgentView, differing: Collection[str]) -> Reloaded | None:
            if gateway.keeper is None or fresh.keeper is None or ".".join(_FOLDER) in differing:
                return None
            gateway.keeper = fresh.keeper
            changed = frozenset({".".join(_KEYS), ".".join(_DAYS)})
            return Reloaded(fact="the keys of kept content were read again", settings=changed)

        return Mount(view=self, endpoints=endpoints, run=gateway.keep, reload=reload)


def _keeper(source: Source, given: Mapping[str, Any]) -> Keeper | None:
    if "content_folder" not in given:
        for path in (_KEYS, _DAYS):
            if path[-1] in given:
                source.complain(path, "is of no use without content_folder.")
        return None
    if find_spec("cryptography") is None:
        source.complain(_FOLDER, f"needs cryptography: {advice('content')}")
        return None
    from footlights_actors.sealed.keys import keys_from_environment, keys_from_file
    from footlights_transports.views.kgent.store import ContentStore

    try:
        if "content_keys_file" in given:
            keys = keys_from_file(source.resolve(_KEYS, given["content_keys_file"]))
        else:
            keys = keys_from_environment(source.environ)
        folder = source.resolve(_FOLDER, given["content_folder"])
        return ContentStore(folder, keys, days=given.get("content_days", inf))
    except FootlightsError as error:
        source.complain(_FOLDER, f"cannot be used: {error}")
        return None
