"""Notebooks of the settings."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from attrs import fields

from footlights.errors import FootlightsError
from footlights.extras import advice
from footlights.notebooks.limits import NotebookLimits
from footlights.notebooks.notebooks import Notebooks
from footlights.notebooks.store import MemoryNotes
from footlights_transports.config.schema import NOTEBOOKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.notebooks.store import NoteStore
    from footlights_transports.config.source import Source

log = logging.getLogger("footlights.config")

_SECTION = ("notebooks",)
_LIMITS = {each.name for each in fields(NotebookLimits)}


def read_notebooks(source: Source) -> Notebooks | None:
    """The notebooks that `[notebooks]` describes; None without it. Problems go to `source`."""
    if _SECTION[0] not in source.tree:
        return None
    given = {each.name: each.default for each in NOTEBOOKS} | source.section(_SECTION, NOTEBOOKS)
    if any(find_spec(name) is None for name in ("cryptography", "snowballstemmer")):
        source.complain(_SECTION, f"needs more than is installed: {advice('content')}")
        return None
    try:
        return Notebooks(
            _store(source, given),
            consent=given["notes"] == "consent",
            limits=NotebookLimits(**{name: given[name] for name in _LIMITS}),
            language=given["language"],
        )
    except FootlightsError as error:
        source.complain(_SECTION, f"cannot be used: {error}")
        return None


def _store(source: Source, given: Mapping[str, Any]) -> NoteStore:
    if given["folder"] is None:
        log.warning("%s", source.problem(_SECTION, "has no folder: what is remembered is forgotten when this ends."))
        return MemoryNotes()
    from footlights_actors.sealed.keys import keys_from_environment, keys_from_file
    from footlights_actors.sealed.notes import SealedNotes

    if given["keys_file"] is None:
        keys = keys_from_environment(source.environ)
    else:
        keys = keys_from_file(source.resolve((*_SECTION, "keys_file"), given["keys_file"]))
    return SealedNotes(source.resolve((*_SECTION, "folder"), given["folder"]), keys)
