"""The name by which a person starts `footlights` again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from footlights_transports.cli.command_name import command_name

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("is_found", [True, False])
def test_a_program_that_the_shell_does_not_find_is_named_with_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_found: bool
) -> None:
    program = tmp_path / "footlights"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", str(tmp_path if is_found else tmp_path / "other"))
    assert command_name() == ("footlights" if is_found else str(program))


def test_another_program_says_footlights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert command_name() == "footlights"
