"""Reload: what SIGHUP changes in a running server, and what needs a restart.

All settings are read again except the cast, whose code is imported once. If any is invalid, nothing changes. Otherwise
the server uses the new tokens, roles, origins, rates, limits of users, certificates, and what each view can change
while it runs, and closes the connections of revoked tokens. The log names every other setting that differs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio
from attrs import evolve

from footlights.failures import describe
from footlights_transports.config.source import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterable, Callable, Sequence
    from pathlib import Path

    from footlights_transports.access.policy import WireLimits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.config import Config
    from footlights_transports.views.base.view import Mount

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
_TLS = frozenset({"server.tls_cert", "server.tls_key"})

log = logging.getLogger("footlights.reload")


async def reload_at_each(
    hangups: AsyncIterable[object],
    read: Callable[[], Config],
    running: Config,
    access: SessionAccess,
    mounts: Sequence[Mount],
) -> None:
    """Reload at each hangup. The supervision boundary of reloads: one that fails leaves the server as it was."""
    async for _ in hangups:
        try:
            fresh = await trio.to_thread.run_sync(read)
            running = _apply(running, fresh, access, mounts)
        except ConfigError as error:
            log.error("nothing is reloaded, because of the settings: %s", "; ".join(map(str, error.problems)))
        except Exception as error:  # noqa: BLE001 - see above
            log.error("nothing is reloaded: %s", describe(error))


def _apply(running: Config, fresh: Config, access: SessionAccess, mounts: Sequence[Mount]) -> Config:
    """Change what can be changed, and log it; return the settings that are in use now."""
    before, after = running.settings, fresh.settings
    differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    done: set[str] = set()
    facts: list[str] = []
    # First the steps that may fail, while nothing is changed.
    if running.tls is not None and fresh.tls_files is not None:
        _load(running.tls, *fresh.tls_files)
        facts.append("the certificate was read again")
        done |= _TLS
    views = {type(view): view for view in fresh.views}
    for mount in mounts:
        view = views.get(type(mount.view))
        reloaded = None if mount.reload is None or view is None else mount.reload(view, differing)
        if reloaded is not None:
            facts += [] if reloaded.fact is None else [reloaded.fact]
            done |= reloaded.settings
    if access.policy.wants_tokens == fresh.policy.wants_tokens:
        known = access.policy.tokens
        fresh.policy.limits = _merged(access.policy.limits, fresh.policy.limits)
        revoked = len(access.renew(fresh.policy))
        facts.append(
            f"{access.policy.tokens} tokens, {access.policy.tokens - known + revoked} new and {revoked} revoked"
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
    return evolve(running, settings={**kept, **{name: after[name] for name in done if name in after}})


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Use these files for handshakes from now on. Another context has loaded them a moment ago, so they are valid."""
    context.load_cert_chain(certificate, key, password=lambda: b"")


def _merged(running: WireLimits, fresh: WireLimits) -> WireLimits:
    return evolve(running, **{name: getattr(fresh, name) for name in RATES_AND_SHARES})
