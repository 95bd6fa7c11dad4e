"""The tables of the settings of a server, and of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

import source
import tables

from footlights_bench.scenario.definition import Load, Said, Scenario, Target, Trouble, TurnShape, settings_of
from footlights_transports.access.policy import WireLimits
from footlights_transports.config import schema as config_schema
from footlights_transports.views.ag_ui.view import AgUiView
from footlights_transports.views.chat_feed.view import ChatFeedView
from footlights_transports.views.console.view import ConsoleView
from footlights_transports.views.dexi.view import DexiView
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.view import KgentView
from footlights_transports.views.mission.view import MissionView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights_transports.config.schema import Setting


def server() -> str:
    return _settings(config_schema.SERVER)


def users() -> str:
    return _settings(config_schema.USER)


def cast() -> str:
    return _settings(config_schema.CAST)


def analyst() -> str:
    return _settings(config_schema.ANALYST)


def notebooks() -> str:
    return _settings(config_schema.NOTEBOOKS)


def worlds() -> str:
    return _settings(config_schema.WORLDS)


def redaction() -> str:
    return _settings(config_schema.REDACTION)


def dexi() -> str:
    return _settings(DexiView.sections["dexi"])


def ag_ui() -> str:
    return _settings(AgUiView.sections["ag_ui"])


def console() -> str:
    return _settings(ConsoleView.sections["console"])


def personas() -> str:
    return _settings(config_schema.PERSONA)


def sampling() -> str:
    return _settings(config_schema.SAMPLING)


def models() -> str:
    return "\n\n".join(
        f'### kind = "{kind}"\n\n{_settings(settings)}' for kind, settings in config_schema.MODELS.items()
    )


def budget() -> str:
    rows = (
        [tables.code(each.name), f"{each.default:,}", f"The most tokens that a turn of the tier {_tier(each)} may say."]
        for each in config_schema.BUDGET
    )
    return tables.table(["setting", "default", "meaning"], rows)


def wire() -> str:
    rows = (
        [tables.code(member.name), _amount(member), source.meaning(WireLimits, member)]
        for member in source.members(WireLimits)
    )
    return tables.table(["setting", "default", "meaning"], rows)


def mission() -> str:
    return _settings(MissionView.sections["mission"])


def chat_feed() -> str:
    return _settings(ChatFeedView.sections["chat_feed"])


def chat() -> str:
    meanings = {member.name: source.meaning(ChatFluxConfig, member) for member in source.members(ChatFluxConfig)}
    rows = (
        [tables.code(each.name), _default(each), each.meaning or meanings[each.name]]
        for each in KgentView.sections["chat"]
    )
    return tables.table(["setting", "default", "meaning"], rows)


def scenario() -> str:
    return _settings(settings_of(Scenario))


def scenario_load() -> str:
    return _settings(settings_of(Load))


def scenario_turn() -> str:
    return _settings(settings_of(TurnShape))


def scenario_trouble() -> str:
    return _settings(settings_of(Trouble))


def scenario_target() -> str:
    return _settings(settings_of(Target))


def _amount(limit: source.Member) -> str:
    number = limit.default or ""
    return f"{float(number):,.15g} / s" if limit.name.endswith("_per_second") else tables.amount(number)


def _tier(setting: Setting) -> str:
    return tables.code(setting.name.removesuffix("_max"))


def _settings(settings: Iterable[Setting]) -> str:
    rows = ([tables.code(each.name), each.kind.allowed, _default(each), each.meaning] for each in settings)
    return tables.table(["setting", "must be", "default", "meaning"], rows)


def _default(setting: Setting) -> str:
    if setting.required:
        return "must be set"
    match setting.default:
        case None | "" | ():
            return ""
        case (Said(text=first), *_):
            return tables.code(first)
        case bool():
            return tables.code(str(setting.default).lower())
        case float():
            return tables.code(f"{setting.default:g}")
        case _:
            return tables.code(str(setting.default))
