"""Files for deployment: each agrees with the program, as far as that can be seen without a container engine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from footlights_transports.config.schema import SERVER
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DEPLOY = ROOT / "docs" / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PORTS = {each.default for each in SERVER if each.name in ("ws_port", "http_port")}
SUPPORTED = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


def seconds(found: re.Match[str] | None) -> int:
    assert found is not None
    return int(found[1])


def test_the_image_installs_extras_that_exist_with_the_pinned_versions() -> None:
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", DOCKERFILE)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert (ROOT / ".ci" / "constraints.txt").is_file()
    assert set(re.findall(r"^FROM python:([\d.]+)-slim", DOCKERFILE, re.MULTILINE)) <= set(SUPPORTED)


def test_the_image_and_the_compose_file_use_the_default_ports() -> None:
    assert {int(port) for port in re.findall(r"^EXPOSE (\d+) (\d+)$", DOCKERFILE, re.MULTILINE)[0]} == PORTS
    assert {int(port) for port in re.findall(r'^ +- "127\.0\.0\.1:\d+:(\d+)"$', COMPOSE, re.MULTILINE)} == PORTS


def test_what_the_compose_file_mounts_is_where_the_image_looks_for_it() -> None:
    context, dockerfile = (
        re.findall(rf"^ +{name}: (\S+)$", COMPOSE, re.MULTILINE)[0] for name in ("context", "dockerfile")
    )
    assert (DEPLOY / context / dockerfile).resolve() == DEPLOY / "Dockerfile"
    mounted = set(re.findall(r"^ +- [\w./]+:(/[\w./]+)", COMPOSE, re.MULTILINE))
    (config,) = re.findall(r'"--config", "([^"]+)"', DOCKERFILE)
    settings = tomllib.loads((DEPLOY / "game.toml").read_text(encoding="utf-8"))["server"]
    assert config in mounted
    assert f"/etc/footlights/{settings['tokens_file']}" in mounted
    (state,) = re.findall(r"^VOLUME (\S+)$", DOCKERFILE, re.MULTILINE)
    assert state in mounted
    assert settings["ledger"].startswith(f"{state}/")


def test_the_settings_of_the_container_are_valid(tmp_path: Path) -> None:
    settings = (DEPLOY / "game.toml").read_text(encoding="utf-8").replace("/var/lib/footlights", str(tmp_path))
    (tmp_path / "game.toml").write_text(settings, encoding="utf-8")
    (tmp_path / "tokens").write_text("game-server a-token-for-this-test-only\n", encoding="utf-8")
    (tmp_path / "tokens").chmod(0o600)
    command = [sys.executable, "-m", "footlights_transports", "serve", "--config", "game.toml", "--check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Configuration OK." in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("name", ["footlights.service", "compose.yaml"])
def test_a_stop_waits_longer_than_the_server_takes(name: str) -> None:
    text = (DEPLOY / name).read_text(encoding="utf-8")
    patience = seconds(re.search(r"(?:TimeoutStopSec=|stop_grace_period: )(\d+)", text))
    grace = seconds(re.search(r'--grace(?: |", ")(\d+)', text if "--grace 2" in text else DOCKERFILE))
    assert patience >= grace + 2 * 10 + 5


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    unit = (DEPLOY / "footlights.service").read_text(encoding="utf-8")
    installed = unit.replace("/opt/footlights/bin/footlights", "/bin/true")
    (tmp_path / "footlights.service").write_text(installed, encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "footlights.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    about = [line for line in (done.stdout + done.stderr).splitlines() if "footlights.service" in line]
    assert about == []


def test_the_public_ci_runs_what_everybody_runs_on_every_supported_python() -> None:
    (versions,) = re.findall(r"^ +python: \[(.*)\]$", WORKFLOW, re.MULTILINE)
    minors = dict.fromkeys(".".join(each.strip('" ').split(".")[:2]) for each in versions.split(","))
    assert list(minors) == SUPPORTED
    assert WORKFLOW.rstrip().endswith("- run: .ci/run")
