"""Cast: the host's choice of actors, models, tools, personas, world and rules.

`footlights_actors.standard_cast` builds the usual one. The protocols here are the interface between the stage and the
actors; the actors live one layer above and are never imported from here.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from attrs import field, frozen

from footlights.authority.rules import RuleBook
from footlights.authority.visibility import Visibility, own_approvals
from footlights.authority.world import JsonWorld, World
from footlights.bad_return import check_kind
from footlights.errors import RegistrationError
from footlights.models.budget import BudgetConfig
from footlights.models.prompts import Persona
from footlights.notebooks.entries import check_notes
from footlights.turn.model_phase import FALLBACK
from footlights.turn.workloads import ExtensionManager

if TYPE_CHECKING:
    from footlights.authority.intents import Intent
    from footlights.authority.ledger.protocol import Ledger, TurnRequest
    from footlights.events import CommitFinal, JsonValue
    from footlights.limits import Limits
    from footlights.models.model import Model
    from footlights.models.pool import ModelPool, ModelStatus
    from footlights.notebooks.notebooks import Notebooks
    from footlights.params import TurnParams
    from footlights.redaction.screen import OutputFilter
    from footlights.tools.tool import Tool
    from footlights.turn.timeline import CommitTimes
    from footlights.turn.turn import Interruption, Turn


_MAX_REASON_CHARS = 128
_MAX_PERSONA_CHARS = 128
_MODEL_ID = re.compile(r"[!-~]{1,128}")


@frozen
class ModelChoice:
    """The model of a turn, and the reason for the choice."""

    model_id: str
    """Its id in the cast."""
    reason: str
    """The `reason` in `model_selected`. `fallback` is the runtime's own."""

    def __attrs_post_init__(self) -> None:
        is_text = type(self.reason) is str and self.reason.isprintable()
        if not is_text or not 0 < len(self.reason) <= _MAX_REASON_CHARS:
            raise RegistrationError(
                f"The reason of a model choice must be 1 to {_MAX_REASON_CHARS} printable characters."
            )
        if self.reason == FALLBACK:
            raise RegistrationError("The reason fallback is given by the runtime, to a model that replaces another.")


@frozen(kw_only=True)
class ModelQuery:
    """The input of a model choice. The player's text is not part of it."""

    session_id: str
    params: TurnParams
    persona: Persona
    """The persona of the turn."""
    remote_models: bool
    """Whether the session consents to remote models."""
    models: tuple[ModelStatus, ...]
    """The status of each model, in the order of the cast."""


class Submission(Protocol):
    """What the committer decides about: a turn that has ended, or a commit of the host."""

    @property
    def session_id(self) -> str: ...
    @property
    def turn_id(self) -> str: ...
    @property
    def interruption(self) -> Interruption | None: ...
    @property
    def staged(self) -> Sequence[Intent]: ...
    @property
    def mode_decision(self) -> dict[str, JsonValue] | None: ...
    @property
    def why(self) -> str | None: ...
    @property
    def cast(self) -> Cast: ...
    @property
    def about(self) -> bytes: ...
    @property
    def request(self) -> TurnRequest | None: ...
    def settle(self, commit: CommitFinal, times: CommitTimes) -> None:
        """The decision is durable, or nothing was written."""
        ...


class Committer(Protocol):
    """Judges every ended turn once, in order, and settles it when the commit is durable."""

    world: World
    """The last committed world."""

    @property
    def waiting(self) -> int:
        """Submitted turns that are not settled."""
        ...

    @property
    def overdue_rule(self) -> str | None:
        """The rule that should have returned and has not, if there is one. Until then no turn is committed."""
        ...

    def submit_nowait(self, turn: Submission) -> None:
        """Submit a turn that has ended, or a commit of the host. Never fails."""
        ...

    def close(self) -> None:
        """End of submissions; `run` returns when all turns are settled."""
        ...

    async def run(self) -> None:
        """Commit until `close`."""
        ...


class Watchdog(Protocol):
    """Interrupts turns that stall or exceed their time."""

    def watch(self, turn: Turn) -> None:
        """Start watching a turn, when its performance begins."""
        ...

    def unwatch(self, turn: Turn) -> None:
        """Stop watching a turn, when its performance has ended."""
        ...

    async def run(self) -> None:
        """Watch until cancelled."""
        ...


class Services(Protocol):
    """The stage's interface for the actors of a turn. The turn itself has the cast that it began with."""

    limits: Limits
    ledger: Ledger
    pool: ModelPool

    @property
    def committed_world(self) -> World:
        """The last committed world."""
        ...

    @property
    def running_turns(self) -> int:
        """Turns that are performing now."""
        ...

    def start_tool(self, run: Callable[[], Awaitable[None]], name: str, session_id: str) -> None:
        """Run a tool of this session as a task of the stage, which may outlive its turn. Raises `Busy`."""
        ...


