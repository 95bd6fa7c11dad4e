"""The feed of what one user sees change: his view of each commit, and nothing else."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from footlights import InvalidCommand, open_stage
from footlights.authority import (
    Intent,
    IntentType,
    JsonWorld,
    MemoryLedger,
    User,
    accept,
    apply_patch,
    patch,
)
from footlights.authority.patch import from_json, to_json
from footlights.authority.world import plain_view
from footlights.errors import TooLarge
from footlights.stream import past_worlds
from footlights.testing import cancel_everywhere
from footlights_actors import Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from footlights import Cast
    from footlights.authority.rules import Ruling
    from footlights.stream.user_feed import UserFeed

BOB = User("bob")


def edit(_world: Any, intents: tuple[Intent, ...]) -> Ruling:
    return accept(*(from_json(op) for intent in intents for op in intent.payload))  # type: ignore[union-attr]


def edits(*operations: patch.PatchOp) -> list[Intent]:
    return [Intent(IntentType.DECISION, "edit", [to_json(op) for op in operations])]


def cast(world: Any, visibility: Any) -> Cast:
    return standard_cast(
        ScriptedModel(lambda _: [Say("Yes?")]), world=JsonWorld(world), rules={"edit": edit}, visibility=visibility
    )


def copy_of(shown: Any) -> Any:
    """What was shown, as plain data."""
    if isinstance(shown, dict):
        return {key: copy_of(each) for key, each in shown.items()}
    return [copy_of(each) for each in shown] if isinstance(shown, list) else plain_or(shown)


def plain_or(shown: Any) -> Any:
    try:
        return plain_view(shown)
    except TypeError:
        return shown


def words_in(value: Any) -> set[str]:
    """Every key and every scalar in a value."""
    if isinstance(value, dict):
        return set(value).union(*map(words_in, value.values()))
    return set[str]().union(*map(words_in, value)) if isinstance(value, list) else {repr(value)}


NAMES = st.sampled_from("abcd")
VALUES = st.recursive(
    st.integers(0, 10**6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)
CHANGES = st.lists(
    st.one_of(
        st.builds(lambda name, value: patch.add(f"/{name}", value), NAMES, VALUES),
        st.builds(lambda name, other, value: patch.add(f"/rooms/{name}", {other: value}), NAMES, NAMES, VALUES),
        st.builds(lambda dark: patch.replace("/dark", sorted(dark)), st.sets(NAMES)),
        st.builds(lambda value: patch.add("/things/0", value), VALUES),
        st.builds(lambda one, other: patch.copy(f"/rooms/{one}", f"/rooms/{other}"), st.just("a"), NAMES),
    ),
    min_size=1,
    max_size=3,
)


def by_the_light(veil: int) -> Any:
    """A `visibility` that hides what the world says is dark: members, rooms, or things, as the veil has it."""

    def visibility(view: Any, user: User) -> Any:
        assert user == BOB
        dark = set(view["dark"])
        shown = {key: each for key, each in view.items() if key not in dark and key != "dark"}
        if veil & 1:
            shown["rooms"] = {key: each for key, each in view["rooms"].items() if key not in dark}
        if veil & 2:
            shown["things"] = [each for each in view["things"] if isinstance(each, int) and each % 2 == len(dark) % 2]
        return shown if not veil & 4 or "d" not in dark else {"asleep": True}

    return visibility


@settings(max_examples=40)
@given(
    veil=st.integers(0, 7),
    commits=st.lists(CHANGES, min_size=1, max_size=9),
    begins=st.integers(0, 9),
    lives=st.integers(0, 9),
)
def test_a_user_is_shown_what_he_sees_at_each_commit_and_nothing_else(
    veil: int, commits: list[list[patch.PatchOp]], begins: int, lives: int
) -> None:
    """The first `lives` commits are made before the feed is made, which begins after the first `begins` of them.

    Everybody sees the last one, so that what was told before it and should not have been is found.
    """
    commits = [*commits, [patch.replace("", {"dark": [], "rooms": {}, "things": [], "end": len(commits)})]]

    async def story() -> None:
        visibility = by_the_light(veil)
        world: Any = {"dark": ["d"], "rooms": {"a": {"a": 0}}, "things": [1, 2, 3], "a": 7, "d": 8}
        async with open_stage(cast(world, visibility), ledger=MemoryLedger()) as stage:
            ids, views = ["genesis"], [copy_of(visibility(world, BOB))]
            feed: UserFeed | None = None
            for number, change in enumerate([*commits, []]):
                if number == min(lives, len(commits)):
                    feed = stage.commits_for(BOB, after=ids[min(begins, number)])
                    views = views[min(begins, number) :]
                    (start,) = await feed.start()
                    assert copy_of(start) == views[0]
                if change:
                    done = await stage.commit(edits(*change), "an edit")
                    assert done.commit_id is not None
                    ids.append(done.commit_id)
                    world = apply_patch(world, change) if done.commit_outcome == "ok" else world
                    views.append(copy_of(visibility(world, BOB)))
            assert feed is not None
            mirror = views[0]
            for before, after in itertools.pairwise(views):
                if before == after:
                    continue
                seen = await anext(feed)
                mirror = apply_patch(mirror, seen.changes)
                assert mirror == after
                assert (seen.session_id, seen.turn_id) == (None, None)
                for each in seen.changes:
                    told = set(patch.tokens_of(each.path)) | words_in(each.value if each.op != "remove" else {})
                    indexes = {str(index) for index in range(20)}
                    assert told <= words_in(before) | words_in(after) | indexes
                    assert words_in(each.value if each.op != "remove" else {}) <= words_in(after)
            assert mirror == copy_of(visibility(world, BOB))

    trio.run(story)


async def test_a_user_goes_on_from_the_ledger_after_a_restart(tmp_path: Any) -> None:
    path, hook = tmp_path / "game.ledger", by_the_light(0)
    async with open_stage(cast({"dark": ["b"], "a": 0, "b": 0}, hook), ledger=path) as stage:
        feed = stage.commits_for(BOB)
        assert copy_of((await feed.start())[0]) == {"a": 0}
        for number in range(1, 100):  # more than a page
            await stage.commit(edits(patch.replace("/" + "ab"[number % 2], number)), "an edit")
        assert (await anext(feed)).changes == (patch.replace("/a", 2),)
        cursor = feed.cursor
    async with open_stage(cast({"dark": ["b"], "a": 0, "b": 0}, hook), ledger=path) as stage:
        feed = stage.commits_for(BOB, after=cursor, under="/a")
        assert await feed.start() == (2,)
        assert [(await anext(feed)).changes[0].value for _ in range(48)] == list(range(4, 100, 2))
        await stage.commit(edits(patch.remove("/a")), "gone")
        assert (await anext(feed)).changes == (patch.remove("/a"),)
        await stage.commit(edits(patch.add("/a", {"b": 1})), "back")
        assert (await anext(feed)).changes == (patch.add("/a", {"b": 1}),)


async def test_who_is_too_far_behind_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_worlds, "REACH", 70)
    monkeypatch.setattr("footlights.stream.user_feed.REACH", 70)
    async with open_stage(cast({"a": 0}, lambda view, user: view)) as stage:
        slow, idle = stage.commits_for(BOB), stage.commits_for(BOB)
        await slow.start()
        await idle.start()
        for number in range(150):
            await stage.commit(edits(patch.replace("/a", number + 1)), "an edit")
        for feed in (slow, stage.commits_for(BOB, after="genesis")):
            with pytest.raises(InvalidCommand, match="Begin anew"):
                await anext(feed)
        anew = stage.commits_for(BOB)
        assert copy_of((await anew.start())[0]) == {"a": 150}


async def test_commits_of_another_world_are_not_shown_as_this_one() -> None:
    ledger = MemoryLedger()
    async with open_stage(cast({"a": 0}, lambda view, user: view), ledger=ledger) as stage:
        await stage.commit(edits(patch.add("/b", 1)), "of the first epoch")
    async with open_stage(cast({"a": 0}, lambda view, user: view), ledger=ledger) as stage:
        for number in range(2):
            await stage.commit(edits(patch.replace("/a", number + 1)), "of the second, where there is no b")
        with pytest.raises(InvalidCommand, match="Begin anew"):
            await anext(stage.commits_for(BOB, after="genesis"))


async def test_a_user_is_told_of_his_own_turns_by_name() -> None:
    async with open_stage(cast({"a": 0}, lambda view, user: view)) as stage:
        feed = stage.commits_for(User("@host"))  # the host's own commits, as those of a user
        await feed.start()
        await stage.commit(edits(patch.replace("/a", 1)), "his own")
        seen = await anext(feed)
        assert (seen.session_id, seen.turn_id) == ("@host", "t1-000001")


async def test_what_a_user_may_not_be_shown_at_once_ends_the_feed() -> None:
    async with open_stage(cast({"a": "x" * 1_000_000}, lambda view, user: view)) as stage:
        with pytest.raises(TooLarge):
            await stage.commits_for(BOB).start()
        assert await stage.commits_for(BOB, under="/b").start() == ()
        with pytest.raises(InvalidCommand):
            stage.commits_for(BOB, under="b")


async def test_a_sight_that_never_returns_holds_neither_the_loop_nor_the_close() -> None:
    asked, go = threading.Event(), threading.Event()

    def blind(view: Any, user: User) -> Any:
        asked.set()
        go.wait()
        return view

    async with open_stage(cast({"a": 0}, blind)) as stage, trio.open_nursery() as nursery:
        nursery.start_soon(stage.commits_for(BOB).start)
        await trio.to_thread.run_sync(asked.wait)
        assert (await stage.commit(edits(patch.replace("/a", 1)), "meanwhile")).commit_outcome == "ok"
        nursery.cancel_scope.cancel()
    go.set()


def test_a_user_whose_feed_is_cancelled_anywhere_misses_nothing_and_is_told_nothing_twice() -> None:
    async def scenario() -> None:
        async with open_stage(cast({"dark": ["b"], "a": 0, "b": 0}, by_the_light(0))) as stage:
            feed, found = stage.commits_for(BOB, after="genesis", under="/a"), list[Any]()
            try:
                for number in (1, 2):
                    await stage.commit(edits(patch.replace("/a", number), patch.replace("/b", number)), "an edit")
                    await stage.commit(edits(patch.replace("/b", 0)), "in the dark")
                    found += (await anext(feed)).changes
            finally:
                with trio.CancelScope(shield=True):
                    while stage.statistics().commits_waiting:  # noqa: ASYNC110 - a stage has no event for that
                        await trio.sleep(0.1)
                    while len(found) < stage.world["a"]:
                        found += (await anext(feed)).changes
                assert found == [patch.replace("/a", number + 1) for number in range(stage.world["a"])]

    assert cancel_everywhere(scenario, orders=1, pairs=0).points > 9
