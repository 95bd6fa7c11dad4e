"""Settings of the docs site: `make docs` builds it from the same Markdown files that a forge shows.

The source folder is the checkout, because pages link to files outside docs. The navigation is made from docs/index.md:
each of its sections becomes a part of the table of contents.
"""

import re
from typing import Any

project = "Footlights"
author = "The Footlights authors"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "benchmarks/**.md"]
exclude_patterns = [".*", "actors", "build", "runtime", "tests", "transports"]
html_theme = "alabaster"
html_theme_options = {
    "description": "Turns that stream, commits that are true.",
    "page_width": "75rem",
    "fixed_sidebar": True,
}
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_copy_source = False
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # there is no lexer for mermaid

_PROJECT = ["README", "CHANGELOG", "CONTRIBUTING", "SECURITY", "benchmarks/README", "benchmarks/peers/README"]
_SECTION = re.compile(r"^## (.+?)$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_PAGE = re.compile(r"^- \[[^]]+\]\(([^)#]+)\.md\)", re.MULTILINE)


def add_navigation(_app: object, name: str, source: list[str]) -> None:
    """Append a hidden table of contents to the index, one for each of its sections."""
    if name == root_doc:
        sections = [(title, _PAGE.findall(body)) for title, body in _SECTION.findall(source[0])]
        for title, names in (*sections, ("Project", [f"../{each}" for each in _PROJECT])):
            pages = "\n".join(names)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"


def setup(app: Any) -> None:
    app.connect("source-read", add_navigation)
