"""`footlights new NAME`: a folder with a small game that can be played, served and tested.

Nothing that exists is overwritten: the folder must be new.
"""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from footlights.errors import FootlightsError
from footlights_transports.cli.command_name import command_name
from footlights_transports.cli.exit_codes import exit_on_refusal

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

app = typer.Typer()

FILES = {
    "README.md": "README.md",
    "game.toml": "game.toml",
    "ferry.py": "ferry.py",
    "test_game.py": "test_game.py",
    "pytest.ini": "pytest.ini",
    "gitignore": ".gitignore",
}
"""The files of the template, and what each is called in a game."""
_TITLE = "my-game"
"""The name of the game in the files of the template."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII | re.IGNORECASE)

_NEXT = """\
{name} is ready. Next:
  cd {name}
  {command} play     talk to the ferryman
  {command} serve    serve the game by WebSocket and HTTP
  {tests:<18}  run its tests ({install})"""


class CannotMakeGame(FootlightsError):
    """A new game cannot be made in that place or by that name."""

    code = "cannot_make_game"


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the game, and of its new folder.")],
) -> None:
    """Make a folder with a small game of your own: an NPC with facts, a tool, a rule, and tests.

    Nothing is overwritten: the folder must not exist yet. The game needs no key, no network and no download.
    """
    with exit_on_refusal():
        make_game(name, Path.cwd())
    by = "" if command_name() == "footlights" else f"{sys.executable} -m "  # the Python that has Footlights
    typer.echo(_NEXT.format(name=name, command=command_name(), tests=f"{by}pytest", install=f"{by}pip install pytest"))


def make_game(name: str, parent: Path) -> Path:
    """The new folder. Raises `CannotMakeGame` for a name that cannot be used, or if the folder cannot be made."""
    if not _NAME.fullmatch(name):
        raise CannotMakeGame(
            "The name of a game is 1 to 64 letters, digits, - or _, and begins with a letter; its folder is made here."
        )
    folder = parent / name
    template = files("footlights_transports.cli.new") / "template"
    try:
        folder.mkdir()
        for source, target in FILES.items():
            (folder / target).write_text(_filled(template / source, name), encoding="utf-8")
    except FileExistsError:
        raise CannotMakeGame(f"{name} exists already. Nothing was written; take another name.") from None
    except OSError as error:
        raise CannotMakeGame(f"{name} cannot be made here: {error.strerror}.") from None
    return folder


def _filled(source: Traversable, name: str) -> str:
    return source.read_text(encoding="utf-8").replace(_TITLE, name)
