"""What a host chooses: who performs, with which models and tools, in which world and by which rules.

`footlights_actors.standard_cast` makes the usual one. The protocols here are what the stage asks of the actors,
which live a layer above and are never imported from here.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from attrs import field, frozen

from footlights.authority.rules import RuleBook
from footlights.authority.visibility import Visibility, own_approvals
from footlights.authority.world import JsonWorld, World
from footlights.errors import RegistrationError
from footlights.models.budget import BudgetConfig
from footlights.models.prompts import Persona
from footlights.turn.extensions import ExtensionManager

if TYPE_CHECKING:
    from footlights.authority.ledger.protocol import Ledger
    from footlights.limits import Limits
    from footlights.models.model import Model
    from footlights.models.pool import ModelPool, ModelStatus
    from footlights.params import TurnParams
    from footlights.tools.tool import Tool
    from footlights.turn.turn import Turn


_MAX_REASON_CHARS = 128
_MODEL_ID = re.compile(r"[!-~]{1,128}")


@frozen
class ModelChoice:
    """Which model a turn uses, and why."""

    model_id: str
    """Its id in the cast."""
    reason: str
    """A word for `model_selected`."""

    def __attrs_post_init__(self) -> None:
        is_text = type(self.reason) is str and self.reason.isprintable()
        if not is_text or not 0 < len(self.reason) <= _MAX_REASON_CHARS:
            raise RegistrationError(f"Why a model was chosen is said in 1 to {_MAX_REASON_CHARS} printable characters.")


@frozen(kw_only=True)
class ModelQuery:
    """What whoever chooses a model may go by. What was said is not among it."""

    session_id: str
    params: TurnParams
    persona: Persona
    """Who speaks."""
    remote_models: bool
    """Whether the session lets its text go to models elsewhere."""
    models: tuple[ModelStatus, ...]
    """How the models are doing, in the order of the cast."""


class Committer(Protocol):
    """Judges every ended turn once, in order, and settles it when that is durable."""

    world: World
    """The last committed one."""

    @property
    def waiting(self) -> int:
        """Turns handed over and not settled."""
        ...

    def submit_nowait(self, turn: Turn) -> None:
        """Hand over a turn that has ended. Never fails."""
        ...

    def close(self) -> None:
        """No more turns will come; `run` returns when all are settled."""
        ...

    async def run(self) -> None:
        """Commit until `close`."""
        ...


class Watchdog(Protocol):
    """Ends turns that are silent, or run, for too long."""

    def watch(self, turn: Turn) -> None:
        """A turn begins to be performed."""
        ...

    def let_go(self, turn: Turn) -> None:
        """It was performed."""
        ...

    async def run(self) -> None:
        """Watch until cancelled."""
        ...


class Services(Protocol):
    """What the stage does for the actors of a turn."""

    cast: Cast
    limits: Limits
    ledger: Ledger
    pool: ModelPool

    @property
    def committed_world(self) -> World:
        """The world as it was committed last."""
        ...

    @property
    def running_turns(self) -> int:
        """Turns that are being performed now."""
        ...

    def start_tool(self, run: Callable[[], Awaitable[None]], name: str, session_id: str) -> None:
        """Run a tool of this session as a task of the stage: it may outlive its turn, not the stage. Raises `Busy`."""
        ...


Perform: TypeAlias = Callable[["Turn", Services], Awaitable[None]]
"""Performs one turn: returning ends it well, raising interrupts it."""
MakeCommitter: TypeAlias = "Callable[[Ledger, World, RuleBook, Limits], Committer]"
"""Makes the one committer of a stage."""
MakeWatchdog: TypeAlias = "Callable[[Limits], Watchdog]"
"""Makes the one watchdog of a stage."""
MakePool: TypeAlias = "Callable[[Mapping[str, Model]], ModelPool]"
"""Makes the one model pool of a stage."""
ChooseModel: TypeAlias = "Callable[[ModelQuery], ModelChoice]"
"""Chooses the model of a turn. Raises `ModelError` if there is none for it."""


@frozen(kw_only=True)
class Cast:
    """What a host brings to a stage. `footlights_actors.standard_cast` makes the usual one.

    Raises `RegistrationError` for a cast that cannot work.
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
    """Says which model a turn uses."""
    models: Mapping[str, Model] = field(factory=dict[str, "Model"])
    """By `model_id`."""
    tools: Mapping[str, Tool] = field(factory=dict[str, "Tool"])
    """By name."""
    world: World = field(factory=lambda: JsonWorld({}))
    """What is true when the stage opens, unless its ledger knows better."""
    rules: RuleBook = field(factory=RuleBook)
    """What may become true."""
    visibility: Visibility = own_approvals
    """What each user of a server may see of the world."""
    workloads: ExtensionManager = field(factory=ExtensionManager)
    """What turns may name instead of the standard performance."""
    personas: Mapping[str, Persona] = field(factory=lambda: {"default": Persona()})
    """Who may speak, by name. The first speaks in turns that name nobody."""
    budget: BudgetConfig = field(factory=BudgetConfig)
    """How much turns may say."""
    remote_models: bool = False
    """Whether sessions that say nothing about it let their text go to models elsewhere."""

    def __attrs_post_init__(self) -> None:
        for model_id in self.models:
            if not _MODEL_ID.fullmatch(model_id):
                raise RegistrationError(f"The model id {model_id[:64]!r} must be 1 to 128 visible ASCII characters.")
        if not self.personas:
            raise RegistrationError("A cast needs somebody who speaks.")
        for name, persona in self.personas.items():
            _check_persona(self, name, persona)
        for kind, members in (("model", self.models), ("tool", self.tools)):
            for name, member in members.items():
                known = getattr(member, "model_id" if kind == "model" else "name")
                if known != name:
                    raise RegistrationError(f"The {kind} {known} is registered under the name {name}.")

    def persona(self, name: str | None) -> Persona:
        """The persona of that name, or the first."""
        return next(iter(self.personas.values())) if name is None else self.personas[name]


def _check_persona(cast: Cast, name: str, persona: Persona) -> None:
    if persona.model is not None and persona.model not in cast.models:
        raise RegistrationError(f"The persona {name} has the model {persona.model[:64]!r}, which does not exist.")
    unknown = sorted((persona.tools or frozenset()) - cast.tools.keys())
    if unknown:
        raise RegistrationError(f"The persona {name} has the tool {unknown[0][:64]!r}, which does not exist.")
