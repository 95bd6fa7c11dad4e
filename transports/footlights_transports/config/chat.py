"""What the settings say of the chat gateway: how it streams, and whether what is said may be kept."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from attrs import frozen

from footlights.errors import FootlightsError
from footlights_transports.config.read import checked
from footlights_transports.config.schema import CHAT
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.models.budget import BudgetConfig
    from footlights_transports.config.source import Source
    from footlights_transports.views.kgent.gateway import Keeper

_FOLDER = ("server", "content_folder")
_KEYS = ("server", "content_keys_file")


@frozen(kw_only=True)
class ChatSettings:
    """How the gateway is to be."""

    flux: ChatFluxConfig
    keeper: Keeper | None = None
    """Who keeps what is said, for those who agree; nobody if it is None."""


def read_chat(
    source: Source, server: Mapping[str, Any], environ: Mapping[str, str], budget: BudgetConfig
) -> ChatSettings:
    """What cannot be is complained of. `budget` is the cast's."""
    flux = checked(source, ("chat",), CHAT, ChatFluxConfig)
    if flux.session_tokens < budget.whisper_max:
        source.complain(
            ("chat", "session_tokens"), f"is not enough for a whisper, which may take {budget.whisper_max}."
        )
    return ChatSettings(flux=flux, keeper=_keeper(source, server, environ))


def _keeper(source: Source, server: Mapping[str, Any], environ: Mapping[str, str]) -> Keeper | None:
    if not server["content_folder"]:
        if server["content_keys_file"]:
            source.complain(_KEYS, "is of no use without content_folder.")
        return None
    if find_spec("cryptography") is None:
        source.complain(_FOLDER, "needs an extra: pip install 'footlights[content]'")
        return None
    from footlights_transports.views.kgent.store import ContentStore, keys_from_environment, keys_from_file

    try:
        if server["content_keys_file"]:
            keys = keys_from_file(source.resolve(_KEYS, server["content_keys_file"]))
        else:
            keys = keys_from_environment(environ)
        return ContentStore(source.resolve(_FOLDER, server["content_folder"]), keys)
    except FootlightsError as error:
        source.complain(_FOLDER, f"cannot be used: {error}")
        return None
