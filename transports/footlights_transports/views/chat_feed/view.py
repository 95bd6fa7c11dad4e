"""Chat feed as a view: its routes, its task, the player's words of each turn, and the settings of `[chat_feed]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from footlights_transports.config.schema import Setting, whole_from
from footlights_transports.views.base.view import Mount, Reloaded, View
from footlights_transports.views.chat_feed.feeds import MAX_FEEDS, ChatFeeds
from footlights_transports.views.chat_feed.routes import CHAT_SCHEMAS, ChatRoutes

if TYPE_CHECKING:
    from collections.abc import Collection

    from footlights import Cast, Limits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.source import Source

_SETTINGS = (
    Setting(
        "max_per_user",
        whole_from(1),
        "Feeds that one user reads; with one more, the least recently read is dropped.",
        MAX_FEEDS,
    ),
)


class ChatFeedView(View):
    """The chat feed of each session."""

    sections: ClassVar = {"chat_feed": _SETTINGS}
    routes = (ChatRoutes,)
    schemas = CHAT_SCHEMAS

    def __init__(self, max_per_user: int = MAX_FEEDS) -> None:
        self.max_per_user = max_per_user

    @classmethod
    def read(cls, source: Source, cast: Cast | None, limits: Limits) -> ChatFeedView:
        return cls(**source.section(("chat_feed",), _SETTINGS))

    def mount(self, access: SessionAccess) -> Mount:
        feeds = ChatFeeds(access.stage.ledger, access.incidents)
        routes = ChatRoutes(access, feeds, self.max_per_user)

        def reload(fresh: ChatFeedView, _: Collection[str]) -> Reloaded:
            routes.max_per_user = fresh.max_per_user
            return Reloaded(settings=frozenset({"chat_feed.max_per_user"}))

        def turn_begun(session_id: str, turn_id: str, said: str) -> None:
            feeds.player_said(access.stage.session(session_id), turn_id, said)

        return Mount(view=self, handlers=[routes], run=feeds.keep, turn_begun=turn_begun, reload=reload)
