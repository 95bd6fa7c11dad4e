"""All that `footlights serve` needs to know, from a TOML file, the environment and the command line.

Everything is made and checked here: what comes back can be served. Whatever is wrong is said at once, each with its
line; values are not repeated.
"""

from __future__ import annotations

import logging
import re
import ssl
from os.path import exists, isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from footlights.errors import FootlightsError
from footlights.limits import Limits
from footlights.models.budget import BudgetConfig
from footlights.private_files import OTHERS, exposure
from footlights.redaction.redactor import Redactor
from footlights_actors.models.local.weights import CACHE_VARIABLE
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.config.cast import read_cast
from footlights_transports.config.chat import read_chat
from footlights_transports.config.dexi import read_redactor
from footlights_transports.config.read import checked, complain_unknown, section
from footlights_transports.config.schema import LIMITS, SECTIONS, SERVER, USER, WIRE
from footlights_transports.config.source import PREFIX, SEPARATOR, ConfigError, Problem, Source
from footlights_transports.server.logs import VARIABLE
from footlights_transports.views.kgent.pure.settings import CONTENT_KEYS_VARIABLE
from footlights_transports.views.mission.missions import MissionSettings
from footlights_transports.views.mission.voice import EspeakVoice, VoiceError
from footlights_transports.views.native.protocol import MAX_CURSORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights import Cast
    from footlights_transports.config.chat import ChatSettings
    from footlights_transports.config.source import KeyPath

__all__ = ["Config", "ConfigError", "load_config"]

log = logging.getLogger("footlights.config")

_USER = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_MIN_TOKEN_CHARS = 16

ANALYST = "analyst"


@frozen(kw_only=True)
class Config:
    """What to serve, and where."""

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
    """What was set, by section and name, without tokens."""


def load_config(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    options: Mapping[KeyPath, object] | None = None,
    *,
    cast: Cast | None = None,
) -> Config:
    """Read the settings, and make what they describe. Raises `ConfigError` with all that is wrong.

    If there is a cast already, that of the settings is not made again.
    """
    source = Source(file, environ or {}, options)
    _warn_of_strangers(environ or {})
    for name in source.tree:
        if name not in SECTIONS:
            complain_unknown(source, (name,), SECTIONS)
    server = {each.name: each.default for each in SERVER} | section(source, ("server",), SERVER)
    tls = _tls(source, server)
    limits = checked(source, ("limits",), LIMITS, Limits)
    _check_cursors(source, limits)
    policy = _policy(source, server)
    chat_agent = None
    if cast is None:
        cast = read_cast(source)
        chat_agent = None if cast is None else _chat_agent(source, server, cast)
    mission = _mission(source, server)
    chat = read_chat(source, server, environ or {}, BudgetConfig() if cast is None else cast.budget)
    redactor = read_redactor(source)
    _check_ports(source, server)
    ledger, trace = _ledger(source, server), _trace(source, server)
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
        tls_files=None if tls is None else (_path(source, server, "tls_cert"), _path(source, server, "tls_key")),
        settings=_settings(source),
    )


def _settings(source: Source) -> dict[str, object]:
    sections = {name: source.table((name,)) for name in source.tree if name != "tokens"}
    return {f"{section}.{name}": value for section, table in sections.items() for name, value in table.items()}


def _warn_of_strangers(environ: Mapping[str, str]) -> None:
    """Not a problem: an orchestrator sets variables of its own for a service that is named like us."""
    ours = [name for name in sorted(environ) if name.startswith(PREFIX) and SEPARATOR not in name]
    strangers = [name for name in ours if name not in (VARIABLE, CACHE_VARIABLE, CONTENT_KEYS_VARIABLE)]
    if strangers:
        log.warning("no settings: %s; a setting is written FOOTLIGHTS_SECTION__NAME", ", ".join(strangers))


def _check_cursors(source: Source, limits: Limits) -> None:
    """One who comes back names every turn that it has, and no server takes more names than so many."""
    named = limits.replay_turns + limits.max_queued_turns + limits.max_concurrent_turns
    if named > MAX_CURSORS:
        source.complain(
            ("limits", "replay_turns"),
            f"is too much: with max_queued_turns and max_concurrent_turns a client that comes back could have to name "
            f"{named:,} turns, and may name {MAX_CURSORS:,}.",
        )


def _chat_agent(source: Source, server: Mapping[str, Any], cast: Cast) -> str | None:
    named: str | None = server["chat_agent"]
    if named is None:
        return ANALYST if ANALYST in cast.personas else None
    if named not in cast.personas:
        source.complain(("server", "chat_agent"), f"is no persona; there are: {', '.join(cast.personas)}.")
    return named


def _mission(source: Source, server: Mapping[str, Any]) -> MissionSettings:
    if not server["voice_folder"]:
        return MissionSettings(replay=server["mission_replay"])
    folder = _path(source, server, "voice_folder")
    if _is_there(folder) and not _is_folder(folder):
        source.complain(("server", "voice_folder"), f"names {folder}, which is no folder.")
    try:
        voice = EspeakVoice(folder)
    except VoiceError as error:
        source.complain(("server", "voice_folder"), f"cannot be used: {error}")
        return MissionSettings()
    return MissionSettings(voice=voice, replay=server["mission_replay"])


def _check_ports(source: Source, server: Mapping[str, Any]) -> None:
    if server["ws_port"] == server["http_port"] != 0:
        given = "http_port" if source.is_set(("server", "http_port")) else "ws_port"
        source.complain(("server", given), "is taken: ws_port and http_port must not be the same.")


