"""Cast of a server: the models, tools, rules, personas and world of the settings, or the demo tavern without them.

What cannot be made is recorded as a problem, and the rest is made all the same, so that all problems are found at once.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

import orjson

from footlights.cast import Cast
from footlights.errors import FootlightsError
from footlights.events import WarmState
from footlights.extras import installing
from footlights.failures import describe
from footlights.models.budget import BudgetConfig
from footlights.models.prompts import Persona
from footlights.models.sampling import Sampling
from footlights.notebooks.note_ids import REMEMBER
from footlights.tools.tool import Tool
from footlights.tracebacks import traceback_text
from footlights_actors.demo.analyst.tools import DOCUMENTS
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.models.local.weights import KNOWN
from footlights_actors.models.scripted import ScriptedModel
from footlights_actors.turn.casting import standard_cast
from footlights_transports.config.notebooks import read_notebooks
from footlights_transports.config.schema import (
    ANALYST,
    BUDGET,
    CAST,
    MODEL_KIND,
    MODELS,
    PERSONA,
    SAMPLED,
    SAMPLING,
)

if TYPE_CHECKING:
    from footlights.authority import Rule
    from footlights.models.model import Model
    from footlights_transports.config.source import KeyPath, Source

log = logging.getLogger("footlights.config")

_T = TypeVar("_T")
_WHOLE_CAST = ("models", "personas", "world", "budget")


def read_cast(source: Source) -> Cast | None:
    """The cast; None, and a problem, if it fails."""
    if source.file is not None and str(source.file.parent.resolve()) not in sys.path:
        sys.path.insert(0, str(source.file.parent.resolve()))
    given = source.section(("cast",), CAST)
    described = [name for name in _WHOLE_CAST if name in source.tree]
    described += [f"cast.{name}" for name in ("tools", "rules", "world_file") if name in given]
    if "analyst" in source.tree and (described or "make" in given):
        source.complain(("analyst",), "is about the tavern, and these settings have a cast of their own.")
    if "notebooks" in source.tree and ("make" in given or not described):
        source.complain(("notebooks",), "is about a cast that these settings describe: use notebooks= in your own.")
    if "make" in given:
        if described:
            source.complain(("cast", "make"), f"makes the whole cast: leave it out, or {', '.join(described)}.")
        return _made_whole(source, given["make"])
    return _assembled(source, given) if described else _tavern(source, given)


def _tavern(source: Source, given: Mapping[str, Any]) -> Cast | None:
    path = ("analyst", "documents")
    source.chat_agent = "analyst"
    documents = source.section(("analyst",), ANALYST).get("documents")
    folder = DOCUMENTS if documents is None else source.resolve(path, documents)
    return _attempt(
        source, path, lambda: tavern_cast(remote_models=given.get("remote_models", False), documents=folder)
    )


def _made_whole(source: Source, import_path: str) -> Cast | None:
    path = ("cast", "make")
    make = _imported(source, path, import_path)
    if make is None:
        return None
    made = _attempt(source, path, make)
    if made is not None and not isinstance(made, Cast):
        source.complain(path, "must name a function that returns a footlights.Cast.")
        return None
    return made


def _assembled(source: Source, given: Mapping[str, Any]) -> Cast | None:
    before = len(source.problems)
    names = source.table(("models",))
    if not names:
        source.complain(("models",), "must name at least one model, such as [models.innkeeper].")
    models = [_model(source, ("models", name)) for name in names]
    tools = _tools(source, given.get("tools", ()))
    rules = _rules(source, given.get("rules", ()))
    world = _world(source, given)
    notebooks = read_notebooks(source)
    known = {*(tool.name for tool in tools), *([] if notebooks is None else [REMEMBER])}
    personas = {name: _persona(source, ("personas", name), set(names), known) for name in source.table(("personas",))}
    budget = source.checked(("budget",), BUDGET, BudgetConfig)
    if len(source.problems) > before:
        return None
    _warn_of_unused_models(source, personas.values())
    return _attempt(
        source,
        ("cast",),
        lambda: standard_cast(
            *(model for model in models if model is not None),
            tools=tools,
            world=world,
            rules=rules,
            personas=personas or None,
            budget=budget,
            model_memory_bytes=given.get("model_memory_bytes"),
            remote_models=given.get("remote_models", False),
            fallback=given.get("fallback", True),
            notebooks=notebooks,
        ),
    )


# -- models


def _model(source: Source, path: KeyPath) -> Model | None:
    before = len(source.problems)
    table = source.table(path)
    if len(source.problems) == before and "kind" not in table:
        source.complain(path, f"needs kind, {MODEL_KIND.allowed}.")
    kind = source.read((*path, "kind"), MODEL_KIND) if "kind" in table else None
    if kind is None:
        return None
    if kind in MODELS:
        return _known_model(source, path, kind)
    make = _imported(source, (*path, "kind"), kind)
    options = {name: source.plain((*path, name)) for name in table if name != "kind"}
    made = None if make is None else _attempt(source, path, lambda: make(model_id=path[-1], **options))
    if made is not None and not callable(getattr(made, "generate", None)):
        source.complain((*path, "kind"), "must name something that makes a footlights.Model.")
        return None
    return made


def _known_model(source: Source, path: KeyPath, kind: str) -> Model | None:
    before = len(source.problems)
    options = source.section(path, MODELS[kind], beside=("kind", *(("sampling",) if kind in SAMPLED else ())))
    options |= _sampling(source, path)
    if len(source.problems) > before:
        return None
    _warn_without_key(source, (*path, "key_env"), options)
    return _attempt(source, path, lambda: _made(source, path, kind, {"model_id": path[-1], **options}))


def _warn_without_key(source: Source, path: KeyPath, options: Mapping[str, Any]) -> None:
    """Not a problem: some servers need no key. The name is not repeated, as it may be a misplaced key."""
    if "key_env" in options and not os.environ.get(options["key_env"], "").strip():
        log.warning("%s", source.problem(path, "names an environment variable that is not set."))


def _made(source: Source, path: KeyPath, kind: str, options: dict[str, Any]) -> Model | None:
    match kind:
        case "scripted":
            script = _imported(source, (*path, "script"), options.pop("script"))
            cold = WarmState.COLD if options.get("load_seconds") else WarmState.HOT
            return None if script is None else ScriptedModel(script, warm_state=cold, **options)
        case "local":
            from footlights_actors.models.local.model import known_model

            weights = options.pop("weights")
            return known_model(weights if weights in KNOWN else source.resolve((*path, "weights"), weights), **options)
        case "openai":
            from footlights_actors.models.openai import OpenAIModel

            return OpenAIModel(options.pop("name"), **options)
        case _:
            from footlights_actors.models.anthropic import AnthropicModel

            return AnthropicModel(options.pop("name"), **options)


def _sampling(source: Source, path: KeyPath) -> dict[str, Any]:
    place = (*path, "sampling")
    return {"sampling": source.checked(place, SAMPLING, Sampling)} if source.is_set(place) else {}


def _warn_of_unused_models(source: Source, personas: Collection[Persona]) -> None:
    """Not a problem: a turn may name a model."""
    names = list(source.table(("models",)))
    used = {name for persona in personas or (Persona(),) for name in persona.models or names[:1]}
    for name in names:
        if name not in used:
            hint = "name it in the models of a persona, or in the params of a turn."
            log.warning("%s", source.problem(("models", name), f"is used by no persona: {hint}"))


# -- tools, rules, world, personas


def _tools(source: Source, import_paths: Iterable[str]) -> list[Tool]:
    path = ("cast", "tools")
    tools: list[Tool] = []
    for import_path in import_paths:
        found = _imported(source, path, import_path)
        each = [found] if isinstance(found, Tool) else found
        if isinstance(each, Iterable) and all(isinstance(tool, Tool) for tool in cast("Iterable[object]", each)):
            tools += cast("Iterable[Tool]", each)
        elif found is not None:
            hint = " Did you forget @tool?" if callable(found) else ""
            source.complain(path, f"names {import_path}, which is neither a tool nor a list of tools.{hint}")
    return tools


def _rules(source: Source, import_paths: Iterable[str]) -> dict[str, Rule]:
    path = ("cast", "rules")
    rules: dict[str, Rule] = {}
    origins: dict[str, str] = {}
    for import_path in import_paths:
        found = _imported(source, path, import_path)
        if callable(found):
            found = {import_path.rpartition(":")[2]: found}
        if isinstance(found, Mapping):
            for name, rule in cast("Mapping[str, Rule]", found).items():
                if name in rules:
                    both = f"{origins[name]} and {import_path}"
                    source.complain(path, f"must name each rule once. Two rules are named {name}: {both}.")
                rules[name], origins[name] = rule, import_path
        elif found is not None:
            source.complain(path, f"names {import_path}, which is neither a rule nor a mapping of rules.")
    return rules


def _world(source: Source, given: Mapping[str, Any]) -> Any:
    path = ("cast", "world_file")
    if "world_file" not in given:
        return source.plain(("world",))
    if "world" in source.tree:
        source.complain(path, "and [world] are both set: use one of them.")
    file = source.resolve(path, given["world_file"])
    try:
        return orjson.loads(file.read_bytes())
    except OSError as error:
        source.complain(path, f"names {file}, which cannot be read: {error.strerror}.")
    except orjson.JSONDecodeError as error:
        source.complain(path, f"names {file}, which is not JSON at line {error.lineno}.")
    return None


def _persona(source: Source, path: KeyPath, models: set[str], tools: set[str]) -> Persona:
    given = source.section(path, PERSONA, beside=("sampling",)) | _sampling(source, path)
    facts = _imported(source, (*path, "facts"), given.pop("facts")) if "facts" in given else None
    chosen: list[str] = given.pop("models", [path[-1]] if path[-1] in models else [])
    if set(chosen) - models:
        source.complain((*path, "models"), f"must be some of {_listed(models, 'models')}.")
    elif len(set(chosen)) < len(chosen):
        source.complain((*path, "models"), "must name each model once.")
    allowed = given.pop("tools", None)
    if set(allowed or ()) - tools:
        source.complain((*path, "tools"), f"must be some of {_listed(tools, 'tools')}.")
    named: dict[str, Any] = {} if facts is None else {"facts": facts}
    may_use = None if allowed is None else frozenset(allowed)
    persona = partial(Persona, **given, **named, models=dict.fromkeys(chosen), tools=may_use)
    return _attempt(source, path, persona) or Persona()


def _listed(names: set[str], kind: str) -> str:
    return ", ".join(sorted(names)) or f"the {kind}, and there are none"


def _imported(source: Source, path: KeyPath, import_path: str) -> Any:
    """The object that an import path names; None and a problem if there is none."""
    module, _, name = import_path.partition(":")
    if module in source.broken_modules:
        return None
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part, None)
    except ModuleNotFoundError as error:
        how = installing(error)
        hint = "." if how is None else f": {how}"
        source.complain(path, f"names the module {module}, but {error.name} is not installed{hint}")
        source.broken_modules.add(module)
        return None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - importing runs the host's code
        source.complain(path, f"names the module {module}, which cannot be imported: {_why(error)}")
        source.broken_modules.add(module)
        source.tracebacks.append(traceback_text(error))
        return None
    if found is None:
        source.complain(path, f"names {name}, which the module {module} does not have.")
    return found


def _attempt(source: Source, path: KeyPath, make: Callable[[], _T]) -> _T | None:
    """The result of `make`; None and a problem if it fails."""
    try:
        return make()
    except ModuleNotFoundError as missing:
        how = installing(missing)
        source.complain(path, f"needs {missing.name}{', which is not installed.' if how is None else f': {how}'}")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the host's function may raise anything
        source.complain(path, f"cannot be made: {_why(error)}")
    return None


def _why(error: BaseException) -> str:
    """The message of a Footlights error, which never quotes values; of any other, only its type and place."""
    return str(error) if isinstance(error, FootlightsError) else f"{describe(error)}."
