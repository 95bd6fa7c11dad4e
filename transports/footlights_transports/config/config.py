"""Config: everything that `footlights serve` needs, made from a TOML file, the environment and the command line.

`load_config` makes and checks all of it, so that a `Config` can be served. It reports all problems at once, each with
its line, and without the value.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from footlights.authority.ledger.address import is_url, parse_url
from footlights.checks import listed
from footlights.errors import InvalidCommand
from footlights.limits import Limits
from footlights_actors.models.local.weights import CACHE_VARIABLE
from footlights_transports.config.access import load_tls, read_policy, read_tls_files
from footlights_transports.config.cast import read_cast
from footlights_transports.config.redaction import secret_filter
from footlights_transports.config.schema import LIMITS, REDACTION, SECTIONS, SERVER
from footlights_transports.config.source import PREFIX, SEPARATOR, ConfigError, Source, is_folder
from footlights_transports.config.views import VIEWS
from footlights_transports.config.worlds import WorldsConfig, read_worlds
from footlights_transports.server.logs import VARIABLE

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping, Sequence

    from footlights import Cast
    from footlights.authority.ledger.names import LedgerName
    from footlights_transports.access.policy import AccessPolicy
    from footlights_transports.config.source import KeyPath
    from footlights_transports.views.base.view import View

log = logging.getLogger("footlights.config")


@frozen(kw_only=True)
class Config:
    """A cast, and how to serve it."""

    host: str
    ws_port: int
    http_port: int
    ledger: LedgerName
    trace: Path | None
    grace: float
    tls: ssl.SSLContext | None
    limits: Limits
    policy: AccessPolicy
    cast: Cast
    views: tuple[View, ...]
    worlds: WorldsConfig
    """The worlds beside the main one."""
    workers: int = 1
    gentle_gc: bool = True
    tls_files: tuple[Path, Path] | None = None
    """The certificate and its key, from which `tls` was made."""
    file: Path | None = None
    """The file with the settings."""
    settings: Mapping[str, object] = field(factory=dict[str, object], repr=False)
    """The settings that are set, by section and name, without tokens."""


def load_config(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    options: Mapping[KeyPath, object] | None = None,
    *,
    cast: Cast | None = None,
    worlds: WorldsConfig | None = None,
    views: Sequence[type[View]] = VIEWS,
) -> Config:
    """Read the settings, and make what they describe. Raises `ConfigError` with all problems.

    With `cast`, the cast of the settings is not made again, and with `worlds`, those of its templates are not. `views`
    are the views to serve.
    """
    source = Source(file, environ or {}, options)
    _warn_of_unknown_variables(environ or {}, views)
    sections = [*SECTIONS, *(section for each in views for section in each.sections)]
    for name in source.tree:
        if name not in sections:
            source.complain_unknown((name,), sections)
    server = {each.name: each.default for each in SERVER} | source.section(("server",), SERVER)
    tls_files = read_tls_files(source, server)
    tls = None if tls_files is None else load_tls(source, *tls_files)
    limits = source.checked(("limits",), LIMITS, Limits)
    policy = read_policy(source, server)
    made = read_cast(source) if cast is None else None
    configured = tuple(each.read(source, made, limits) for each in views)
    cast = _cover_views(source, cast or made, configured)
    _check_ports(source, server)
    _check_workers(source, server, has_tls=tls_files is not None)
    ledger = _ledger(source, server)
    variables = {name: (environ or {})[name] for each in views for name in each.variables if name in (environ or {})}
    its_worlds = read_worlds(
        source, ledger, lambda named, its_cast: load_config(named, variables, cast=its_cast, views=views), worlds
    )
    trace = source.folder(("server", "trace"), server["trace"]) if server["trace"] else None
    if source.problems or cast is None:
        has_tokens = source.is_set(("tokens",)) or source.is_set(("server", "tokens_file"))  # even if they are refused
        raise ConfigError(source.problems, () if has_tokens else source.tracebacks)
    if made is not None:
        _warn_without_consent(made)
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
        views=configured,
        worlds=its_worlds,
        workers=server["workers"],
        gentle_gc=server["gentle_gc"],
        tls_files=tls_files,
        file=file,
        settings=_settings(source),
    )


def _cover_views(source: Source, cast: Cast | None, views: Sequence[View]) -> Cast | None:
    """The cast with an output filter, if any view is to be covered by one. A cast that has one keeps it."""
    given = source.section(("redaction",), REDACTION)
    names = {view.name(): view for view in views}
    for name in set(given.get("views", ())) - names.keys():
        source.complain(("redaction", "views"), f"names {name}, which is no view; there are: {listed(names)}.")
    covered = [view for name, view in names.items() if name in given.get("views", ())]
    if not covered or cast is None:
        return cast
    output_filter = cast.output_filter or secret_filter(source, given)
    for view in covered:
        view.output_filter = output_filter
    return evolve(cast, output_filter=output_filter)


def _settings(source: Source) -> dict[str, object]:
    sections = {name: source.table((name,)) for name in source.tree if name != "tokens"}
    return {f"{section}.{name}": value for section, table in sections.items() for name, value in table.items()}


def _warn_of_unknown_variables(environ: Mapping[str, str], views: Iterable[type[View]]) -> None:
    """Not a problem: an orchestrator sets variables of its own for a service that is named footlights."""
    ours = [name for name in sorted(environ) if name.startswith(PREFIX) and SEPARATOR not in name]
    known = {VARIABLE, CACHE_VARIABLE, *(variable for each in views for variable in each.variables)}
    unknown = [name for name in ours if name not in known]
    if unknown:
        log.warning("not settings: %s; a setting is written FOOTLIGHTS_SECTION__NAME", ", ".join(unknown))


def _warn_without_consent(cast: Cast) -> None:
    """Not a problem: each session may give consent."""
    name, persona = next(iter(cast.personas.items()))
    models = persona.models or tuple(cast.models)[:1]
    if models and not cast.remote_models and all(cast.models[each].traits.remote for each in models):
        log.warning(
            "%s has only remote models, and sessions give no consent to them by default: remote_models = true in "
            "[cast] gives it",
            name,
        )


def _check_ports(source: Source, server: Mapping[str, Any]) -> None:
    if server["ws_port"] == server["http_port"] != 0:
        given = "http_port" if source.is_set(("server", "http_port")) else "ws_port"
        source.complain(("server", given), "is taken: ws_port and http_port must not be the same.")


def _check_workers(source: Source, server: Mapping[str, Any], *, has_tls: bool) -> None:
    if server["workers"] == 1:
        return
    if sys.platform == "win32":
        source.complain(("server", "workers"), "must be 1 here: Windows cannot pass a connection to another process.")
    elif has_tls:
        source.complain(
            ("server", "workers"),
            "does not go with TLS: a router cannot read which world an encrypted request is for. Let TLS end in front, "
            "in a proxy, and leave tls_cert and tls_key out; or leave workers out.",
        )


def _ledger(source: Source, server: Mapping[str, Any]) -> LedgerName:
    path = ("server", "ledger")
    if is_url(server["ledger"]):
        try:
            return parse_url(server["ledger"])
        except InvalidCommand as error:
            source.complain(path, f"is not the URL of a ledger. {error}")
            return Path("none.ledger")
    if server["ledger"]:
        ledger = source.resolve(path, server["ledger"])
        if is_folder(ledger):
            source.complain(path, f"names {ledger}, which is a folder.")
        return ledger
    # Each game in a folder has its own: once there is a ledger, its world replaces that of the settings.
    return Path("footlights.ledger") if source.file is None else source.file.with_suffix(".ledger")