def _ledger(source: Source, server: Mapping[str, Any]) -> Path:
    if server["ledger"]:
        ledger = _path(source, server, "ledger")
        if _is_folder(ledger):
            source.complain(("server", "ledger"), f"names {ledger}, which is a folder.")
        return ledger
    # Not the same one for every game in a folder: once there is a ledger, it is its world that counts.
    return Path("footlights.ledger") if source.file is None else source.file.with_suffix(".ledger")


def _trace(source: Source, server: Mapping[str, Any]) -> Path | None:
    if not server["trace"]:
        return None
    trace = _path(source, server, "trace")
    if _is_there(trace) and not _is_folder(trace):
        source.complain(("server", "trace"), f"names {trace}, which is no folder.")
    return trace


def _is_there(path: Path) -> bool:
    return exists(path)  # noqa: PTH110 - Path's own raises for a path that is too long, or forbidden


def _is_folder(path: Path) -> bool:
    return isdir(path)  # noqa: PTH112 - as above


def _path(source: Source, server: Mapping[str, Any], name: str) -> Path:
    return source.resolve(("server", name), server[name])


def _tls(source: Source, server: Mapping[str, Any]) -> ssl.SSLContext | None:
    missing = [name for name in ("tls_cert", "tls_key") if not source.is_set(("server", name))]
    if len(missing) == 1:
        source.complain(("server",), f"needs {missing[0]} too, the path of a file.")
    if not server["tls_cert"] or not server["tls_key"]:
        return None
    key = _path(source, server, "tls_key")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # A key that wants a passphrase would ask for it on the terminal, and a server has none.
        context.load_cert_chain(_path(source, server, "tls_cert"), key, password=lambda: b"")
        exposed = exposure(key, OTHERS)  # a group may share certificates: many systems have one for that
    except (OSError, ssl.SSLError) as error:
        source.complain(
            ("server", "tls_cert"), f"and tls_key cannot be used: {error.strerror or type(error).__name__}."
        )
    else:
        if exposed is not None:
            source.complain(("server", "tls_key"), f"names {key}, {exposed}.")
    return context


# -- who may connect


def _policy(source: Source, server: Mapping[str, Any]) -> AccessPolicy:
    limits = checked(source, ("wire",), WIRE, WireLimits)
    tokens = {**_tokens_in_file(source, server), **_tokens_in_environment(source)}
    if len(set(tokens.values())) < len(tokens):
        sentence = "has one token for two users."
        if server["tokens_file"]:
            source.complain(("server", "tokens_file"), sentence)
        else:
            source.problems.append(Problem("environment", 0, f"tokens {sentence}"))
        tokens = {}
    roles = _roles(source, tokens)
    try:
        policy = AccessPolicy(tokens, roles=roles, origins=server["origins"], limits=limits)
    except FootlightsError as error:
        source.complain(("server", "origins"), f"is refused: {error}")
        policy = AccessPolicy(tokens, roles=roles, limits=limits)
    try:
        policy.check_address(server["host"])
    except FootlightsError as error:
        source.complain(("server", "host"), f"is refused: {error}")
    return policy


def _roles(source: Source, tokens: Mapping[str, str]) -> dict[str, dict[str, bool]]:
    """What each user may do besides playing."""
    roles: dict[str, dict[str, bool]] = {}
    for name in source.table(("users",)):
        if name in tokens:
            roles[name] = section(source, ("users", name), USER)
        elif len(name) < _MIN_TOKEN_CHARS:
            source.complain(("users", name), "has no token.")
        else:  # it may be a token in the wrong place
            source.complain(("users",), "has somebody who has no token.")
    return roles


def _tokens_in_environment(source: Source) -> dict[str, str]:
    tokens: dict[str, str] = {}
    for user in source.table(("tokens",)):
        path = ("tokens", user)
        token = source.text(path)
        flaw = _flaw(user, token)
        if source.is_in_file(path):
            _complain_of_token(source, path, "is a secret: it belongs into server.tokens_file or the environment.")
        elif flaw is not None:
            _complain_of_token(source, path, f"cannot be used: {flaw}.")
        else:
            tokens[user] = token
    return tokens


def _complain_of_token(source: Source, path: KeyPath, sentence: str) -> None:
    """The user is named only if that can be no token: they may stand in each other's place."""
    if len(path[-1]) < _MIN_TOKEN_CHARS:
        source.complain(path, sentence)
    else:
        source.problems.append(Problem("settings", 0, f"One of the tokens {sentence}"))


def _tokens_in_file(source: Source, server: Mapping[str, Any]) -> dict[str, str]:
    path = ("server", "tokens_file")
    if not server["tokens_file"]:
        return {}
    file = _path(source, server, "tokens_file")
    try:
        exposed = exposure(file)
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        source.complain(path, f"names {file}, which cannot be read: {why}.")
        return {}
    if exposed is not None:
        source.complain(path, f"names {file}, {exposed}.")
    tokens: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        user, _, token = line.strip().partition(" ")
        if not user or user.startswith("#"):
            continue
        flaw = "a user stands there twice" if user in tokens else _flaw(user, token.strip())
        if flaw is not None:
            source.complain(path, f"names {file}, whose line {number} cannot be used: {flaw}.")
        tokens[user] = token.strip()
    if not tokens:
        source.complain(path, f"names {file}, in which there is no user.")
    return {user: token for user, token in tokens.items() if _flaw(user, token) is None}


def _flaw(user: str, token: str) -> str | None:
    """What is wrong, without a word of either: they may stand in each other's place."""
    if not _USER.fullmatch(user):
        return "a user is 1 to 32 lower-case letters, digits, _ or -"
    if len(token) < _MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        return f"a token is at least {_MIN_TOKEN_CHARS} visible ASCII characters"
    return None
