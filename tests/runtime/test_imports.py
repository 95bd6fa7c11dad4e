"""Modules that an import loads. Its duration is measured by `make bench-start`, not here."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

_SHOW = "\nimport sys; print(*sorted(sys.modules))"


@cache
def modules_after(program: str) -> set[str]:
    """All that a new process has imported when it is done with this."""
    done = subprocess.run([sys.executable, "-c", program + _SHOW], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def within(modules: set[str], names: str) -> set[str]:
    """Those of the modules that are these, or in them."""
    return {each for each in modules if any(each == name or each.startswith(f"{name}.") for name in names.split())}


OF_A_STAGE = "from footlights import open_stage\nfrom footlights_actors import standard_cast, ScriptedModel"


def test_to_import_footlights_is_to_import_next_to_nothing() -> None:
    found = modules_after("import footlights")
    assert within(found, "footlights") == {"footlights", "footlights.lazy"}
    assert not within(found, "asyncio attr attrs blake3 cattrs json logging orjson rfc8785 sqlite3 ssl trio")


def test_errors_come_alone() -> None:
    found = modules_after("from footlights import Busy, FootlightsError")
    assert within(found, "footlights") == {"footlights", "footlights.lazy", "footlights.errors"}


def test_what_is_pure_comes_without_trio() -> None:
    found = modules_after(
        "from footlights import laws, wire\nfrom footlights.modes import decide\nlaws.check, wire.decode"
    )
    assert {"footlights.laws.checker", "footlights.modes.weights", "footlights.wire.reading"} <= found
    assert not within(found, "trio sqlite3")


@pytest.mark.parametrize(
    "unneeded",
    [
        "sqlite3 footlights.authority.ledger.sqlite.ledger",
        "footlights.wire.reading",
        "footlights.laws footlights.testing",
        "footlights.modes.weights footlights.modes.detection footlights.modes.rules",
        "footlights_transports.views.kgent.pure footlights_transports.views.mission.pure",
        "asyncio importlib.metadata hypothesis pytest rich typer",
    ],
)
def test_a_stage_with_the_standard_actors_and_a_ledger_in_memory_does_without(unneeded: str) -> None:
    assert not within(modules_after(OF_A_STAGE), unneeded)


def test_a_first_turn_imports_nothing() -> None:
    # What it imported would hold up the turns of everybody else.
    program = """
import sys
import trio
from footlights import open_stage
from footlights_actors import Say, ScriptedModel, standard_cast

async def play():
    async with open_stage(standard_cast(ScriptedModel(lambda prompt: [Say("Good evening.")]))) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            before = set(sys.modules)
            turn_id = session.begin_turn("A room?")
            async for event in stream.until_commit(turn_id):
                pass
            print(*sorted(set(sys.modules) - before), file=sys.stderr)

trio.run(play)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_a_workload_finds_the_readers_of_what_it_emits_made() -> None:
    program = f"{OF_A_STAGE}\nfrom footlights import ExtensionManager\nExtensionManager().register('a', None)"
    assert "footlights.wire.reading" in modules_after(program)
