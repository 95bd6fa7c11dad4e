"""Own server: `footlights serve` in a process and a folder of its own, with two users."""

from __future__ import annotations

import re
import secrets
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.demo.tavern.innkeeper import innkeeper
from footlights_actors.models.scripted import ScriptedModel
from footlights_bench.attack.target import CannotAttack, Target, loopback_address
from footlights_bench.lib.processes import clean_environment

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from footlights.cast import Cast

SLOW_PERSONA = "analyst"
_USERS = ("flooder", "bystander")
_SECONDS_TO_START = 30
_SECONDS_TO_END = 20
_ANNOUNCED = re.compile(rb"(ws|http)://127\.0\.0\.1:[0-9]+(?=/v1$)", re.MULTILINE)


def cast() -> Cast:
    """The tavern with an innkeeper that answers at once. Turns of its analyst stay open for minutes."""
    return tavern_cast(pace=5, load_seconds=0, tool_seconds=0, model=ScriptedModel(innkeeper, model_id="innkeeper"))


_CAST_SETTINGS = f'[cast]\nmake = "{__name__}:cast"\n'


@frozen
class OwnServer:
    """A running server, with its process, its folder and its log."""

    target: Target
    process: trio.Process
    folder: Path

    def log_bytes(self) -> int:
        return (self.folder / "log").stat().st_size

    def ended(self) -> str | None:
        code = self.process.poll()
        return None if code is None else f"The server's process ended with {code}."

    def write_tokens(self, tokens: Mapping[str, str]) -> None:
        _write_private(self.folder / "tokens", tokens)


def new_tokens() -> dict[str, str]:
    return {user: secrets.token_urlsafe(24) for user in _USERS}


def _write_private(path: Path, tokens: Mapping[str, str]) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text("".join(f"{user} {token}\n" for user, token in tokens.items()), encoding="utf-8")


@asynccontextmanager
async def own_server(
    settings: str = "", *, with_tokens: bool = True, trace: bool = False, grace: int = 0
) -> AsyncGenerator[OwnServer]:
    """Start a server on free ports. `settings` are TOML tables besides `[server]`. Raises `CannotAttack`."""
    with TemporaryDirectory(prefix="footlights-attack-") as place:
        folder = Path(place)
        tokens = new_tokens() if with_tokens else {}
        lines = ["[server]", "ws_port = 0", "http_port = 0", 'ledger = "attack.ledger"', f"grace = {grace}"]
        if with_tokens:
            _write_private(folder / "tokens", tokens)
            lines.append('tokens_file = "tokens"')
        if trace:
            lines.append('trace = "trace"')
        (folder / "attack.toml").write_text("\n".join([*lines, _CAST_SETTINGS, settings]), encoding="utf-8")
        with (folder / "log").open("wb") as log:
            process = await trio.lowlevel.open_process(
                serve_command("attack.toml"),
                cwd=folder,
                env=clean_environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        try:
            addresses = await _announced(process, folder)
            yield OwnServer(
                Target(
                    websocket=loopback_address(addresses["ws"], scheme="ws"),
                    http=loopback_address(addresses["http"], scheme="http"),
                    token=tokens.get("flooder"),
                    other_token=tokens.get("bystander"),
                    pid=process.pid,
                    slow_persona=SLOW_PERSONA,
                ),
                process,
                folder,
            )
        finally:
            await _end(process)


def serve_command(config: str) -> list[str]:
    return [sys.executable, "-m", "footlights_transports", "serve", "--config", config]


async def _announced(process: trio.Process, folder: Path) -> dict[str, str]:
    assert process.stdout is not None
    said = b""
    with trio.move_on_after(_SECONDS_TO_START):
        while data := await process.stdout.receive_some():
            said += data
            found = {match[1].decode(): match[0].decode() for match in _ANNOUNCED.finditer(said)}
            if len(found) == 2:
                return found
    why = (folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:].strip()
    raise CannotAttack(f"footlights serve did not start: {why or 'it said nothing'}")


async def _end(process: trio.Process) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    with trio.CancelScope(shield=True):
        with trio.move_on_after(_SECONDS_TO_END):
            await process.wait()
        if process.poll() is None:
            process.kill()
        await process.wait()
