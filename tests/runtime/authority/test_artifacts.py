"""Artifacts: named by their content, stored with their commit, and verifiable from a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3

from footlights import CommitFinal, CommitOutcome, Ext, open_stage
from footlights.authority import Artifact, RuleBook, accept, canonical, every_turn, recompute_digest
from footlights.authority.artifacts import NEWS, news_ext, news_in
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.errors import RegistrationError, TooLarge
from footlights.testing import only, take_turn
from footlights_actors import Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from footlights import Cast
    from footlights.authority import Ruling


def tavern() -> Cast:
    numbers: Iterator[int] = iter(range(100))

    @every_turn
    def deed(world: object, intents: object) -> Ruling:
        return accept(artifacts=[Artifact("deed", {"room": next(numbers)})])

    return standard_cast(ScriptedModel(lambda _: [Say("Yours.")]), rules=RuleBook({"deed": deed}))


def test_its_name_is_the_digest_of_its_document() -> None:
    deed = Artifact("deed", {"room": 3})
    document = b'{"authoritative":true,"data":{"room":3},"kind":"deed"}'
    assert canonical(deed.document) == document
    assert deed.ref == f"blake3:{blake3(document).hexdigest()}"


def test_it_stays_what_it_was_whatever_becomes_of_what_it_was_made_from() -> None:
    rooms: list[Any] = [1, 2]
    deed = Artifact("deed", {"rooms": rooms})
    rooms.append(3)
    assert deed == Artifact("deed", {"rooms": [1, 2]})


def test_only_news_that_an_event_may_hold_is_repeated_in_it() -> None:
    deep: Any = 0
    for _ in range(40):
        deep = [deep]
    news = Artifact("mission.event", {"change": "The siren sounds."})
    ext = news_ext([Artifact("deed", {"room": 3}), Artifact("mission.event", deep), news])
    assert news_in(CommitFinal("d", CommitOutcome.OK, ext=ext)) == (news,)
    odd = Ext(NEWS, [7, {"kind": "Bad kind", "data": 1}, {"kind": "mission.event"}])
    for other in (None, Ext("ext.host.notes", []), Ext(NEWS, {}), odd):
        assert news_in(CommitFinal("d", CommitOutcome.OK, ext=other)) == ()


@pytest.mark.parametrize("kind", ["", "Deed", "3d", "a b", "x" * 65])
def test_a_kind_is_a_plain_word(kind: str) -> None:
    with pytest.raises(RegistrationError):
        Artifact(kind, None)


def test_one_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TooLarge):
        Artifact("deed", loop)


@pytest.mark.shows("core-24")
async def test_it_is_named_in_commit_final_and_kept_with_the_commit(tmp_path: Path) -> None:
    path = tmp_path / "tavern.ledger"
    async with open_stage(tavern(), ledger=path) as stage:
        session = stage.start()
        commits = [only(await take_turn(session, "A room?"), CommitFinal) for _ in range(2)]
        turn_ids = ("t1-000001", "t1-000002")
        records = [await stage.ledger.find(session.session_id, turn_id) for turn_id in turn_ids]
    deeds = [Artifact("deed", {"room": number}) for number in range(2)]
    assert [commit.artifact_refs for commit in commits] == [(deed.ref,) for deed in deeds]
    for record, deed in zip(records, deeds, strict=True):
        assert record is not None
        assert record.artifacts == (deed,)
        assert recompute_digest(record) == record.commit_digest
    with SqliteReader(path) as reader:
        assert [entry.position for entry in reader.mentioning(deeds[1].ref)] == [2]
        assert reader.mentioning("blake3:nothing") == []
