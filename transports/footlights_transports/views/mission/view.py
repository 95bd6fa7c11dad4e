"""Callouts as a view: their routes, their task, and the settings of `[mission]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import evolve

from footlights_transports.config.schema import FLAG, FOLDER, SECONDS, Setting
from footlights_transports.views.base.view import Mount, View
from footlights_transports.views.mission.missions import Missions, MissionSettings
from footlights_transports.views.mission.openapi import MISSION_SCHEMAS
from footlights_transports.views.mission.routes import MissionRoutes
from footlights_transports.views.mission.voice import EspeakVoice, VoiceError
from footlights_transports.worlds.names import folder_of_world

if TYPE_CHECKING:
    from footlights import Cast, Limits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.source import Source

_SETTINGS = (
    Setting("voice_folder", FOLDER, "Where callouts that espeak-ng has spoken are kept. No speech if not set."),
    Setting("audio_seconds", SECONDS, "How long a spoken callout can be fetched; then it is deleted.", 3_600.0),
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
        if "voice_folder" in given:
            try:
                folder = source.folder(_VOICE, given.pop("voice_folder"))
                given |= {"voice": EspeakVoice(), "folder": folder}
            except VoiceError as error:
                source.complain(_VOICE, f"cannot be used: {error}")
        return cls(MissionSettings(**given))

    def in_world(self, name: str) -> MissionView:
        folder = self.settings.folder
        return self if folder is None else MissionView(evolve(self.settings, folder=folder_of_world(folder, name)))

    def mount(self, access: SessionAccess) -> Mount:
        missions = Missions(access, self.settings)
        return Mount(view=self, handlers=[MissionRoutes(access, missions)], run=missions.keep)
