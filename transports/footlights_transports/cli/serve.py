"""`footlights serve`: its options and its output."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from footlights.errors import CommitUnknown, FootlightsError, InvalidCommand
from footlights_transports.cli.command_name import command_name
from footlights_transports.cli.game_file import found_game_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from footlights.authority.ledger.names import LedgerName
    from footlights_transports.config.config import Config
    from footlights_transports.server.serve import Opened, Server

app = typer.Typer()


@app.command()
def serve(
    config_file: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="A TOML file with settings; game.toml in this folder if any."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="The address to listen on; 127.0.0.1 by default.")
    ] = None,
    ws_port: Annotated[
        int | None, typer.Option(metavar="N", help="The WebSocket port; 7600 by default, 0 for any free one.")
    ] = None,
    http_port: Annotated[
        int | None, typer.Option(metavar="N", help="The HTTP port; 7601 by default, 0 for any free one.")
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="LEDGER",
            help="The ledger, a file or a URL; by default footlights.ledger, or game.ledger for game.toml.",
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write a trace of each turn, without its text, to this directory."),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="How long turns may run after SIGTERM or Ctrl-C; 5 by default."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="The processes over which worlds are spread; 1 by default, and not with TLS."),
    ] = None,
    dev: Annotated[
        bool,
        typer.Option("--dev", help="Print tracebacks of your own code, with what they quote. Not with tokens."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the settings; exits with 1 if there is a problem.")
    ] = False,
) -> None:
    """Serve a cast by WebSocket and HTTP.

    Without --config it serves game.toml in the current folder, or a demo tavern if there is none and nothing else is
    set.

    SIGTERM and Ctrl-C shut it down in order: turns may finish, clients are notified, nothing is lost. A second one ends
    it at once. SIGHUP reloads tokens, certificates, origins and the limits of users. Every setting can also come from
    the environment, such as FOOTLIGHTS_SERVER__WS_PORT. FOOTLIGHTS_LOG sets the log level: debug, info, warning or
    error.
    """
    gc.disable()  # until the server is open: collecting what is imported now takes a tenth of the start
    from footlights.failures import describe
    from footlights_transports.config.config import load_config
    from footlights_transports.config.source import ConfigError
    from footlights_transports.server.logs import VARIABLE, set_up_logs

    given = {
        "host": host,
        "ws_port": ws_port,
        "http_port": http_port,
        "ledger": ledger,
        "trace": trace,
        "grace": grace,
        "workers": workers,
    }
    config_file = config_file or found_game_file()
    try:
        set_up_logs(os.environ.get(VARIABLE, "warning").lower(), sys.stderr)
        options: dict[tuple[str, ...], object] = {
            ("server", name): value for name, value in given.items() if value is not None
        }
        config = load_config(config_file, os.environ, options)
        printing = _development(config) if dev else nullcontext()
        _check_folder(config.ledger)
        if check:
            _warn_of_world(config)
            typer.echo(f"{config_file or 'The settings'}: Configuration OK.")
            return
        from footlights_transports.server.serve import serve_here

        def announce(opened: Opened) -> None:
            typer.echo(summary(config, opened, config_file))
            gc.freeze()  # what exists now stays
            gc.enable()

        def closing(turns: int) -> None:
            runs = "1 turn runs" if turns == 1 else f"{turns} turns run"
            grace = f" {runs}, and may do so for {config.grace:g} s. Ctrl-C again ends it at once."
            _say(f"Footlights closes.{grace if turns else ''}")

        with printing:
            reread = partial(load_config, config_file, os.environ, options, cast=config.cast, worlds=config.worlds)
            serve_here(config, announce, reread, closing, server=_server(config, options, dev=dev))
        _say("Footlights is closed.")
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1 if check else 2) from None
    except FootlightsError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1 if check or isinstance(error, CommitUnknown) else 2) from None
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - a traceback contains messages, which may quote text of users
        typer.echo(f"The server failed: {describe(error)}", err=True)
        raise typer.Exit(1) from None
    finally:
        gc.unfreeze()
        gc.enable()


def _server(config: Config, options: Mapping[tuple[str, ...], object], *, dev: bool) -> Server | None:
    """What serves these settings: a router in front of workers, or this process itself."""
    if config.workers == 1:
        return None
    from footlights_transports.workers.server import route

    return partial(route, options=options, dev=dev)


def _say(line: str) -> None:
    with suppress(OSError):  # who started the server may be gone
        typer.echo(line)


def _check_folder(ledger: LedgerName) -> None:
    """Raises `InvalidCommand`."""
    if isinstance(ledger, Path) and not ledger.parent.is_dir():
        raise InvalidCommand(f"The ledger {ledger} cannot be made: there is no such folder. Make it, or name another.")


def _warn_of_world(config: Config) -> None:
    """Say on standard error if the ledger does not use the world of the settings. Raises `InvalidCommand`."""
    from footlights_transports.cli.ledger.world_patch import is_taken_in, world_in
    from footlights_transports.worlds.hosted import world_not_used

    if isinstance(config.ledger, Path) and not config.ledger.exists():
        return
    try:
        if not is_taken_in(config.ledger, config.cast.world):
            typer.echo(world_not_used(config, config.ledger, world_in(config.ledger).view()), err=True)
    except FootlightsError as error:
        raise InvalidCommand(f"{config.ledger}: {error}") from None


def _development(config: Config) -> AbstractContextManager[None]:
    """Development mode, as a context manager. Raises `InvalidCommand` if there are tokens."""
    from footlights_transports.cli.development import development_mode

    if config.policy.wants_tokens:
        raise InvalidCommand(
            "--dev prints what exceptions say, which may quote people, so it does not go with tokens. Leave it out, or "
            "remove the tokens: server.tokens_file, and FOOTLIGHTS_TOKENS__NAME in the environment."
        )
    return development_mode(sys.stderr)


def summary(config: Config, opened: Opened, file: Path | None = None) -> str:
    """The addresses and files of the server, and a command to try."""
    secure = "s" if config.tls else ""
    host = f"[{config.host}]" if ":" in config.host else config.host
    http = f"http{secure}://{host}:{opened.http_port}"
    ledger = config.ledger.absolute() if isinstance(config.ledger, Path) else config.ledger
    rows = {
        **({"Settings": str(file.absolute())} if file else {}),
        "Personas": ", ".join(config.cast.personas),
        "WebSocket": f"ws{secure}://{host}:{opened.ws_port}/v1",
        "HTTP": f"{http}/v1",
        "Ledger": f"{ledger} ({'new' if opened.epoch == 1 else 'continued'})",
        **({"Workers": str(config.workers)} if config.workers > 1 else {}),
        **({"Traces": str(config.trace.absolute())} if config.trace else {}),
    }
    lines = ["Footlights is open. Ctrl-C closes it.", *(f"  {name:<10} {where}" for name, where in rows.items())]
    token = " --token-env NAME" if config.policy.wants_tokens else ""
    talk = f"{command_name()} play --url ws{secure}://{host}:{opened.ws_port}{token}"
    return "\n".join([*lines, "Try one of these, which Ctrl-C ends:", f"  {talk}", f"  {one_liner(config, http)}"])


def one_liner(config: Config, http: str) -> str:
    """A turn in one line of shell."""
    curl = "curl -s"
    if config.tls:
        curl += " --cacert CERTIFICATE"
    if config.policy.wants_tokens:
        curl += ' -H "Authorization: Bearer $TOKEN"'
    begun = f"""s={http}/v1/sessions/$({curl} -X POST {http}/v1/sessions | cut -d'"' -f4)"""
    return f"""{begun}; {curl} --json '{{"input": "Hello"}}' $s/turns; {curl} -N $s/events"""
