"""tests/plugin, a package of its own beside envcheck: it adds a probe, a check, a stack and a format."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from processes import ran

REPOSITORY = Path(__file__).resolve().parents[2]
PLUGIN = REPOSITORY / "tests" / "plugin"

Envcheck = Callable[..., CompletedProcess[str]]


def installed(folder: Path, source: Path) -> Envcheck:
    """envcheck in a virtual environment of its own with the package; everything else is lent to it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env/bin/python"
    site = Path(sysconfig.get_path("purelib", vars={"base": os.fspath(folder / "env")}))
    lent = [REPOSITORY, Path(sysconfig.get_path("purelib"))]
    (site / "lent.pth").write_text("".join(f"{path}\n" for path in lent))
    environment = {"PATH": os.environ["PATH"], "HOME": os.fspath(folder), "LC_ALL": "C.UTF-8"}
    uv = [shutil.which("uv", path=sysconfig.get_path("scripts")) or "uv", "pip", "install"]
    alone = ["--offline", "--no-config", "--no-index", "--no-deps", "--no-build-isolation"]
    done = ran(
        [*uv, *alone, "--python", python, source],
        env=environment | {"UV_CACHE_DIR": os.fspath(folder / "cache")},
        text=True,
    )
    assert done.returncode == 0, done.stderr

    def envcheck(*arguments: str | Path) -> CompletedProcess[str]:
        argv = [python, "-m", "envcheck", *arguments]
        return ran(argv, env=environment, cwd=folder, text=True)

    return envcheck


@pytest.fixture(scope="module")
def plugged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envcheck]:
    folder = tmp_path_factory.mktemp("plugged")
    unbuilt = shutil.ignore_patterns("__pycache__")
    yield installed(folder, Path(shutil.copytree(PLUGIN, folder / "source", ignore=unbuilt)))


@pytest.fixture(scope="module")
def snapshot(plugged: Envcheck, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("snapshot") / "machine.json"
    done = plugged("collect", "--level=quick", "--output", file)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_the_page_shows_what_is_there() -> None:
    page = (REPOSITORY / "docs" / "extending.md").read_text()
    shown = dict(re.findall(r"`([\w./-]+)`\n\n```\w+\n(.*?)```", page, re.DOTALL))
    files = [path for path in PLUGIN.rglob("*") if path.suffix in (".py", ".toml")]
    assert shown == {os.fspath(path.relative_to(PLUGIN)): path.read_text() for path in files}


def test_its_probe_s_facts_are_in_the_snapshot(snapshot: dict[str, Any]) -> None:
    printed = snapshot["machine"]["extensions"]["acme_uptime"]
    assert printed["outcome"] == "ok" and isinstance(printed["facts"]["days"], int)


def test_its_check_judges_a_live_machine_and_a_file(
    plugged: Envcheck, snapshot: dict[str, Any], tmp_path: Path
) -> None:
    done = plugged("doctor", "--only", "acme", "--format", "json", "--level=quick")
    results = {result["code"]: result for result in json.loads(done.stdout)["results"]}
    assert results["ACME-001"]["outcome"] == "pass", done.stderr
    snapshot["machine"]["extensions"]["acme_uptime"]["facts"]["days"] = 400
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(snapshot))
    done = plugged("doctor", "--from", file)
    assert done.returncode == 1 and "ACME-001" in done.stdout
    assert "It has been up for 400 days." in done.stdout
    assert "ACME's handbook" in plugged("explain", "ACME-001").stdout
    done = plugged("doctor", "--from", file, "--format", "codes", "--only", "acme")
    assert (done.returncode, done.stdout) == (1, "broken ACME-001\n")


def test_who_judges_it_without_the_package_is_not_disturbed(
    snapshot: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(snapshot))
    argv = [sys.executable, "-m", "envcheck", "doctor", "--from", file, "--only", "plugins"]
    done = ran(argv, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def releases(envcheck: Envcheck, snapshot: dict[str, Any], folder: Path) -> str:
    file = folder / "machine.json"
    file.write_text(json.dumps(snapshot))
    words = ["--from", file, "--stack", "acme-numpy", "--format", "json", "--all"]
    return envcheck("releases", *words).stdout


def test_its_stack_is_one_of_the_catalogue_s(
    plugged: Envcheck, snapshot: dict[str, Any], tmp_path: Path
) -> None:
    assert "1.26.4" in releases(plugged, snapshot, tmp_path)


def test_the_single_file_brings_its_probe_along(plugged: Envcheck, tmp_path: Path) -> None:
    assert plugged("collector", "--output", tmp_path / "c.pyz").returncode == 0
    argv = [sys.executable, "-I", tmp_path / "c.pyz", "--level=quick"]
    argv += ["--request", json.dumps({"probes": ["acme_uptime"]})]
    done = ran(argv, check=True)
    assert json.loads(done.stdout)["machine"]["extensions"]["acme_uptime"]["outcome"] == "ok"
