"""A merchant in Evennia: players talk to him over telnet, and what he sells is mirrored into Evennia's own database.

Copy this file to `world/evennia_npc.py` of your game, and add to `server/conf/settings.py`:

    AT_SERVER_STARTSTOP_MODULE = ["server.conf.at_server_startstop", "world.evennia_npc"]

Then, in the game: `create/drop Odo:world.evennia_npc.Merchant`, and `talk A lantern, please.`
"""

import re
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.db import transaction
from evennia import CmdSet, Command, DefaultObject, ObjectDB
from evennia.server.models import ServerConfig
from evennia.utils.logger import log_err
from twisted.internet import reactor as imported_reactor
from twisted.internet.defer import Deferred

from footlights import (
    BusyRule,
    CommitFinal,
    FootlightsError,
    Intent,
    IntentType,
    Persona,
    Prompt,
    SessionParams,
    TokenDelta,
    ToolContext,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    quote_session_id,
    tool,
)
from footlights.authority import Ruling, accept, patch, refuse
from footlights_actors import Call, Line, Say, ScriptedModel, standard_cast
from footlights_transports import StageThread, ThreadSession
from footlights_transports.embed.twisted import answer, read

reactor: Any = imported_reactor  # which has no types

# -- the game: its persona, its model, its tool and its rule

PRICE = 3
NEWCOMER = {"coins": 5, "lanterns": 0}


def odo(prompt: Prompt) -> list[Line]:
    if prompt.exchanges:
        return [Say("Here, if your purse is as good as your word.")]
    if "lantern" in prompt.user:
        return [Say("A lantern it is. "), Call("sell_lantern", {})]
    return [Say("The road is long. "), Say("I have walked it all my life, and it has no end. " * 40)]


@tool
async def sell_lantern(context: ToolContext) -> str:
    """Sell a lantern to the player."""
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id))
    return "sold, if the player can pay"


def sale(world: Any, intents: tuple[Intent, ...]) -> Ruling:
    """Each intent is a lantern for the player whom the host named in `about`."""
    owns: dict[str, Any] = {}
    for intent in intents:
        buyer = str(intent.about["id"])
        purse = owns.get(buyer) or world["players"].get(buyer, NEWCOMER)
        if purse["coins"] < PRICE:
            return refuse("too_poor", "There is too little in the purse.")
        owns[buyer] = {"coins": purse["coins"] - PRICE, "lanterns": purse["lanterns"] + 1}
    return accept(*(patch.add(patch.path_to("players", buyer), purse) for buyer, purse in owns.items()))


CAST = standard_cast(
    ScriptedModel(odo, pace=0.02),
    personas={"odo": Persona(text="You are Odo, who sells lanterns.")},
    tools=[sell_lantern],
    world={"players": {}},
    rules={"sale": sale},
)


# -- glue: at most 65 lines


class Host:
    """The stage while the server runs, and the open conversations, by NPC and player."""

    stage: ClassVar[StageThread]
    talks: ClassVar[dict[tuple[Any, Any], ThreadSession]] = {}


def at_server_start() -> None:
    Host.stage = StageThread(CAST, ledger=Path(settings.GAME_DIR, "server", "footlights.ledger")).open()
    in_background(mirror())


def at_server_stop() -> None:
    """Open turns are interrupted; the reactor runs on for a second, in which their players read it."""
    Host.stage.close(timeout=10)


def in_background(work: Any) -> None:
    Deferred.fromCoroutine(work).addErrback(lambda failure: log_err(failure.getTraceback()))


async def mirror() -> None:
    """What was committed, also while this server was down, and where to go on, in one transaction."""
    after = ServerConfig.objects.conf("footlights_mirror", default="genesis")
    feed = await answer(Host.stage.commits_soon(after=after, under="/players"))
    async for commit in read(feed):
        with transaction.atomic():
            for change in commit.changes or ():
                player = ObjectDB.objects.get(id=change.path.rpartition("/")[2])
                assert isinstance(change.value, dict)  # as the rule writes it
                for name, value in change.value.items():
                    player.attributes.add(name, value)
            ServerConfig.objects.conf("footlights_mirror", commit.commit_id)


class CmdTalk(Command):
    """
    Talk to somebody, also while he talks.

    Usage: talk <text>
    """

    key = "talk"

    def func(self) -> None:
        try:
            hear(self.obj, self.caller, self.args.strip())
        except FootlightsError as error:
            self.caller.msg(f"{self.obj.key} does not listen. ({error.code})")


class TalkCmdSet(CmdSet):
    key = "talk"

    def at_cmdset_creation(self) -> None:
        self.add(CmdTalk())


class Merchant(DefaultObject):
    def at_object_creation(self) -> None:
        self.cmdset.add_default(TalkCmdSet, persistent=True)

    def at_msg_receive(self, text: Any = None, from_obj: Any = None, **kwargs: Any) -> bool:
        """Called for what happens in the room. Who leaves it, or the game, is gone a moment later."""
        reactor.callLater(0, part, self, from_obj)
        return True


def hear(npc: Any, player: Any, said: str) -> None:
    session = Host.talks.get((npc, player))
    if session is None:
        own_id, about = f"{npc.key}#{player.id}", {"name": player.key, "id": player.id}
        session = Host.stage.start(SessionParams(session_id=quote_session_id(own_id), about=about))
        Host.talks[npc, player] = session
        in_background(tell(npc, player, session))
    session.begin_turn(said, TurnParams(busy=BusyRule.INTERRUPT))


def part(npc: Any, player: Any) -> None:
    if (npc, player) in Host.talks and player.location != npc.location:
        Host.talks.pop((npc, player)).close_soon()


async def tell(npc: Any, player: Any, session: ThreadSession) -> None:
    """Each sentence when it is complete, because what is sent by telnet is a line."""
    sentence = ""
    async for event in read(session):
        match event.payload:
            case TokenDelta(delta=delta):
                *complete, sentence = re.split(r"(?<=[.!?]) ", sentence + delta)
                for each in complete:
                    player.msg(f'{npc.key} says, "{each}"')
            case TurnFinal():
                player.msg(f'{npc.key} says, "{sentence}"')
                sentence = ""
            case TurnInterrupted():
                player.msg(f"{npc.key} breaks off.")
                sentence = ""
            case CommitFinal(issues=[issue]) if issue.code == "too_poor":
                player.msg(f"Nothing is sold. {issue.message}")
