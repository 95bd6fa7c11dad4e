"""View: one way to see and begin turns, and everything that the servers mount for it.

    class ScoreView(View):
        routes = (ScoreRoutes,)

        def mount(self, access):
            return Mount(view=self, handlers=[ScoreRoutes(access)])

A `View` has the settings, and exists before there is a stage. Its `Mount` belongs to the access of one stage. Both are
plain values: the servers go through them, and know no view by name. `run_views` mounts views and runs their tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import trio
from attrs import frozen

from footlights.redaction.screen import covered_text
from footlights_transports.access.session_access import CoveredAccess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from typing import Self

    from footlights import Cast, Limits
    from footlights.errors import FootlightsError
    from footlights.redaction.screen import OutputFilter
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.schema import Setting
    from footlights_transports.config.source import Source
    from footlights_transports.http.openapi import Json
    from footlights_transports.websocket.endpoint import Endpoint


class View(ABC):
    """A view with its settings. A subclass overrides what it needs; only `mount` is required."""

    sections: ClassVar[Mapping[str, Sequence[Setting]]] = MappingProxyType({})
    """The sections of the settings file that belong to this view."""
    variables: ClassVar[Collection[str]] = ()
    """Environment variables of this view that are not settings."""
    routes: ClassVar[Sequence[type]] = ()
    """The classes of the mount's handlers, whose methods are `Operation`s."""
    schemas: ClassVar[Mapping[str, Json]] = MappingProxyType({})
    """The schemas to which these operations refer, for the OpenAPI document."""
    errors: ClassVar[Mapping[type[FootlightsError], int]] = MappingProxyType({})
    """The HTTP statuses of errors whose codes only this view has."""
    output_filter: OutputFilter | None = None
    """What this view does not show: the output filter of the cast, if the view is covered."""

    @classmethod
    def name(cls) -> str:
        """The name in settings: that of its package."""
        return cls.__module__.rpartition(".")[0].rpartition(".")[2]

    @classmethod
    def read(cls, source: Source, cast: Cast | None, limits: Limits) -> Self:
        """The view that the settings describe. Problems go to `source`.

        `cast` is None if it cannot be made, and at a reload, which makes no cast.
        """
        return cls()

    def extend(self, cast: Cast) -> Cast:
        """The cast with what this view needs in it. The stage is opened with it."""
        return cast

    def in_world(self, name: str) -> Self:
        """The view for a world beside the main one. What it keeps in files is another for each."""
        return self

    @abstractmethod
    def mount(self, access: SessionAccess) -> Mount:
        """The view for one stage. Called in trio, before the servers accept connections."""


@frozen(kw_only=True)
class Reloaded:
    """A change of a running view by a reload of the settings."""

    settings: frozenset[str]
    """The settings that are in use now, such as `chat.content_keys_file`."""
    fact: str | None = None
    """For the log, if more was read again than settings."""


class ViewTask(Protocol):
    """The task of a view. It runs until it is cancelled; if it raises, the server ends."""

    def __call__(self, *, task_status: trio.TaskStatus[None]) -> Awaitable[None]:
        """The servers start after the call of `task_status.started()`."""
        ...


@frozen(kw_only=True)
class Mount:
    """What the servers mount for a view of one stage."""

    view: View
    handlers: Sequence[object] = ()
    """Handlers of HTTP requests, of the classes in `view.routes`."""
    endpoints: Sequence[Endpoint] = ()
    """WebSocket paths."""
    run: ViewTask | None = None
    turn_begun: Callable[[str, str, str], None] | None = None
    """Called with session id, turn id and input of each turn that begins. It must be a short, plain call."""
    reload: Callable[[Any, Collection[str]], Reloaded | None] | None = None
    """Called with this view as the new settings describe it, and the names of the settings that differ."""


def _covered(view: View, listener: Callable[[str, str, str], None]) -> Callable[[str, str, str], None]:
    """The listener, for words as its view shows them."""
    output_filter = view.output_filter
    if output_filter is None:
        return listener
    return lambda session_id, turn_id, said: listener(session_id, turn_id, covered_text(output_filter, said))


async def run_views(
    access: SessionAccess,
    views: Iterable[View],
    task_status: trio.TaskStatus[list[Mount]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Mount these views, and run their tasks until cancelled.

        mounts = await nursery.start(run_views, access, [NativeView()])

    The mounts are for the servers. Cancel the views together with the servers: streams of views then end.
    """
    mounts = [view.mount(access if view.output_filter is None else CoveredAccess(access)) for view in views]
    listeners = [_covered(each.view, each.turn_begun) for each in mounts if each.turn_begun is not None]
    access.turn_listeners += listeners
    try:
        async with trio.open_nursery() as nursery:
            for each in mounts:
                if each.run is not None:
                    await nursery.start(each.run, name=type(each.view).__name__)
            task_status.started(mounts)
            await trio.sleep_forever()
    finally:
        for listener in listeners:
            access.turn_listeners.remove(listener)
