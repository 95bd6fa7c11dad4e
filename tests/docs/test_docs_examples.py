"""Every Python block in the README and the docs runs, and prints what the page says it prints.

The blocks of a page are one program, told in parts. A `text output` block that follows a part is what that part
prints. A `python fragment` is not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kit.pages import PAGES, examples
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = [example for page in PAGES for example in examples(page)]


@pytest.mark.parametrize("page", sorted({example.page for example in EXAMPLES}), ids=lambda page: page.name)
def test_the_examples_of_a_page_run_and_print_what_it_says(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for example in EXAMPLES:
        if example.page == page:
            # Blank lines in front let a traceback name the line of the page.
            program = compile("\n" * example.line + example.program, str(page), "exec", dont_inherit=True)
            exec(program, names)
            printed = capsys.readouterr().out
            if example.output is not None:
                assert printed == example.output


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_a_first_reader_is_shown_a_program_and_its_output(page: str) -> None:
    assert [example.output for example in EXAMPLES if example.page == ROOT / page and example.output]


def test_every_output_belongs_to_a_program() -> None:
    outputs = sum(page.read_text(encoding="utf-8").count("```text output\n") for page in PAGES)
    assert outputs == sum(example.output is not None for example in EXAMPLES)


def test_fragments_are_few() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert text.count("```python fragment\n") <= 4
