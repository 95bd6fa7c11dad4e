"""Game file of a command: the one that `--config` names, or `game.toml` in the current folder."""

from __future__ import annotations

from pathlib import Path

GAME_FILE = Path("game.toml")


def found_game_file() -> Path | None:
    """`game.toml`, if the current folder has one."""
    return GAME_FILE if GAME_FILE.is_file() else None
