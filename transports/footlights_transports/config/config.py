"""Config: everything that `footlights serve` needs, made from a TOML file, the environment and the command line.

`load_config` makes and checks all of it, so that a `Config` can be served. It reports all problems at once, each with
its line, and without the value.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from footlights.limits import Limits
from footlights.models.budget import BudgetConfig
from footlights.redaction.redactor import Redactor
from footlights_actors.models.local.weights import CACHE_VARIABLE
from footlights_transports.config.access import load_tls, read_policy, read_tls_files
from footlights_transports.config.cast import read_cast
from footlights_transports.config.schema import LIMITS, SECTIONS, SERVER
from footlights_transports.config.source import PREFIX, SEPARATOR, ConfigError, Source, is_folder
from footlights_transports.config.views import read_chat, read_mission, read_redactor
from footlights_transports.server.logs import VARIABLE
from footlights_transports.views.kgent.pure.settings import CONTENT_KEYS_VARIABLE
from footlights_transports.views.native.protocol import MAX_CURSORS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from footlights import Cast
    from footlights_transports.access.policy import AccessPolicy
    from footlights_transports.config.source import KeyPath
    from footlights_transports.config.views import ChatSettings
    from footlights_transports.views.mission.missions import MissionSettings

log = logging.getLogger("footlights.config")


@frozen(kw_only=True)
class Config:
    """A cast, and how to serve it."""

    host: str
    ws_port: int
    http_port: int
    ledger: Path
    trace: Path | None
    grace: float
    tls: ssl.SSLContext | None
    limits: Limits
    policy: AccessPolicy
    cast: Cast
    mission: MissionSettings
    chat: ChatSettings
    chat_agent: str | None = None
    redactor: Redactor = field(factory=Redactor)
    gentle_gc: bool = True
    tls_files: tuple[Path, Path] | None = None
    """The certificate and its key, from which `tls` was made."""
    settings: Mapping[str, object] = field(factory=dict[str, object], repr=False)
    """The settings that are set, by section and name, without tokens."""


def load_config(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    options: Mapping[KeyPath, object] | None = None,
    *,
    cast: Cast | None = None,
) -> Config:
    """Read the settings, and make what they describe. Raises `ConfigError` with all problems.

    With `cast`, the cast of the settings is not made again.
    """
    source = Source(file, environ or {}, options)
    _warn_of_unknown_variables(environ or {})
    for name in source.tree:
        if name not in SECTIONS:
            source.complain_unknown((name,), SECTIONS)
    server = {each.name: each.default for each in SERVER} | source.section(("server",), SERVER)
    tls_files = read_tls_files(source, server)
    tls = None if tls_files is None else load_tls(source, *tls_files)
    limits = source.checked(("limits",), LIMITS, Limits)
    _check_cursors(source, limits)
    policy = read_policy(source, server)
    chat_agent = None
    if cast is None:
        cast, chat_agent = read_cast(source)
        if cast is not None and server["chat_agent"] is not None:
            chat_agent = server["chat_agent"]
            if chat_agent not in cast.personas:
                source.complain(("server", "chat_agent"), f"is not a persona; there are: {', '.join(cast.personas)}.")
    mission = read_mission(source, server)
    chat = read_chat(source, server, environ or {}, BudgetConfig() if cast is None else cast.budget)
    redactor = read_redactor(source)
    _check_ports(source, server)
    ledger = _ledger(source, server)
    trace = source.folder(("server", "trace"), server["trace"]) if server["trace"] else None
    if source.problems or cast is None:
        raise ConfigError(source.problems)
    return Config(
        host=server["host"],
        ws_port=server["ws_port"],
        http_port=server["http_port"],
        ledger=ledger,
        trace=trace,
        grace=server["grace"],
        tls=tls,
        limits=limits,
        policy=policy,
        cast=cast,
        chat_agent=chat_agent,
        mission=mission,
        chat=chat,
        redactor=redactor,
        gentle_gc=server["gentle_gc"],
        tls_files=tls_files,
        settings=_settings(source),
    )


def _settings(source: Source) -> dict[str, object]:
    sections = {name: source.table((name,)) for name in source.tree if name != "tokens"}
    return {f"{section}.{name}": value for section, table in sections.items() for name, value in table.items()}


def _warn_of_unknown_variables(environ: Mapping[str, str]) -> None:
    """Not a problem: an orchestrator sets variables of its own for a service that is named footlights."""
    ours = [name for name in sorted(environ) if name.startswith(PREFIX) and SEPARATOR not in name]
    unknown = [name for name in ours if name not in (VARIABLE, CACHE_VARIABLE, CONTENT_KEYS_VARIABLE)]
    if unknown:
        log.warning("not settings: %s; a setting is written FOOTLIGHTS_SECTION__NAME", ", ".join(unknown))


def _check_cursors(source: Source, limits: Limits) -> None:
    """A client that resumes names every turn that it has received, and the protocol limits their number."""
    named = limits.replay_turns + limits.max_queued_turns + limits.max_concurrent_turns
    if named > MAX_CURSORS:
        source.complain(
            ("limits", "replay_turns"),
            f"is too much: with max_queued_turns and max_concurrent_turns a client that resumes could have to name "
            f"{named:,} turns, and may name {MAX_CURSORS:,}.",
        )


def _check_ports(source: Source, server: Mapping[str, Any]) -> None:
    if server["ws_port"] == server["http_port"] != 0:
        given = "http_port" if source.is_set(("server", "http_port")) else "ws_port"
        source.complain(("server", given), "is taken: ws_port and http_port must not be the same.")


def _ledger(source: Source, server: Mapping[str, Any]) -> Path:
    path = ("server", "ledger")
    if server["ledger"]:
        ledger = source.resolve(path, server["ledger"])
        if is_folder(ledger):
            source.complain(path, f"names {ledger}, which is a folder.")
        return ledger
    # Each game in a folder has its own: once there is a ledger, its world replaces that of the settings.
    return Path("footlights.ledger") if source.file is None else source.file.with_suffix(".ledger")
