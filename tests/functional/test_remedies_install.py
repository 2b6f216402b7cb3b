"""Remedies that install packages, run as printed in real environments: of uv, with pip, without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from build import ok
from msgspec.structs import replace
from processes import PATIENCE, ran
from targets import dist, packages
from wheel_maker import wheel
from whole import with_target

from envcheck.checks.installing import pip_install, pip_replace, pip_restore, with_pip
from envcheck.collector.worker import handshake
from envcheck.facts.target import TargetInterpreter
from envcheck.facts.view import SnapshotView
from envcheck.findings.remedy import Remedy

UV = Path(sys.executable).with_name("uv")
MAKERS = {
    "uv": [str(UV), "venv", "-q", "--python", sys.executable],
    "pip": [sys.executable, "-m", "venv"],
    "nothing": [sys.executable, "-m", "venv", "--without-pip"],
}


def looked_at(python: Path) -> SnapshotView:
    """An environment as the collector's first look has it, with a framework that pins a library."""
    ended = ran([str(python), "-c", handshake.SCRIPT], check=True)
    facts = handshake.facts(handshake.parse(ended.stdout), "virtualenv", str(python))
    interpreter = TargetInterpreter(**facts.values)
    found = packages(dist("framework", "1", requires=["nvidia-tiny-cu12==1.0; extra == 'gpu'"]))
    snapshot = with_target(packages=found)
    assert snapshot.target is not None
    target = replace(snapshot.target, interpreter=ok(interpreter))
    return SnapshotView(replace(snapshot, target=target))


@pytest.mark.parametrize("maker", MAKERS)
def test_the_environment_ends_in_the_state_that_was_promised(maker: str, tmp_path: Path) -> None:
    if maker == "uv" and not UV.exists():
        pytest.skip("uv is not installed beside this Python")
    index, home = tmp_path / "index", tmp_path / "venv"
    for name, version in (
        ("nvidia-tiny-cu12", "1.0"),
        ("nvidia-tiny-cu12", "2.0"),
        ("tiny", "1.0"),
        ("tiny-cpu", "1.0"),
    ):
        modules = {"tiny/__init__.py": f"of = {name!r}\n"} if name.startswith("tiny") else None
        wheel(index, name, version, modules=modules)
    subprocess.run([*MAKERS[maker], str(home)], check=True, timeout=PATIENCE)
    python = home / "bin" / "python"
    view = looked_at(python)
    commands = [
        pip_install(view, "nvidia-tiny-cu12", "tiny-cpu"),
        pip_replace(view, "tiny", "tiny-cpu"),
        pip_restore(view, "tiny", "1.0"),
    ]
    printed = with_pip(view, Remedy("Install them.", commands))
    assert printed.commands
    variables = {
        "PATH": f"{UV.parent}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "UV_CONFIG_FILE": str(tmp_path / "uv.toml"),
        "HOME": str(tmp_path),
    }
    (tmp_path / "uv.toml").write_text(f'no-index = true\nfind-links = ["{index}"]\n')
    for command in printed.commands:
        subprocess.run(["sh", "-ec", command], env=variables, check=True, timeout=PATIENCE)
    (site,) = home.glob("lib/python3*/site-packages")
    names = {path.name.partition(".dist-info")[0] for path in site.glob("*.dist-info")}
    assert {"nvidia_tiny_cu12-1.0", "tiny-1.0"} <= names
    assert not any(name.startswith(("tiny_cpu", "nvidia_tiny_cu12-2")) for name in names)
    assert "'tiny'" in (site / "tiny/__init__.py").read_text()
