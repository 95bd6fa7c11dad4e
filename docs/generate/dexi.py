"""The parts of the docs about Dexi streams: each event, the laws, and the schemas."""

from __future__ import annotations

import json
from typing import cast

from tables import code, table

from footlights_transports.views.dexi.pure.laws import DEXI_LAWS
from footlights_transports.views.dexi.pure.schema import dexi_schema


def events() -> str:
    return "\n\n".join(_event(name, schema) for name, schema in _definitions().items())


def _event(name: str, schema: dict[str, object]) -> str:
    properties = cast("dict[str, dict[str, object]]", schema["properties"])
    rows = ([code(field), _kind(described)] for field, described in properties.items())
    return f"### {name}\n\n{schema['description']}\n\n{table(['field', 'value'], rows)}"


def _kind(described: dict[str, object]) -> str:
    match described:
        case {"const": constant}:
            return code(json.dumps(constant))
        case {"enum": values}:
            return ", ".join(code(json.dumps(value)) for value in cast("list[str]", values))
        case {"format": "date-time"}:
            return "a time in UTC, as `2026-11-16T12:00:00.250Z`"
        case {"type": kind}:
            return str(kind)
        case _:
            raise AssertionError(described)


def laws() -> str:
    return table(["law", "what it says"], ([code(name), sentence] for name, sentence in DEXI_LAWS.items()))


def schemas() -> str:
    return f"```json\n{json.dumps(dexi_schema(), indent=2)}\n```"


def _definitions() -> dict[str, dict[str, object]]:
    return cast("dict[str, dict[str, object]]", dexi_schema()["$defs"])
