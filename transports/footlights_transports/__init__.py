"""Access to a stage from outside its trio run: servers, views, a Python client, a stage on a thread, the command line.

async with connect("ws://127.0.0.1:7600") as client: ...    # a trio program elsewhere
with StageThread(cast) as stage: ...                        # a program without trio
await serve(load_config(Path("footlights.toml")), ...)       # a server
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

if TYPE_CHECKING:
    from footlights_transports.client.client import Client, connect
    from footlights_transports.client.protocol import ConnectionLost, LawBroken
    from footlights_transports.client.retry import Retry
    from footlights_transports.client.session import ClientSession, Commit
    from footlights_transports.client.stream import ClientStream
    from footlights_transports.config.config import Config, load_config
    from footlights_transports.config.source import ConfigError
    from footlights_transports.embed.polled_feed import PolledFeed
    from footlights_transports.embed.polled_stream import PolledStream
    from footlights_transports.embed.stage_thread import StageThread
    from footlights_transports.embed.thread_session import ThreadSession
    from footlights_transports.embed.ticket import StageThreadStuck, Ticket
    from footlights_transports.embed.trio_thread import StageThreadDied
    from footlights_transports.errors import RateLimited, Unauthorized, UnsupportedVersion
    from footlights_transports.server.serve import serve

__all__ = [
    "Client",
    "ClientSession",
    "ClientStream",
    "Commit",
    "Config",
    "ConfigError",
    "ConnectionLost",
    "LawBroken",
    "PolledFeed",
    "PolledStream",
    "RateLimited",
    "Retry",
    "StageThread",
    "StageThreadDied",
    "StageThreadStuck",
    "ThreadSession",
    "Ticket",
    "Unauthorized",
    "UnsupportedVersion",
    "connect",
    "load_config",
    "serve",
]

_HOMES = {
    "footlights_transports.client.client": "Client connect",
    "footlights_transports.client.protocol": "ConnectionLost LawBroken",
    "footlights_transports.client.retry": "Retry",
    "footlights_transports.client.session": "ClientSession Commit",
    "footlights_transports.client.stream": "ClientStream",
    "footlights_transports.config.config": "Config load_config",
    "footlights_transports.config.source": "ConfigError",
    "footlights_transports.embed.ticket": "StageThreadStuck Ticket",
    "footlights_transports.embed.polled_feed": "PolledFeed",
    "footlights_transports.embed.polled_stream": "PolledStream",
    "footlights_transports.embed.stage_thread": "StageThread",
    "footlights_transports.embed.thread_session": "ThreadSession",
    "footlights_transports.embed.trio_thread": "StageThreadDied",
    "footlights_transports.errors": "RateLimited Unauthorized UnsupportedVersion",
    "footlights_transports.server.serve": "serve",
}

if not TYPE_CHECKING:  # a checker that saw these would accept any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
