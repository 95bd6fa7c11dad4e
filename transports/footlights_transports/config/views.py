"""Views of a server, each as its settings describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_transports.views.ag_ui.view import AgUiView
from footlights_transports.views.chat_feed.view import ChatFeedView
from footlights_transports.views.console.view import ConsoleView
from footlights_transports.views.dexi.view import DexiView
from footlights_transports.views.kgent.view import KgentView
from footlights_transports.views.mission.view import MissionView
from footlights_transports.views.native.view import NativeView

if TYPE_CHECKING:
    from footlights_transports.views.base.view import View

VIEWS: tuple[type[View], ...] = (
    NativeView,
    ChatFeedView,
    DexiView,
    MissionView,
    KgentView,
    AgUiView,
    ConsoleView,
)
"""Every view of `footlights serve`. A new view is one package and one line here."""
