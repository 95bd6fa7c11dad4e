"""The documents' full-text search: real files, a real index, words and never syntax."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights import RegistrationError, ToolError
from footlights.redaction.redactor import Redactor
from footlights_actors.demo.analyst import documents as analyst_documents
from footlights_actors.demo.analyst.documents import DocumentShelf
from footlights_actors.demo.analyst.tools import DOCUMENTS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "lantern.md", "# The lantern\n\nIt hangs over the door and is lit at dusk.\n")
    write(tmp_path, "cellar/barrels.txt", "Ale in the left barrel, wine in the right one. The lantern is upstairs.\n")
    write(tmp_path, "door.md", "The door opens inward. Mind the step.\n")
    return tmp_path


def write(folder: Path, name: str, said: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(said if isinstance(said, bytes) else said.encode())
    return path


def found(folder: Path | DocumentShelf, words: str, limit: int = 10) -> list[str]:
    shelf = folder if isinstance(folder, DocumentShelf) else DocumentShelf(folder)
    return [hit.identifier for hit in shelf.search(words, limit).hits]


# -- what is found


def test_a_hit_has_a_path_a_title_and_the_place(folder: Path) -> None:
    found = DocumentShelf(folder).search("Which barrels?", 5)
    [hit] = found.hits
    assert (hit.identifier, hit.title) == ("cellar/barrels.txt", "barrels")
    assert hit.snippet == "Ale in the left barrel, wine in the right one. The lantern is upstairs."
    assert found.documents == 3


def test_a_title_weighs_more_than_a_mention(folder: Path) -> None:
    shelf = DocumentShelf(folder)
    assert found(shelf, "lantern") == ["lantern.md", "cellar/barrels.txt"]
    assert shelf.search("lantern", 1).hits[0].title == "The lantern"


def test_any_of_the_words_will_do_and_no_more_are_returned_than_asked_for(folder: Path) -> None:
    assert sorted(found(folder, "dusk or wine or step")) == ["cellar/barrels.txt", "door.md", "lantern.md"]
    assert len(found(folder, "dusk or wine or step", limit=2)) == 2


def test_words_that_say_nothing_are_passed_over_unless_there_are_no_others(folder: Path) -> None:
    assert found(folder, "where is the step") == ["door.md"]
    assert (
        found(folder, "in the") == ["cellar/barrels.txt", "lantern.md", "door.md"] or len(found(folder, "in the")) == 3
    )


def test_nothing_is_found_by_nothing(folder: Path) -> None:
    assert found(folder, "") == found(folder, "?!") == found(folder, "zebra") == []


def test_equal_hits_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("c.md", "a.md", "b/a.md"):
        write(tmp_path, name, "The same words.")
    assert found(tmp_path, "words") == ["a.md", "b/a.md", "c.md"]


def test_what_came_with_the_package_can_be_searched() -> None:
    found = DocumentShelf(DOCUMENTS).search("how does onboarding change adherence", 3)
    assert found.hits[0].identifier == "onboarding.md"
    assert "adherence.md" in [hit.identifier for hit in found.hits]
    assert found.documents == len(list(DOCUMENTS.iterdir()))


# -- words, never syntax


@pytest.mark.parametrize(
    "words",
    ['"', '" OR *', "lantern*", "title:lantern", "NEAR(door step)", "NOT door", "(", "^door", "door AND", "a\0b", "-"],
)
def test_what_looks_like_a_query_is_words(folder: Path, words: str) -> None:
    assert set(found(folder, words)) <= {"lantern.md", "cellar/barrels.txt", "door.md"}


def test_an_operator_is_a_word_like_any_other(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "Whether NEAR or far.")
    write(tmp_path, "b.md", "Far away.")
    assert found(tmp_path, "NEAR(far away)") == ["b.md", "a.md"] or set(found(tmp_path, "NEAR(far)")) == {
        "a.md",
        "b.md",
    }
    assert found(tmp_path, "near") == ["a.md"]


_shelf = DocumentShelf(DOCUMENTS)


@given(words=st.text())
def test_whatever_is_said_is_a_search(words: str) -> None:
    assert len(_shelf.search(words, 3).hits) <= 3


def test_only_so_many_words_count(folder: Path) -> None:
    many = " ".join(f"w{number}" for number in range(analyst_documents.MAX_WORDS))
    assert found(folder, f"{many} barrel") == []
    assert found(folder, f"barrel {many}") == ["cellar/barrels.txt"]


# -- what belongs to it


def test_a_change_is_found_and_what_is_gone_is_not(folder: Path) -> None:
    shelf = DocumentShelf(folder)
    assert found(shelf, "zebra") == []
    write(folder, "zoo.md", "A zebra.")
    assert found(shelf, "zebra") == ["zoo.md"]
    write(folder, "zoo.md", "A zebra no more: an okapi.")
    assert found(shelf, "okapi") == ["zoo.md"]
    (folder / "zoo.md").unlink()
    assert found(shelf, "zebra") == []


def test_nothing_is_read_again_while_nothing_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = DocumentShelf(folder)
    assert found(shelf, "barrel") == ["cellar/barrels.txt"]
    monkeypatch.setattr(analyst_documents, "_index_of", None)  # nobody could call this
    assert found(shelf, "barrel") == ["cellar/barrels.txt"]


def test_only_documents_inside_belong_to_it(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = write(tmp_path_factory.mktemp("elsewhere"), "secret.md", "zebra")
    (folder / "link.md").symlink_to(elsewhere)
    (folder / "linked").symlink_to(elsewhere.parent)
    write(folder, "picture.png", "zebra")
    write(folder, ".hidden.md", "zebra")
    write(folder, ".git/note.md", "zebra")
    write(folder, "new\nline.md", "zebra")
    (folder / os.fsdecode(b"\xff.md")).write_text("zebra")
    (folder / "folder.md").mkdir()
    assert found(folder, "zebra") == []


def test_what_is_no_text_does_no_harm(tmp_path: Path) -> None:
    write(tmp_path, "a.md", b"\xff\xfe\0zebra\0 \x80")
    assert found(tmp_path, "zebra") == ["a.md"]


def test_it_takes_only_so_much(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "zoo.md", 100 * "x " + "zebra")
    monkeypatch.setattr(analyst_documents, "MAX_DOCUMENT_BYTES", 100)
    assert found(folder, "zebra") == [], "of each document"
    monkeypatch.setattr(analyst_documents, "MAX_TOTAL_BYTES", 150)
    assert DocumentShelf(folder).search("x", 5).documents == 2, "of all documents"
    monkeypatch.setattr(analyst_documents, "MAX_DOCUMENTS", 1)
    assert DocumentShelf(folder).search("x", 5).documents == 1
    monkeypatch.setattr(analyst_documents, "MAX_FILES_SEEN", 0)
    assert DocumentShelf(folder).search("x", 5).documents == 0


def test_a_long_snippet_is_cut(tmp_path: Path) -> None:
    write(tmp_path, "a.md", f"zebra {1000 * 'x'}")
    [hit] = DocumentShelf(tmp_path).search("zebra", 1).hits
    assert len(hit.snippet) == analyst_documents.SNIPPET_CHARS


# -- when it cannot be read


def test_a_folder_that_is_none_is_refused_and_not_named(folder: Path) -> None:
    for path in (folder / "nowhere", folder / "door.md"):
        with pytest.raises(RegistrationError) as refused:
            DocumentShelf(path)
        assert str(path) not in str(refused.value)


def test_a_folder_that_goes_away_is_an_answer_for_the_model(tmp_path: Path) -> None:
    shelf = DocumentShelf(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(ToolError, match="documents cannot be read"):
        shelf.search("zebra", 1)


def test_a_document_that_cannot_be_read_is_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = DocumentShelf(folder)
    listed = analyst_documents._files

    def and_then_gone(place: Path) -> list[object]:
        files = list(listed(place))
        (folder / "door.md").unlink(missing_ok=True)
        return [*files]

    monkeypatch.setattr(analyst_documents, "_files", and_then_gone)
    assert shelf.search("door", 5).documents == 2
    assert found(shelf, "lantern") == ["lantern.md", "cellar/barrels.txt"]


def test_secrets_are_taken_out_before_anything_else_so_that_none_is_found_or_cut_in_half(tmp_path: Path) -> None:
    filler = " ".join(["word"] * 40)
    (tmp_path / "a.md").write_text(
        f"# Ask ada@example.org\n{filler} password: correct horse staple zebra, a lion {filler}"
    )
    shelf = DocumentShelf(tmp_path)
    assert shelf.search("zebra", 5).hits == ()
    [hit] = shelf.search("lion", 5).hits
    assert (hit.title, hit.is_redacted) == ("Ask [redacted]", True)
    assert "staple" not in hit.snippet
    assert DocumentShelf(tmp_path, Redactor(patterns=(), fields=())).search("zebra", 5).hits[0].is_redacted is False
