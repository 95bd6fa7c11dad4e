"""Operation of a server: refused settings, private files, SIGHUP and draining, each with a server of its own."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.raw.http import ask
from footlights_bench.attack.raw.sockets import open_connection
from footlights_bench.attack.raw.websocket import handshake, open_websocket, read_handshake
from footlights_bench.attack.results import Result
from footlights_bench.attack.server import new_tokens, own_server, serve_command
from footlights_bench.attack.users import NotServed, run_command
from footlights_bench.lib.processes import clean_environment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from footlights_bench.attack.server import OwnServer

_SECONDS_TO_TRACE = 3
_SECONDS_TO_DIE = 1
_GRACE = 3


async def _checked(name: str, settings: str, *, tokens_mode: int | None = None) -> Result:
    """`footlights serve --check` must refuse these settings."""
    with TemporaryDirectory(prefix="footlights-attack-") as place:
        folder = Path(place)
        (folder / "attack.toml").write_text(settings, encoding="utf-8")
        if tokens_mode is not None:
            tokens = folder / "tokens"
            tokens.write_text("".join(f"{user} {token}\n" for user, token in new_tokens().items()), encoding="utf-8")
            tokens.chmod(tokens_mode)
        checked = await trio.run_process(
            [*serve_command("attack.toml"), "--check"],
            cwd=folder,
            env=clean_environment(),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    failures = [] if checked.returncode == 1 else ["footlights serve --check passes these settings."]
    return Result(name, "--check exits with 1", f"it exits with {checked.returncode}", failures)


async def any_origin_without_tokens(name: str) -> Result:
    return await _checked(name, '[server]\norigins = ["*"]\n')


async def readable_tokens(name: str) -> Result:
    return await _checked(name, '[server]\ntokens_file = "tokens"\n', tokens_mode=0o644)


async def private_files(name: str) -> Result:
    async with own_server(trace=True) as server:
        async with open_websocket(server.target.websocket, server.target.token) as socket:
            session_id = (await run_command(socket, "start"))["session_id"]
            turn = await run_command(socket, "begin_turn", session_id=session_id, input="Good evening.")
            await run_command(socket, "finalize", session_id=session_id, turn_id=turn["turn_id"])
        with trio.move_on_after(_SECONDS_TO_TRACE):
            while not any((server.folder / "trace").rglob("*.jsonl")):  # noqa: ASYNC110
                await trio.sleep(0.1)
        found = [path.relative_to(server.folder) for path in server.folder.rglob("*") if path.is_file()]
        written = [path for path in found if path.parts[0] == "trace" or "ledger" in path.name]
        modes = {str(path): stat.S_IMODE((server.folder / path).stat().st_mode) for path in written}
    open_to_others = {path: mode for path, mode in modes.items() if mode & 0o077}
    failures = [f"{path} has the mode {mode:04o}." for path, mode in sorted(open_to_others.items())]
    return Result(name, "mode 0600", f"{len(modes)} files, {len(open_to_others)} readable by others", failures)


async def websocket_host(name: str) -> Result:
    """Without tokens the server refuses other host names, against DNS rebinding by a page of another site."""
    async with own_server(with_tokens=False) as server, open_connection(server.target.websocket) as connection:
        await connection.send(handshake(server.target.websocket, None, changed={"Host": "attacker.example"}))
        response = await read_handshake(connection)
    status = None if response is None else response.status
    failures = [] if status in (400, 403, 421) else ["A WebSocket handshake with the Host of another site is accepted."]
    return Result(name, "403, as over HTTP", f"status {status}", failures)


async def reload(name: str) -> Result:
    """SIGHUP: a new token works; a removed one does not, and its connections are closed; others stay open."""
    failures: list[str] = []
    async with own_server() as server:
        target, tokens = server.target, new_tokens()
        assert target.token is not None
        assert target.other_token is not None
        async with (
            open_websocket(target.websocket, target.token) as revoked,
            open_websocket(target.websocket, target.other_token) as kept,
        ):
            server.write_tokens({"bystander": target.other_token, "newcomer": tokens["flooder"]})
            os.kill(server.process.pid, signal.SIGHUP)
            closed = await revoked.connection.receive_until_closed()
            with trio.move_on_after(_SECONDS_TO_DIE):
                await server.process.wait()
            if (ended := server.ended()) is not None:
                return Result(name, "tokens are reloaded", ended, [f"{ended} SIGHUP must reload the settings."])
            if not closed:
                failures.append("The connection of a removed token is still open.")
            try:
                await run_command(kept, "ping")
            except NotServed as refused:
                failures.append(f"The connection of another user suffered: {refused}.")
        for token, expected in [(tokens["flooder"], 200), (target.token, 401)]:
            response = await ask(target.http, "GET", "/v1/world", token=token)
            if response is None or response.status != expected:
                seen = "nothing" if response is None else response.status
                which = "new" if expected == 200 else "revoked"
                failures.append(f"The {which} token got {seen} and not {expected}.")
    return Result(name, "tokens are reloaded", "reloaded" if not failures else "not reloaded", failures)


async def draining(name: str) -> Result:
    """/readyz tells a load balancer that the server is draining, while a turn may still finish."""
    async with own_server(grace=_GRACE) as server:
        before = await _readiness(server)
        async with open_websocket(server.target.websocket, server.target.token) as socket:
            session_id = (await run_command(socket, "start"))["session_id"]
            slow = {"persona": server.target.slow_persona}
            await run_command(socket, "begin_turn", session_id=session_id, input="Report at length.", params=slow)
            server.process.terminate()
            await trio.sleep(_GRACE / 3)
            after = await _readiness(server)
        server.process.terminate()
    failures = [f"GET /readyz got {before} before."] if before != 200 else []
    failures += ["GET /readyz got 200 while the server was draining."] if after == 200 else []
    return Result(name, "200, then no more", f"{before}, then {after}", failures)


async def _readiness(server: OwnServer) -> int | None:
    """None if there was no answer, which a load balancer understands too."""
    try:
        response = await ask(server.target.http, "GET", "/readyz")
    except OSError:
        return None
    return None if response is None else response.status


OPERATION: Mapping[str, Callable[[str], Awaitable[Result]]] = {
    "operation/any-origin-without-tokens": any_origin_without_tokens,
    "operation/tokens-readable-by-others": readable_tokens,
    "operation/private-files": private_files,
    "operation/websocket-host": websocket_host,
    "operation/sighup": reload,
    "operation/readyz-while-draining": draining,
}
