"""Callouts as a view: their routes, their task, and the settings of `[mission]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from footlights_transports.config.schema import FLAG, FOLDER, Setting
from footlights_transports.views.base.view import Mount, View
from footlights_transports.views.mission.missions import Missions, MissionSettings
from footlights_transports.views.mission.openapi import MISSION_SCHEMAS
from footlights_transports.views.mission.routes import MissionRoutes
from footlights_transports.views.mission.voice import EspeakVoice, VoiceError

if TYPE_CHECKING:
    from footlights import Cast, Limits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.source import Source

_SETTINGS = (
    Setting("voice_folder", FOLDER, "Where espeak-ng writes callouts as WAV files. No speech if not set."),
    Setting("replay", FLAG, "Whether requests carry the time of the decision; for replays only.", False),
)
_VOICE = ("mission", "voice_folder")


class MissionView(View):
    """Callouts of missions, and their boards."""

    sections: ClassVar = {"mission": _SETTINGS}
    routes = (MissionRoutes,)
    schemas = MISSION_SCHEMAS

    def __init__(self, settings: MissionSettings | None = None) -> None:
        self.settings = settings or MissionSettings()

    @classmethod
    def read(cls, source: Source, cast: Cast | None, limits: Limits) -> MissionView:
        given = source.section(("mission",), _SETTINGS)
        voice = None
        if "voice_folder" in given:
            try:
                voice = EspeakVoice(source.folder(_VOICE, given["voice_folder"]))
            except VoiceError as error:
                source.complain(_VOICE, f"cannot be used: {error}")
        return cls(MissionSettings(voice=voice, replay=given.get("replay", False)))

    def mount(self, access: SessionAccess) -> Mount:
        missions = Missions(access, self.settings)
        return Mount(view=self, handlers=[MissionRoutes(access, missions)], run=missions.keep)
