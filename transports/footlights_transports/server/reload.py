"""Reload: what SIGHUP changes in a running server, and what needs a restart.

All settings are read again except the cast, whose code is imported once. If any is invalid, nothing changes. Otherwise
the server uses the new tokens, roles, origins, rates, limits of users, certificates, and what each view can change
while it runs, and closes the connections of revoked tokens. The log names every other setting that differs.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import trio
from attrs import evolve

from footlights.failures import describe
from footlights_transports.config.source import ConfigError
from footlights_transports.worlds.names import MAIN

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterable, Callable
    from pathlib import Path

    from footlights_transports.access.policy import WireLimits
    from footlights_transports.config.config import Config
    from footlights_transports.views.base.view import Reloaded
    from footlights_transports.workers.server import WorldsOfWorkers
    from footlights_transports.worlds.hosted import HostedWorlds
    from footlights_transports.worlds.world import World

RATES_AND_SHARES = (
    "max_connections",
    "max_connections_per_user",
    "max_sessions_per_user",
    "max_open_turns_per_user",
    "commands_per_second",
    "command_burst",
    "user_commands_per_second",
    "user_command_burst",
    "bytes_per_second",
    "byte_burst",
    "user_bytes_per_second",
    "user_byte_burst",
)
"""The settings of `[wire]` that a reload changes. Servers read the others only at the start."""
_ACCESS = frozenset({"server.tokens_file", "server.origins", *(f"wire.{name}" for name in RATES_AND_SHARES)})
ALLOWED_WORLDS = ("names", "max_on_demand", "max_open")
_WORLDS = frozenset(f"worlds.{name}" for name in ALLOWED_WORLDS)
_TLS = frozenset({"server.tls_cert", "server.tls_key"})

log = logging.getLogger("footlights.reload")


async def reload_at_each(
    hangups: AsyncIterable[object],
    read: Callable[[], Config],
    worlds: HostedWorlds | WorldsOfWorkers,
) -> None:
    """Reload at each hangup. The supervision boundary of reloads: one that fails leaves the server as it was."""
    async for _ in hangups:
        try:
            fresh = await trio.to_thread.run_sync(read)
            worlds.config = _apply(fresh, worlds)
        except ConfigError as error:
            log.error("nothing is reloaded, because of the settings: %s", "; ".join(map(str, error.problems)))
        except Exception as error:  # noqa: BLE001 - see above
            log.error("nothing is reloaded: %s", describe(error))


def _apply(fresh: Config, worlds: HostedWorlds | WorldsOfWorkers) -> Config:
    """Change what can be changed, and log it; return the settings that are in use now."""
    running, admission = worlds.config, worlds.admission
    before, after = running.settings, fresh.settings
    differing = _differing(running, fresh)
    done: set[str] = set()
    facts: list[str] = []
    # First the steps that may fail, while nothing is changed.
    if running.tls is not None and fresh.tls_files is not None:
        _load(running.tls, *fresh.tls_files)
        facts.append("the certificate was read again")
        done |= _TLS
    worlds.renew = partial(_renew, running, fresh)
    for world in worlds.opened():
        for reloaded in worlds.renew(world):
            facts += [] if reloaded.fact is None or reloaded.fact in facts else [reloaded.fact]
            done |= reloaded.settings
    done |= _WORLDS
    if admission.policy.wants_tokens == fresh.policy.wants_tokens:
        known = admission.policy.tokens
        fresh.policy.limits = _merged(admission.policy.limits, fresh.policy.limits)
        revoked = len(admission.renew(fresh.policy))
        facts.append(
            f"{admission.policy.tokens} tokens, {admission.policy.tokens - known + revoked} new and {revoked} revoked"
        )
        done |= _ACCESS | {name for name in differing if name.startswith("users.")}
    else:
        differing.add("tokens")
    log.warning(
        "reloaded: %s; changed: %s; needs a restart: %s",
        "; ".join(facts) or "nothing",
        ", ".join(sorted(differing & done)) or "no setting",
        ", ".join(sorted(differing - done)) or "no setting",
    )
    kept = {name: value for name, value in before.items() if name not in done}
    allowed = evolve(running.worlds, **{name: getattr(fresh.worlds, name) for name in ALLOWED_WORLDS})
    settings = {**kept, **{name: after[name] for name in done if name in after}}
    return evolve(running, settings=settings, worlds=allowed)


def _differing(running: Config, fresh: Config) -> set[str]:
    """The names of the settings that differ."""
    before, after = running.settings, fresh.settings
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _renew(running: Config, fresh: Config, world: World) -> list[Reloaded]:
    """Give the views of a world the fresh settings, as far as they can change while it is open."""
    old, new = (each.worlds.config_of(world.name) or each for each in (running, fresh))
    fresh_views = new.views if world.name == MAIN else [view.in_world(world.name) for view in new.views]
    differing, views = _differing(old, new), {type(view): view for view in fresh_views}
    changes = [
        mount.reload(views[type(mount.view)], differing)
        for mount in world.mounts
        if mount.reload is not None and type(mount.view) in views
    ]
    return [each for each in changes if each is not None]


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Use these files for handshakes from now on. Another context has loaded them a moment ago, so they are valid."""
    context.load_cert_chain(certificate, key, password=lambda: b"")


def _merged(running: WireLimits, fresh: WireLimits) -> WireLimits:
    return evolve(running, **{name: getattr(fresh, name) for name in RATES_AND_SHARES})
