"""Extras of the package: which of them installs a module that is missing."""

from __future__ import annotations

EXTRA_OF = {
    **dict.fromkeys(
        ("h11", "wsproto", "typer", "rich", "trio_websocket", "hypercorn", "starlette", "prometheus_client"), "server"
    ),
    "httpx2": "remote",
    "anthropic": "anthropic",
    "xllamacpp": "local",
    "cryptography": "content",
}
"""By the name under which a dependency is imported."""


def installing(error: ModuleNotFoundError) -> str | None:
    """The command that installs the missing module; None if it is not a dependency of an extra."""
    extra = EXTRA_OF.get((error.name or "").partition(".")[0])
    return None if extra is None else f"pip install 'footlights[{extra}]'"


def name_extra(error: ModuleNotFoundError) -> None:
    """Add the command that installs the missing module to the error's message, once."""
    command = installing(error)
    if command is not None and command not in error.msg:
        error.msg = f"{error.msg}: {command}"
