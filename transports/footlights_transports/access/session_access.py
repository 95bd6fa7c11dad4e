"""Session access: the commands of users on one stage, within their ownership, quotas and rates. Every server uses it.

Every method either does what it says or raises a `FootlightsError` whose code is on the wire.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import trio
from attrs import evolve

from footlights.authority.world import find_in
from footlights.authority.world_part import check_size
from footlights.errors import (
    Busy,
    CommitPending,
    CommitUnknown,
    LedgerUnavailable,
    SessionClosed,
    TooLarge,
    UnknownSession,
)
from footlights.fair_share import FairShare
from footlights.ids import epoch_of_session, owner_of
from footlights.notebooks.entries import act_in
from footlights.stream.ledger_tail import GENESIS
from footlights_transports.access.admission import Admission
from footlights_transports.access.followed_commits import FollowedCommits
from footlights_transports.access.idle import Idleness
from footlights_transports.access.sealed_cursors import SealedCursors
from footlights_transports.errors import Unauthorized

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from footlights import InteractionSession, SessionParams, Stage, Subscription, TurnParams
    from footlights.authority import CommitRecord, Intent
    from footlights.events import CommitFinal, JsonValue
    from footlights.modes import ModeDecision
    from footlights.stream.commit_feed import CommitFeed
    from footlights.turn.summary import TurnSummary
    from footlights_transports.access.policy import AccessPolicy, User


MAX_CLOSED = 10_000
_COMMIT_GLANCE = 1.0
"""Seconds between two looks, for a caller that waits for a commit, at whether a rule does not return."""
_NOTHING: Mapping[str, JsonValue] = MappingProxyType({})


class AccessWatch(Protocol):
    """Measures what an access does."""

    def turn_accepted(self, seconds: float) -> None:
        """A turn was accepted in this time."""
        ...

    def turns_canceled(self, session_id: str, turn_ids: Collection[str], at: float) -> None:
        """A cancel at this time interrupted these turns. They are not settled yet."""
        ...


class SessionAccess:
    """Access to one stage. It knows which sessions each user has open.

    `admission` counts what users do in all worlds of the process; without it, this is the only one.
    """

    def __init__(
        self,
        stage: Stage,
        policy: AccessPolicy | None = None,
        watch: AccessWatch | None = None,
        *,
        admission: Admission | None = None,
    ) -> None:
        self.stage = stage
        self.admission = admission or Admission(policy)
        self.policy = self.admission.policy
        self.incidents = self.admission.incidents
        self._watch = watch
        self._open: dict[User, set[str]] = {}
        self._turns: dict[tuple[str, str], User] = {}
        """The user of each open turn, by session id and turn id."""
        self._turns_of: Counter[User] = Counter()
        self._numbered: dict[User, int] = {}
        self._closed: OrderedDict[str, None] = OrderedDict()
        """Sessions that were closed here. Subscribing with a cursor does not open them again."""
        self._cursors = SealedCursors()
        self.idleness = Idleness(self.policy.limits.session_idle_seconds)
        self.turn_listeners: list[Callable[[str, str, str], None]] = []
        """Called with session id, turn id and input of each turn that begins. Each must be a short, plain call."""
        self.set_shares()
        self.admission.accesses[self] = None
        self._is_retired = False
        stage.call_when_settled(self._turn_settled)

    def retire(self) -> None:
        """The stage is closed: what users held in it counts no more."""
        self.admission.accesses.pop(self, None)
        self._is_retired = True
        self.admission.turns_of -= self._turns_of

    def set_shares(self) -> None:
        """Divide the stage among users as the policy says."""
        wire, of_stage, is_divided = self.policy.limits, self.stage.limits, self.policy.has_many_users
        self.stage.divide(is_divided=is_divided)
        self._share_of_sessions = FairShare(
            "open sessions", "max_sessions", of_stage.max_sessions, wire.max_sessions_per_user, is_divided
        )
        self._share_of_turns = FairShare(
            "open turns", "max_open_turns", of_stage.max_open_turns, wire.max_open_turns_per_user, is_divided
        )

    def start(self, user: User, params: SessionParams) -> InteractionSession:
        self.admission.check_doors()
        about = self._about(user, params.about)
        self._check_room(user)
        params = self.policy.named_for(user, evolve(params, about=about))
        if params.session_id is None and user.name is not None:
            params = evolve(params, session_id=self._next_name(user))
        session = self._seen(self.stage.start(params))
        self._open.setdefault(user, set()).add(session.session_id)
        self._closed.pop(session.session_id, None)
        return session

    def session(self, user: User, session_id: str) -> InteractionSession:
        """An open session of this user. Raises `UnknownSession`."""
        self.policy.check_owner(user, session_id)
        self.idleness.use(session_id)
        try:
            return self._seen(self.stage.session(session_id))
        except UnknownSession:
            # A closed stage has forgotten its sessions, and clients may resume them later: that is another error.
            self.admission.check_doors()
            raise UnknownSession("There is no open session with that id.") from None

    def subscribe(
        self,
        user: User,
        session_id: str,
        after: Mapping[str, int] | None,
        terminal_seen: Collection[str],
        *,
        remote_models: bool = False,
        about: Mapping[str, JsonValue] = _NOTHING,
    ) -> Subscription:
        """Subscribe to a session.

        With a cursor, the session may be from before a restart, and is then opened again; or it may have been closed
        recently, and then the stream has what was missed, and ends. Consent is not kept over a restart, so
        `remote_models` gives it again; nor is what a game server said about the player, so `about` says it again.
        """
        about = self._about(user, about)
        if after is None:
            session = self.session(user, session_id)
        else:
            self.policy.check_owner(user, session_id)
            self.idleness.use(session_id)
            session = self._returned_to(user, session_id, remote_models, about)
        return self._seen(session).subscribe(after=after, terminal_seen=terminal_seen)

    def as_seen(self, session_id: str) -> InteractionSession:
        """An open session of any user, for operators. Raises `UnknownSession`."""
        return self._seen(self.stage.session(session_id))

    def _seen(self, session: InteractionSession) -> InteractionSession:
        """The session as users of this access see it."""
        return session

    def begin_turn(
        self, user: User, session_id: str, said: str, params: TurnParams, decision: ModeDecision | None = None
    ) -> str:
        began = trio.current_time()
        session = self.session(user, session_id)
        self._check_may_begin(user)
        turn_id = session.begin_turn(said, params, decision=decision)
        self._count_turn(user, session_id, turn_id, said, began)
        return turn_id

    async def begin_turn_once(
        self,
        user: User,
        session_id: str,
        said: str,
        params: TurnParams,
        request_id: str,
        decision: ModeDecision | None = None,
    ) -> str:
        """Like `begin_turn`; a repeated `request_id` returns the turn that it began, and is not charged or refused."""
        began = trio.current_time()
        session = self.session(user, session_id)
        is_new = False

        def admit() -> None:
            nonlocal is_new
            self._check_may_begin(user)
            is_new = True

        turn_id = await session.begin_turn_once(said, params, request_id=request_id, decision=decision, admit=admit)
        if is_new:
            self._count_turn(user, session_id, turn_id, said, began)
        return turn_id

    def _check_may_begin(self, user: User) -> None:
        self.admission.check_doors()
        held, owned, is_exempt = self._turns_of[user], self.admission.turns_of[user], self.policy.is_game_server(user)
        self._share_of_turns.check(held, self.stage.open_turns, owned=owned, is_exempt=is_exempt)

    def _hold_turn(self, user: User, count: int) -> None:
        self._turns_of[user] += count
        if not self._is_retired:  # views that hide words have an access of their own, which shares all this
            self.admission.turns_of[user] += count

    def _count_turn(self, user: User, session_id: str, turn_id: str, said: str, began: float) -> None:
        self._turns[session_id, turn_id] = user
        self._hold_turn(user, 1)
        if self._watch is not None:
            self._watch.turn_accepted(trio.current_time() - began)
        self._tell_listeners(session_id, turn_id, said)

    def _turn_settled(self, session_id: str, turn_id: str) -> None:
        user = self._turns.pop((session_id, turn_id), None)
        if user is not None:  # else the host began the turn itself
            self._hold_turn(user, -1)

    def _tell_listeners(self, session_id: str, turn_id: str, said: str) -> None:
        """Call the listeners. The supervision boundary of listeners: the turn goes on whatever they raise."""
        for listener in self.turn_listeners:
            try:
                listener(session_id, turn_id, said)
            except Exception as error:  # noqa: BLE001 - see above
                self.incidents.failed("turn_listener", error)

    def cancel(self, user: User, session_id: str, turn_id: str | None) -> tuple[str, ...]:
        session = self.session(user, session_id)
        if self._watch is None:
            return session.cancel(turn_id)
        began = trio.current_time()
        canceled = session.cancel(turn_id)
        self._watch.turns_canceled(session_id, canceled, began)
        return canceled

    async def finalize(self, user: User, session_id: str, turn_id: str) -> CommitFinal:
        """Wait for the commit of a turn. Raises `CommitPending` if it waits for a rule that does not return."""
        try:
            while True:
                with trio.move_on_after(_COMMIT_GLANCE):
                    return await self.session(user, session_id).finalize(turn_id).wait()
                rule = self.stage.overdue_rule
                if rule is not None:
                    raise CommitPending(f"The commit is pending: {rule} has not returned. Ask again.")
        except CommitUnknown:
            raise SessionClosed("The server ends before that is known. Ask again when it is open again.") from None
        except LedgerUnavailable as error:
            raise Busy("The ledger cannot be read now. Ask again.") from error

    def summary(self, user: User, session_id: str, turn_id: str) -> TurnSummary | None:
        """How a turn of an open session ended, and where its time went; None if it is not settled, or not retained."""
        return self.session(user, session_id).summary(turn_id)

    async def commits(self, user: User, session_id: str, limit: int) -> Sequence[CommitRecord]:
        """The newest commits of a session, in their order. It may be closed, if it has any."""
        self.policy.check_owner(user, session_id)
        commits = await self.stage.ledger.latest(session_id, limit)
        if not commits:
            self.session(user, session_id)
        return commits

    async def host_commit(self, user: User, intents: Sequence[Intent], why: str) -> CommitFinal:
        """A commit outside of sessions. Raises `Unauthorized` unless the user is a game server.

        It also does so for an act on a notebook of somebody who is not a player of this game server.
        """
        if not self.policy.is_game_server(user):
            raise Unauthorized("Only a game server commits: game_server = true, in [users] of the settings.")
        if any(act is not None and owner_of(act[0]) != user.name for act in map(act_in, intents)):
            raise Unauthorized("A game server may act on the notebooks of its own players only.")
        self._check_may_begin(user)
        self._hold_turn(user, 1)  # it shares the places of turns with the turns of players
        try:
            return await self.stage.commit(intents, why)
        except CommitUnknown:
            raise SessionClosed("The server ends before that is known. Ask again when it is open again.") from None
        finally:
            self._hold_turn(user, -1)

    async def follow_commits(self, user: User, after: str | None, under: str) -> FollowedCommits:
        """The commits that change a part of the world: whole for those who are trusted with all of them, otherwise what
        this user sees change. Raises `Unauthorized` if something of that part is hidden from one who gets them whole.
        """
        try:
            if self._is_trusted(user):
                feed = self.stage.commits(after=after, under=under)
                self._check_sees(user, under)
                shown = await _begun(feed)
                return FollowedCommits(feed, shown, check=partial(self._check_sees, user, under))
            known = after if after in (None, GENESIS) else self._cursors.open(user, after)
            seen = self.stage.commits_for(user, after=known, under=under)
            shown = await seen.start()
            return FollowedCommits(seen, shown if after is None else None, seal=partial(self._cursors.seal, user))
        except LedgerUnavailable as error:
            raise Busy("The ledger cannot be read now. Ask again.") from error

    def check_operator(self, user: User) -> None:
        """Raises `Unauthorized` unless the user operates the server. Without tokens, everybody on this machine does."""
        if not user.operator and user.name is not None:
            raise Unauthorized("Only operators may see that: operator = true, in [users] of the settings.")

    def _is_trusted(self, user: User) -> bool:
        """Whether nothing of a commit needs to be hidden: the anonymous user owns all sessions, and so all records."""
        return user.operator or user.name is None or self.policy.is_game_server(user)

    def _check_sees(self, user: User, under: str) -> None:
        """Raises `Unauthorized` if the user has lost that trust, or the cast's `visibility` hides something there."""
        if not self._is_trusted(user) or find_in(self.stage.world_for(user), under) != find_in(self.stage.world, under):
            raise Unauthorized("You may not see all of that part of the world.")

    def heard(self, user: User, session_id: str, turn_id: str, seq: int) -> None:
        self.session(user, session_id).heard(turn_id, seq)

    async def close(self, user: User, session_id: str) -> None:
        """Close a session, and wait for that. It closes also if this call is cancelled."""
        session = self.session(user, session_id)
        self._open.get(user, set()).discard(session_id)
        self._note_closed(session_id)
        await session.close()

    def open_sessions(self) -> list[tuple[User, InteractionSession]]:
        """Every open session of every user."""
        named = [(user, each) for user, names in self._open.items() for each in names if self._is_open(each)]
        return [(user, self.stage.session(each)) for user, each in named]

    async def let_rest(self, user: User, session: InteractionSession) -> None:
        """Close an idle session. If it has a name, it may be resumed, unlike a session that its user closed."""
        self._open[user].discard(session.session_id)
        if epoch_of_session(session.session_id) is not None:
            # A stage never reuses its own numbers, so this session can only be read to its end.
            self._note_closed(session.session_id)
        await session.close()

    def _note_closed(self, session_id: str) -> None:
        self._closed[session_id] = None
        while len(self._closed) > MAX_CLOSED:
            self._closed.popitem(last=False)

    def _returned_to(
        self, user: User, session_id: str, remote_models: bool, about: Mapping[str, JsonValue]
    ) -> InteractionSession:
        try:
            return self.stage.session(session_id)
        except UnknownSession:
            if session_id in self._closed:
                return self.stage.closed_session(session_id)
            self._check_room(user)
            session = self.stage.resume(session_id, remote_models=remote_models, about=about)
            self._open.setdefault(user, set()).add(session_id)
            return session

    def _about(self, user: User, about: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """What is said about the player of a session.

        A game server speaks for many players. Those whom it does not tell apart by an `id` have null, and no notebook.
        """
        if self.policy.is_game_server(user):
            return {"id": None, **about}
        if about:
            raise Unauthorized("Only a game server says something about a player: game_server = true, in [users].")
        return about

    def _next_name(self, user: User) -> str:
        while True:
            number = self._numbered[user] = self._numbered.get(user, 0) + 1
            name = f"{user.name}:s{self.stage.epoch}-{number:06d}"
            # The user may have chosen this name itself.
            if name not in self._closed and not self._is_open(name):
                return name

    def _check_room(self, user: User) -> None:
        try:
            self._check_share_of_sessions(user)
        except Busy:
            for access in self.admission.accesses:  # the host may have closed some
                access.forget_closed(user)
            self._check_share_of_sessions(user)

    def _check_share_of_sessions(self, user: User) -> None:
        held, is_exempt = self._held(user), self.policy.is_game_server(user)
        owned = held if is_exempt else sum(each._held(user) for each in self.admission.accesses)
        self._share_of_sessions.check(held, self.stage.open_sessions, owned=owned, is_exempt=is_exempt)

    def _held(self, user: User) -> int:
        return len(self._open.get(user, ()))

    def forget_closed(self, user: User) -> None:
        """Count no session of this user that is not open any more."""
        mine = self._open.get(user, set())
        mine.intersection_update({each for each in mine if self._is_open(each)})

    def _is_open(self, session_id: str) -> bool:
        try:
            self.stage.session(session_id)
        except UnknownSession:
            return False
        return True


async def _begun(feed: CommitFeed) -> tuple[Any, ...] | None:
    """The world where the feed begins, if it begins now; nothing of one that is too large to be shown."""
    if feed.cursor is not None:
        await feed.begin()
        return None
    shown = find_in(await feed.start(), feed.under)
    try:
        for part in shown:
            check_size(part)
    except TooLarge:
        return ()
    return shown


class CoveredAccess(SessionAccess):
    """The same access, for a view whose text is covered: its sessions show nothing that the output filter hides."""

    def __init__(self, access: SessionAccess) -> None:
        self.__dict__ = access.__dict__  # one state, so that all views share the same quotas

    def _seen(self, session: InteractionSession) -> InteractionSession:
        return session.covered
