"""`footlights play`: its options, and the game and the form of play that they select."""

from __future__ import annotations

import os
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, cast

import typer

from footlights.errors import InvalidCommand
from footlights_actors.models.local.weights import WeightsNotFetched
from footlights_transports.cli.exit_codes import exit_on_refusal
from footlights_transports.cli.game_file import GAME_FILE, found_game_file
from footlights_transports.cli.models import command as cli_models
from footlights_transports.cli.models.auto import AUTO, choose_automatically
from footlights_transports.cli.models.choice import SCRIPTED, notice_about, tavern_with

if TYPE_CHECKING:
    from io import TextIOWrapper

    from footlights import Cast
    from footlights_transports.cli.play.standard_io import Opening

app = typer.Typer()


@app.command()
def play(
    config_file: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Play the game of this file; game.toml in this folder if any."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Play on the server at ws://HOST:PORT or wss://HOST:PORT."),
    ] = None,
    token_env: Annotated[
        str | None,
        typer.Option("--token-env", metavar="NAME", help="The environment variable that holds the token for --url."),
    ] = None,
    persona: Annotated[
        str | None, typer.Option(metavar="NAME", help="The persona to talk to; the first of the game if not set.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Play the tavern with this model: innkeeper (a script), auto (your own model server, or else the "
            "script), smollm2 or a GGUF file (both local), openai:NAME or anthropic:NAME.",
        ),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The server of openai:NAME or anthropic:NAME.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="DIR", help="Write a trace of each turn, without its text, to this directory."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help='For scripts: lines like {"say": "..."} or {"cancel": true} in, events out.'),
    ] = False,
) -> None:
    """Talk to an NPC: of your game, of a server, or the innkeeper of a small tavern.

    Without options it plays game.toml in the current folder, or the tavern if there is none. The world begins anew
    each time: commits are kept in memory. Ctrl-C interrupts the NPC in mid-sentence; at the prompt it discards the
    line, and a second one leaves, as Ctrl-D does. /help shows what else you can type.

    When input or output is not a terminal, each line of the input is a turn, the output is plain text, the tavern
    answers without delays, and the exit code is 1 if a turn was refused or interrupted. With --json it is 1 if a
    line was refused.
    """
    from footlights_transports.cli.play.standard_io import play_here
    from footlights_transports.cli.screen import is_terminal

    # A character that the terminal lacks is replaced, instead of a traceback.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="replace")
    with exit_on_refusal():
        if sum(each is not None for each in (config_file, url, model)) > 1:
            raise InvalidCommand("--config, --url and --model each name a game to play: use one of them.")
        if token_env is not None and url is None:
            raise InvalidCommand("--token-env belongs to --url.")
        if url is not None:
            if trace is not None:
                raise InvalidCommand("--trace is for games of this process; the server has a setting for its own.")
            opening = _on_server(url, token_env, persona)
        elif model is None and base_url is None and (file := config_file or found_game_file()) is not None:
            opening = _of_file(file, is_found=config_file is None, trace=trace, persona=persona)
        else:
            if model is not None and (file := found_game_file()) is not None:
                typer.echo(f"{file} is not played: --model plays the tavern.", err=True)
            elif model is None and is_terminal():
                typer.echo(f"There is no {GAME_FILE} in this folder, so you play the tavern.")
            opening = _tavern(model or SCRIPTED, base_url, trace=trace, persona=persona)
        code = play_here(opening, as_json=as_json)
    raise typer.Exit(code)


def _of_file(file: Path, *, is_found: bool, trace: Path | None, persona: str | None) -> Opening:
    from footlights_transports.cli.play.explain import speaker_name
    from footlights_transports.cli.play.games import open_local_game
    from footlights_transports.cli.play.standard_io import Opening
    from footlights_transports.cli.screen import printable
    from footlights_transports.config.config import load_config
    from footlights_transports.config.source import ConfigError

    if is_found:
        typer.echo(f"Playing {file}, which is in this folder.", err=True)
    try:
        config = load_config(file, os.environ)
    except ConfigError as error:
        for each in error.tracebacks:
            typer.echo(printable(each), err=True, nl=False)
        raise
    name = speaker_name(persona or next(iter(config.cast.personas), None))
    return Opening(
        lambda: open_local_game(config.cast, limits=config.limits, trace=trace or config.trace, persona=persona),
        persona,
        f"{name} answers. The world begins anew each time. /help shows the commands.",
        shows_bugs=not config.policy.wants_tokens,
    )


def _on_server(url: str, token_env: str | None, persona: str | None) -> Opening:
    from footlights_transports.cli.play.games import open_remote_game
    from footlights_transports.cli.play.standard_io import Opening

    token = None if token_env is None else os.environ.get(token_env)
    if token_env is not None and not token:
        raise InvalidCommand(f"The environment variable {token_env} holds no token.")
    return Opening(
        lambda: open_remote_game(url, token=token, persona=persona),
        persona,
        "You are connected. What is committed is kept by the server. /help shows the commands.",
    )


def _tavern(model: str, base_url: str | None, *, trace: Path | None, persona: str | None) -> Opening:
    from footlights_transports.cli.play.games import open_local_game
    from footlights_transports.cli.play.standard_io import Opening

    automatic = choose_automatically(base_url) if model == AUTO else None
    if automatic is not None:
        typer.echo(automatic.why, err=True)
        model, base_url = automatic.model, automatic.base_url
    tavern = _tavern_cast(model, base_url, with_key=automatic is None)
    if notice := notice_about(model):
        typer.echo(notice, err=True)
    return Opening(
        lambda: open_local_game(tavern, trace=trace, persona=persona),
        persona,
        "You enter the Mended Lantern. Ask for a room, an ale or a rumour. /help shows the commands.",
        "The door closes behind you.",
        shows_bugs=True,
    )


def _tavern_cast(model: str, base_url: str | None, *, with_key: bool) -> Cast:
    from footlights_transports.cli.screen import is_terminal

    try:
        return tavern_with(model, base_url, at_once=not is_terminal(), with_key=with_key)
    except WeightsNotFetched as missing:
        if not is_terminal() or not typer.confirm(f"{missing.weights.summary}: download it now?", default=True):
            raise
        cli_models.fetch_model(missing.weights.name)
        return tavern_with(model, base_url)