Perform: TypeAlias = Callable[["Turn", Services], Awaitable[None]]
"""Performs one turn: returning completes it, raising interrupts it."""
MakeCommitter: TypeAlias = "Callable[[Ledger, World, Limits], Committer]"
"""Makes the committer of a stage. Each turn has its rules in its cast."""
MakeWatchdog: TypeAlias = "Callable[[Limits], Watchdog]"
"""Makes the watchdog of a stage."""
MakePool: TypeAlias = "Callable[[Mapping[str, Model]], ModelPool]"
"""Makes the model pool of a stage."""
ChooseModel: TypeAlias = "Callable[[ModelQuery], ModelChoice]"
"""Chooses the model of a turn. Raises `ModelError` if no model is suitable."""


@frozen(kw_only=True)
class Cast:
    """The host's part of a stage. `footlights_actors.standard_cast` builds the usual one.

    Raises `RegistrationError` for an inconsistent cast.
    """

    perform: Perform
    """Runs the actors of one turn."""
    make_committer: MakeCommitter
    """Makes the committer when the stage opens."""
    make_pool: MakePool
    """Makes the model pool when the stage opens."""
    make_watchdog: MakeWatchdog
    """Makes the watchdog when the stage opens."""
    choose_model: ChooseModel
    """Chooses the model of each turn."""
    models: Mapping[str, Model] = field(factory=dict[str, "Model"])
    """By `model_id`."""
    tools: Mapping[str, Tool] = field(factory=dict[str, "Tool"])
    """By name."""
    world: World = field(factory=lambda: JsonWorld({}))
    """The initial world, used when the ledger holds none."""
    rules: RuleBook = field(factory=RuleBook)
    """The rules that judge changes of the world."""
    visibility: Visibility = own_approvals
    """The part of the world that each user of a server may see."""
    workloads: ExtensionManager = field(factory=ExtensionManager)
    """Workloads that a turn may name instead of the standard performance."""
    personas: Mapping[str, Persona] = field(factory=lambda: {"default": Persona()})
    """Personas by name. The first is the default."""
    budget: BudgetConfig = field(factory=BudgetConfig)
    """Output tokens by budget tier."""
    remote_models: bool = False
    """The default consent of a session to remote models."""
    fallback: bool = True
    """Whether the next model of the persona takes the place of one that fails before its first token."""

    notebooks: Notebooks | None = None
    """What characters remember of players. None: nothing."""

    output_filter: OutputFilter | None = None
    """What views whose text is covered must not show. None holds no text back, and hides nothing."""

    def __attrs_post_init__(self) -> None:
        for model_id in self.models:
            if not _MODEL_ID.fullmatch(model_id):
                raise RegistrationError(f"The model id {model_id[:64]!r} must be 1 to 128 visible ASCII characters.")
        check_kind("The personas of a cast, by name,", self.personas, Mapping)
        if not self.personas:
            raise RegistrationError("A cast needs at least one persona.")
        for name, persona in self.personas.items():
            _check_persona(self, name, persona)
        if self.notebooks is not None:
            check_notes(self.world.view())
        for kind, members in (("model", self.models), ("tool", self.tools)):
            for name, member in members.items():
                known = getattr(member, "model_id" if kind == "model" else "name")
                if known != name:
                    raise RegistrationError(f"The {kind} {known} is registered under the name {name}.")

    @property
    def default_persona(self) -> str:
        """The name of the first persona."""
        return next(iter(self.personas))

    def persona(self, name: str | None) -> Persona:
        """The persona of that name, or the first."""
        return self.personas[self.default_persona if name is None else name]


def _check_persona(cast: Cast, name: str, persona: Persona) -> None:
    check_kind("A persona", persona, Persona)
    if type(name) is not str or not name.isprintable() or not 0 < len(name) <= _MAX_PERSONA_CHARS:
        raise RegistrationError(f"The name of a persona must be 1 to {_MAX_PERSONA_CHARS} printable characters.")
    missing = [model_id for model_id in persona.models if model_id not in cast.models]
    if missing:
        raise RegistrationError(f"The persona {name} has the model {missing[0][:64]!r}, which does not exist.")
    unknown = sorted((persona.tools or frozenset()) - cast.tools.keys())
    if unknown:
        raise RegistrationError(f"The persona {name} has the tool {unknown[0][:64]!r}, which does not exist.")
