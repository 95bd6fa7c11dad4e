"""Settings of the views: the chat gateway, narrated runs and callouts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from attrs import frozen

from footlights.errors import FootlightsError, RegistrationError
from footlights.redaction.redactor import STANDARD_FIELDS, STANDARD_PATTERNS, Redactor, SecretPattern
from footlights_transports.config.schema import CHAT, DEXI
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.mission.missions import MissionSettings
from footlights_transports.views.mission.voice import EspeakVoice, VoiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from footlights.models.budget import BudgetConfig
    from footlights_transports.config.source import Source
    from footlights_transports.views.kgent.gateway import Keeper

_FOLDER = ("server", "content_folder")
_KEYS = ("server", "content_keys_file")
_VOICE = ("server", "voice_folder")


@frozen(kw_only=True)
class ChatSettings:
    """Settings of the chat gateway."""

    flux: ChatFluxConfig
    keeper: Keeper | None = None
    """Stores the chats of users who consented; without it no chat is stored."""


def read_chat(
    source: Source, server: Mapping[str, Any], environ: Mapping[str, str], budget: BudgetConfig
) -> ChatSettings:
    """The settings of the chat gateway for a cast with this budget."""
    flux = source.checked(("chat",), CHAT, ChatFluxConfig)
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


def read_redactor(source: Source) -> Redactor:
    """The redactor of narrated runs. Problems do not repeat a pattern, which may reveal much about a secret."""
    given = source.section(("dexi",), DEXI)
    patterns = _patterns(source, given.get("secret_patterns", ()))
    return Redactor((*STANDARD_PATTERNS, *patterns), (*STANDARD_FIELDS, *given.get("secret_fields", ())))


def _patterns(source: Source, expressions: Iterable[str]) -> Iterator[SecretPattern]:
    for number, expression in enumerate(expressions, 1):
        try:
            yield SecretPattern("of the host", expression)
        except RegistrationError as error:
            source.complain(("dexi", "secret_patterns"), f"cannot be used: number {number}: {error}")


def read_mission(source: Source, server: Mapping[str, Any]) -> MissionSettings:
    """The settings of callouts."""
    if not server["voice_folder"]:
        return MissionSettings(replay=server["mission_replay"])
    try:
        voice = EspeakVoice(source.folder(_VOICE, server["voice_folder"]))
    except VoiceError as error:
        source.complain(_VOICE, f"cannot be used: {error}")
        return MissionSettings()
    return MissionSettings(voice=voice, replay=server["mission_replay"])
