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
from processes import PATIENCE
from wheel_maker import sha256, stand_ins, wheel

from envcheck.install.catalogue.load import seed
from envcheck.install.export import own_wheel

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
    """Every RUN of the stack's environment, as a shell gets it."""
    joined = re.sub(r"--mount=\S+ ", "", dockerfile.replace("\\\n", ""))
    runs = [line.removeprefix("RUN ") for line in joined.splitlines() if line.startswith("RUN ")]
    return [run for run in runs if "/opt/venv" in run]


def told(context: Path, printed: str, framework: str) -> None:
    """The directory has all that an image is built from, pinned, and nothing of this machine's index."""
    own = own_wheel.build()
    assert printed.split() == [str(path) for path in sorted(context.iterdir())]
    assert sorted(path.name for path in context.iterdir()) == [
        "Dockerfile", "envcheck-itself.txt", "envcheck-requirements.txt", "envcheck-uv", own.name,
        "pylock.toml", "requirements-build.txt", "requirements-own.txt", "requirements-sdist-gast.txt",
        "requirements.txt",
    ]  # fmt: skip
    lists = {path.name: path.read_text() for path in context.glob("*.txt")}
    assert f"demo-framework==1.0 --hash=sha256:{framework}\n" in lists["requirements.txt"]
    assert f"--hash=sha256:{own.sha256}\n" in lists["envcheck-itself.txt"]
    pinned = r"==(?:90\.0|[0-9.]+\.99) --hash="
    assert len(re.findall(pinned, lists["envcheck-requirements.txt"])) == len(own.requires)
    assert not any("127.0.0.1" in text for text in lists.values())


def test_its_commands_make_the_environment_of_the_lock(tmp_path: Path) -> None:
    """From two indexes, with pip itself and an sdist, on a directory in the place of the image's root."""
    real = [f"{pin.replace('==', '-')}-py3-none-any.whl" for pin in seed(MINOR)]
    public, own = tmp_path / "public", tmp_path / "own"
    registry.fetch(public, *real, *TOOLS, "gast-0.2.2.tar.gz")
    for name, version in stand_ins(own_wheel.build().requires):
        wheel(public, name, version)
    wheel(public, "demo-framework", "1.0", requires=["demo-own", "gast==0.2.2"])
    wheel(own, "demo-own", "3.0")
    wheel(public, "demo-own", "4.0", modules={"wrong_index.py": ""})
    context, root = tmp_path / "context", tmp_path / "root of the image"
    root.mkdir()
    with serve(public, tmp_path / "p") as first, serve(own, tmp_path / "o") as second:
        more = SDIST.format(url=second.url, sha256=sha256(public / "gast-0.2.2.tar.gz"))
        stack = stack_file(tmp_path / "demo.toml", "1.0", more=more)
        result = Home(tmp_path / "home").envcheck(
            "install", "--stack", stack, "--index", first.url, "--python", sys.executable,
            "--dockerfile", context,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr.decode()
        told(
            context, result.stdout.decode(), sha256(public / "demo_framework-1.0-py3-none-any.whl")
        )
        dockerfile = (context / "Dockerfile").read_text()
        assert f"uv venv --python {MINOR} " in dockerfile and first.url not in dockerfile
        (root / "bin").mkdir()
        (root / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
        (root / "bin" / "uv").symlink_to(context / "envcheck-uv")
        arguments = dict(re.findall(r"^ARG (\w+)=(.*)$", dockerfile, re.MULTILINE))
        assert arguments["OWN_INDEX_URL"] == second.url and arguments["UV_DEFAULT_INDEX"] == ""
        variables = {
            **arguments,
            "UV_DEFAULT_INDEX": first.url,
            "UV_CACHE_DIR": str(tmp_path / "cache"),
            "UV_PYTHON_INSTALL_DIR": str(tmp_path / "pythons"),
            "PATH": f"{root}/bin:/usr/bin:/bin",
        }
        for command in commands(dockerfile):
            command = command.replace("/opt/lock", shlex.quote(str(context)))
            for place in ("/opt/venv", "/tmp/build-tools"):
                command = command.replace(place, shlex.quote(f"{root}/{place.replace('/', '_')}"))
            done = subprocess.run(
                ["sh", "-c", command],
                env=environment(**variables, HOME=str(root)),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            assert done.returncode == 0, f"{command}\n{done.stderr}{done.stdout}"
    listed = subprocess.run(
        [root / "_opt_venv/bin/python", "-m", "pip", "list", "--format", "freeze"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE,
        check=True,
    ).stdout.split()
    assert set(listed) == {"demo-framework==1.0", "demo-own==3.0", "gast==0.2.2", *seed(MINOR)}
    assert sorted(p.name for p in root.iterdir() if not p.name.startswith(".")) == [
        "_opt_venv",
        "bin",
    ]
