"""Address of a ledger in PostgreSQL: the server, the database and the world in it, as a URL.

    postgresql://USER:PASSWORD@HOST:PORT/DATABASE?world=NAME

Other parameters of the query are those of libpq, such as `sslmode`. The password is in no text that it shows: neither
`str` nor `repr` has it, nor any error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import evolve, field, frozen

from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCHEMES = ("postgresql://", "postgres://")
_WORLD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PORT = re.compile(r"[0-9]{1,5}")
_SECRETS = ("password", "sslpassword", "oauth_client_secret")
DEFAULT_WORLD = "default"
HIDDEN = "***"


def is_url(name: object) -> bool:
    """Whether this names a ledger in PostgreSQL, and not a file."""
    return isinstance(name, str) and name.startswith(_SCHEMES)


def check_world_name(name: str) -> None:
    """Raises `InvalidCommand`."""
    if not _WORLD.fullmatch(name):
        raise InvalidCommand(
            "The name of a world has 1 to 64 characters: ASCII letters and digits, and after the first also _ . and -."
        )


@frozen
class LedgerUrl:
    """Where a ledger is, without a connection to it."""

    shown: str
    """The URL without secrets."""
    world: str
    parameters: Mapping[str, str] = field(repr=False)
    """The parameters of libpq, with secrets."""

    def __str__(self) -> str:
        return f"{self.shown}?world={self.world}"

    def of_world(self, world: str) -> LedgerUrl:
        """The address of another world in the same database. Raises `InvalidCommand`."""
        check_world_name(world)
        return evolve(self, world=world)

    def without_secrets(self, text: str) -> str:
        """A text, such as a message of the server, without the secrets that may be in it."""
        for name in _SECRETS:
            if secret := self.parameters.get(name):
                text = text.replace(secret, HIDDEN)
        return text


def parse_url(url: str) -> LedgerUrl:
    """Read an address. Raises `InvalidCommand`, which quotes nothing of it."""
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise InvalidCommand(f"The URL of the ledger cannot be read. {_FORM}") from None
    if not is_url(url) or parts.fragment or parts.path.count("/") > 1 or "@" in parts.path:
        raise InvalidCommand(f"The URL of the ledger cannot be read. {_FORM}")
    world = query.pop("world", DEFAULT_WORLD)
    check_world_name(world)
    login, _, places = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    hosts, ports = zip(*map(_place, places.split(",")), strict=True)
    database = unquote(parts.path.removeprefix("/"))
    found = {
        "user": unquote(user),
        "password": unquote(password),
        "host": ",".join(hosts),
        "port": ",".join(ports),
        "dbname": database,
    }
    shown = f"postgresql://{f'{user}@' if user else ''}{places}/{parts.path.removeprefix('/')}"
    return LedgerUrl(shown, world, {name: value for name, value in found.items() if value.strip(",")} | query)


def _place(place: str) -> tuple[str, str]:
    """The host and the port of one server."""
    host, bracket, port = place.rpartition("]")
    host, port = (host[1:], port.removeprefix(":")) if bracket else place.partition(":")[::2]
    if port and not _PORT.fullmatch(port):
        raise InvalidCommand(f"The port in the URL of the ledger is not a number. {_FORM}")
    return unquote(host), port


_FORM = (
    "It has the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE?world=NAME, with % and two hexadecimal digits for "
    "each of / : @ ? # % in a password."
)
