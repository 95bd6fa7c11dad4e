"""Imports of the command line. `make bench-start` times them."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.kit.command import footlights

if TYPE_CHECKING:
    from pathlib import Path

_SERVE = """
import gc, sys
import footlights_transports.server.serve as serve
from footlights_transports.cli.main import main

async def seen_from_inside(config, announce, stop, **others):
    def tell(opened):
        announce(opened)
        print(gc.isenabled(), len(gc.get_objects()) < gc.get_freeze_count())
        print(*sorted(sys.modules))
        stop.set()
    await as_ever(config, tell, stop, **others)

as_ever, serve.serve = serve.serve, seen_from_inside
main()
"""


def _shown_by(program: str, *arguments: str, folder: Path) -> list[str]:
    """The lines that it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _within(modules: set[str], names: str) -> set[str]:
    return {each for each in modules if any(each == name or each.startswith(f"{name}.") for name in names.split())}


@pytest.fixture(scope="module")
def shown_by_server(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What `footlights serve` shows when it can be reached."""
    return _shown_by(_SERVE, "serve", "--ws-port", "0", "--http-port", "0", folder=tmp_path_factory.mktemp("served"))


@pytest.fixture
def of_a_server(shown_by_server: list[str]) -> set[str]:
    """All that it has imported by then."""
    return set(shown_by_server[-3].split())  # the last two say that it closes


@pytest.mark.parametrize(
    "unneeded",
    [
        "rich",
        "pytest hypothesis footlights.testing footlights_bench",
        "footlights.authority.audit.audit footlights_transports.cli.ledger.reports",
        "footlights_transports.cli.play.standard_io footlights_transports.cli.run footlights_transports.cli.screen",
        "footlights_transports.views.dexi.pure.laws",
        "footlights_transports.client.client footlights_transports.embed.stage_thread",
        "footlights_actors.models.local.model footlights_actors.models.openai footlights_actors.models.anthropic",
        "xllamacpp anthropic httpx httpx2 cryptography",
    ],
)
def test_a_server_does_without(of_a_server: set[str], unneeded: str) -> None:
    assert not _within(of_a_server, unneeded)


def test_a_server_was_there(of_a_server: set[str]) -> None:
    assert {"hypercorn", "starlette", "footlights.stage.stage", "footlights_transports.websocket.server"} <= of_a_server


def test_help_comes_without_a_runtime(tmp_path: Path) -> None:
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules))); "
        "from footlights_transports.cli.main import main; main()"
    )
    found = set(_shown_by(program, "--help", folder=tmp_path)[-1].split())
    assert "typer" in found
    assert not _within(
        found, "trio rich cattrs sqlite3 starlette hypercorn pydantic footlights_bench footlights.stage.stage"
    )


def test_importing_the_package_imports_nothing_else_of_it(tmp_path: Path) -> None:
    program = "import sys, footlights_transports; print(*sorted(sys.modules))"
    found = set(_shown_by(program, folder=tmp_path)[-1].split())
    assert _within(found, "footlights_transports") == {"footlights_transports"}
    assert not _within(found, "trio wsproto attrs starlette")


def test_a_server_looks_for_garbage_and_not_in_what_it_imported(shown_by_server: list[str]) -> None:
    assert shown_by_server[-4] == "True True"


def test_the_command_leaves_the_collector_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    footlights(monkeypatch, "serve", "--ws-port", "-1")
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
