"""The command, run in this process."""

from __future__ import annotations

import sys

import pytest

from footlights_transports.cli.main import main


def footlights(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["footlights", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)
