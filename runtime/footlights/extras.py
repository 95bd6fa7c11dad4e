"""Extras of the package: which of them installs a module that is missing."""

from __future__ import annotations

EXTRA_OF = {
    **dict.fromkeys(
        (
            "h11",
            "wsproto",
            "typer",
            "rich",
            "trio_websocket",
            "hypercorn",
            "starlette",
            "prometheus_client",
            "sentencex",
        ),
        "server",
    ),
    "httpx2": "remote",
    "anthropic": "anthropic",
    "xllamacpp": "local",
    **dict.fromkeys(("cryptography", "snowballstemmer"), "content"),
    **dict.fromkeys(("phonenumbers", "stdnum"), "redaction"),
}
"""By the name under which a dependency is imported."""


def installing(error: ModuleNotFoundError) -> str | None:
    """How to install the missing module; None if it is not a dependency of an extra."""
    extra = EXTRA_OF.get((error.name or "").partition(".")[0])
    return None if extra is None else advice(extra)


def advice(extra: str) -> str:
    """How to install an extra. From a checkout, because the package is in no index yet."""
    return f"install the extra {extra} (from a checkout: pip install '.[{extra}]')"


def name_extra(error: ModuleNotFoundError) -> None:
    """Add how to install the missing module to the error's message, once."""
    how = installing(error)
    if how is not None and how not in error.msg:
        error.msg = f"{error.msg}: {how}"
