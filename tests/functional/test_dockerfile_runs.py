"""The Dockerfile's own commands, carried out by a shell: no builder is needed to see that they work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import registry
from cli import environment
from demo_stack import MINOR, stack_file
from index_server import serve
from installing import Home
from wheel_maker import sha256, wheel

from envcheck.install.catalogue.load import seed

SDIST = """
[[indexes]]
name = "own"
urls = ["{url}"]
packages = ["demo-own"]
source = "the tests"

[[sdists]]
name = "gast"
version = "0.2.2"
sha256 = "{sha256}"
why = "has no wheel"
source = "the tests"
build = {{ requires = ["setuptools==59.6.0", "wheel==0.37.1"] }}
"""

TOOLS = ("setuptools-59.6.0-py3-none-any.whl", "wheel-0.37.1-py2.py3-none-any.whl")


def commands(dockerfile: str) -> list[str]:
    """Every RUN as a shell gets it, but those that change a system."""
    joined = dockerfile.replace("\\\n", "")
    runs = [line.removeprefix("RUN ") for line in joined.splitlines() if line.startswith("RUN ")]
    return [run for run in runs if not run.startswith(("useradd", "apt-get"))]


def test_its_commands_make_the_environment_of_the_lock(tmp_path: Path) -> None:
    """From two indexes, with pip itself and an sdist, on a directory in the place of the image's root."""
    real = [f"{pin.replace('==', '-')}-py3-none-any.whl" for pin in seed(MINOR)]
    public, own = tmp_path / "public", tmp_path / "own"
    registry.fetch(public, *real, *TOOLS, "gast-0.2.2.tar.gz")
    wheel(public, "demo-framework", "1.0", requires=["demo-own", "gast==0.2.2"])
    wheel(own, "demo-own", "3.0")
    wheel(public, "demo-own", "4.0", modules={"wrong_index.py": ""})
    with serve(public, tmp_path / "p") as first, serve(own, tmp_path / "o") as second:
        more = SDIST.format(url=second.url, sha256=sha256(public / "gast-0.2.2.tar.gz"))
        stack = stack_file(tmp_path / "demo.toml", "1.0", more=more)
        told = Home(tmp_path / "home").envcheck(
            "install", "--stack", stack, "--index", first.url, "--python", sys.executable,
            "--dockerfile",
        )  # fmt: skip
        assert told.returncode == 0, told.stderr.decode()
        dockerfile = told.stdout.decode()
        root = tmp_path / "image root"
        (root / "bin").mkdir(parents=True)
        (root / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
        arguments = dict(re.findall(r"^ARG (\w+)=(.*)$", dockerfile, re.MULTILINE))
        assert arguments["OWN_INDEX_URL"] == second.url and arguments["INDEX_URL"] == ""
        variables = {**arguments, "INDEX_URL": first.url, "PATH": f"{root}/bin:/usr/bin:/bin"}
        for command in commands(dockerfile):
            for place in ("/opt/venv", "/tmp/build-tools", "/tmp/requirements.txt"):
                command = command.replace(place, shlex.quote(f"{root}/{place.replace('/', '_')}"))
            done = subprocess.run(
                ["sh", "-c", command],
                env=environment(**variables, HOME=str(root)),
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, f"{command}\n{done.stderr}{done.stdout}"
    listed = subprocess.run(
        [root / "_opt_venv/bin/python", "-m", "pip", "list", "--format", "freeze"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=True,
    ).stdout.split()
    assert set(listed) >= {"demo-framework==1.0", "demo-own==3.0", "gast==0.2.2", *seed(MINOR)}
    assert sorted(p.name for p in root.iterdir() if not p.name.startswith(".")) == [
        "_opt_venv",
        "bin",
    ]
