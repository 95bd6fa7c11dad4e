"""Metadata of the built package: project URLs, and a README whose links work on a package index.

`[tool.footlights] repository` in pyproject.toml is the address of the public repository. While it is empty, the package
has no URLs, and the links of its README stay relative. With an address, every relative link becomes absolute.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(\]\()(?!https?://|#)([^)\s]+\))")


class ReadmeLinks(MetadataHookInterface):
    """Found by hatchling, by its base class."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, object]) -> None:
        root = Path(self.root)
        settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        repository = settings["tool"]["footlights"]["repository"].rstrip("/")
        readme = (root / "README.md").read_text(encoding="utf-8")
        if repository:
            files = f"{repository}/blob/v{settings['project']['version']}/"
            readme = _LINK.sub(rf"\g<1>{files}\g<2>", readme)
            metadata["urls"] = {
                "Homepage": repository,
                "Source": repository,
                "Issues": f"{repository}/issues",
                "Documentation": f"{files}docs/index.md",
                "Changelog": f"{files}CHANGELOG.md",
                "Security": f"{files}SECURITY.md",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
