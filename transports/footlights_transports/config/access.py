"""Access settings: the TLS certificate, the tokens and roles of users, and the policy made of them.

No problem repeats a token or the name of a user that could be one: they may have been swapped.
"""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Any

from footlights.errors import FootlightsError
from footlights.private_files import OTHERS, exposure
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.config.schema import USER, WIRE
from footlights_transports.config.source import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from footlights_transports.config.source import KeyPath, Source

_USER = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_MIN_TOKEN_CHARS = 16


def read_tls_files(source: Source, server: Mapping[str, Any]) -> tuple[Path, Path] | None:
    """The certificate and its key; None without TLS."""
    missing = [name for name in ("tls_cert", "tls_key") if not source.is_set(("server", name))]
    if len(missing) == 1:
        source.complain(("server",), f"needs {missing[0]} too, the path of a file.")
    if not server["tls_cert"] or not server["tls_key"]:
        return None
    cert, key = (source.resolve(("server", name), server[name]) for name in ("tls_cert", "tls_key"))
    return cert, key


def load_tls(source: Source, cert: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without a password function, OpenSSL would ask for a passphrase on the terminal.
        context.load_cert_chain(cert, key, password=lambda: b"")
        exposed = exposure(key, OTHERS)  # a group may share certificates: many systems have one for that
    except (OSError, ssl.SSLError) as error:
        source.complain(("server", "tls_cert"), f"and tls_key cannot be used: {_tls_flaw(cert, key, error)}.")
    else:
        if exposed is not None:
            source.complain(("server", "tls_key"), f"names {key}, {exposed}.")
    return context


def _tls_flaw(cert: Path, key: Path, error: OSError) -> str:
    """What OpenSSL does not say about these files, or says in words of its own."""
    held: list[bytes] = []
    for path in (cert, key):
        try:
            held.append(path.read_bytes())
        except OSError as unreadable:
            return f"{path}: {unreadable.strerror or type(unreadable).__name__}"
    if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
        return "the key is not that of the certificate"
    if b"-----BEGIN CERTIFICATE-----" not in held[0]:
        return "tls_cert has no certificate in PEM form"
    if b"PRIVATE KEY-----" not in held[1]:
        return "tls_key has no private key in PEM form"
    if b"ENCRYPTED" in held[1]:
        return "the key is encrypted. The server needs one without a passphrase"
    return "the certificate or the key is damaged"


def read_policy(source: Source, server: Mapping[str, Any]) -> AccessPolicy:
    limits = source.checked(("wire",), WIRE, WireLimits)
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
    """The roles of each user."""
    roles: dict[str, dict[str, bool]] = {}
    for name in source.table(("users",)):
        if name in tokens:
            roles[name] = source.section(("users", name), USER)
        elif len(name) < _MIN_TOKEN_CHARS:
            source.complain(("users", name), "has no token.")
        else:  # it may be a token in the wrong place
            source.complain(("users",), "has a user without a token.")
    return roles


def _tokens_in_environment(source: Source) -> dict[str, str]:
    tokens: dict[str, str] = {}
    for user in source.table(("tokens",)):
        path = ("tokens", user)
        token = source.text(path)
        flaw = _flaw(user, token)
        if source.is_in_file(path):
            _complain_of_token(source, path, "is a secret: it belongs in server.tokens_file or the environment.")
        elif flaw is not None:
            _complain_of_token(source, path, f"cannot be used: {flaw}.")
        else:
            tokens[user] = token
    return tokens


def _complain_of_token(source: Source, path: KeyPath, sentence: str) -> None:
    """Names the user only if the name cannot be a token."""
    if len(path[-1]) < _MIN_TOKEN_CHARS:
        source.complain(path, sentence)
    else:
        source.problems.append(Problem("settings", 0, f"One of the tokens {sentence}"))


def _tokens_in_file(source: Source, server: Mapping[str, Any]) -> dict[str, str]:
    path = ("server", "tokens_file")
    if not server["tokens_file"]:
        return {}
    file = source.resolve(path, server["tokens_file"])
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
        flaw = "the user occurs twice" if user in tokens else _flaw(user, token.strip())
        if flaw is not None:
            source.complain(path, f"names {file}, whose line {number} cannot be used: {flaw}.")
        tokens[user] = token.strip()
    if not tokens:
        source.complain(path, f"names {file}, which has no user.")
    return {user: token for user, token in tokens.items() if _flaw(user, token) is None}


def _flaw(user: str, token: str) -> str | None:
    """What is wrong with them, without repeating either."""
    if not _USER.fullmatch(user):
        return "a user is 1 to 32 lower-case letters, digits, _ or -"
    if len(token) < _MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        return f"a token is at least {_MIN_TOKEN_CHARS} visible ASCII characters"
    return None
