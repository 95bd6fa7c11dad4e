"""An innkeeper who notes what he is told to note, and says what he remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from footlights import CommitFinal, ModelSelected, SessionParams, TurnFinal, TurnParams
from footlights.authority import pending_approvals
from footlights.testing import only, take_turn
from footlights_actors import Call, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from footlights import Cast, InteractionSession, Prompt, Stage
    from footlights.notebooks.notebooks import Notebooks
    from footlights_actors import Line


def innkeeper(prompt: Prompt) -> list[Line]:
    """`note X` has him note X. Whatever else is said, he says what he is reminded of."""
    if prompt.exchanges:
        return [Say("." if prompt.exchanges[-1].error is None else f" {prompt.exchanges[-1].error}")]
    if prompt.user.startswith("note "):
        return [Say("Let me see"), Call("remember", {"note": prompt.user.removeprefix("note ")})]
    known = [line.partition(": ")[2] for line in prompt.system.splitlines() if line.startswith("You remember")]
    can = "" if any(each.name == "remember" for each in prompt.tools) else " I write nothing down."
    return [Say(f"I remember: {'; '.join(known)}.{can}" if known else f"Welcome, stranger.{can}")]


def cast_with(notebooks: Notebooks, **others: Any) -> Cast:
    return standard_cast(ScriptedModel(innkeeper), notebooks=notebooks, world={"rooms": 1}, **others)


def start(stage: Stage, name: str | None = "bob") -> InteractionSession:
    return stage.start(SessionParams(session_id=name))


async def say(session: InteractionSession, said: str, **answers: bool) -> str:
    """What he answers. Answers to approvals by number: `a1=True`."""
    params = TurnParams(approvals={f"a-{int(name[1:]):06d}": yes for name, yes in answers.items()})
    return only(await take_turn(session, said, params), TurnFinal).text


async def note(stage: Stage, session: InteractionSession, words: str) -> str:
    """Have something noted, and say yes to it; the id of the note."""
    await say(session, f"note {words}")
    approval = pending_approvals(stage.world)[-1]
    events = await take_turn(session, "Yes.", TurnParams(approvals={approval.id: True}))
    assert only(events, CommitFinal).commit_outcome == "ok"
    payload: Any = approval.intent.payload
    return str(payload["note_id"])


def recalled(events: list[Any]) -> list[str]:
    """The ids that `model_selected` names."""
    ext = only(events, ModelSelected).ext
    data: Any = [] if ext is None else ext.data
    return list(data)
