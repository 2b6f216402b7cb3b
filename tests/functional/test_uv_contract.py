"""What uv writes and envcheck reads: another version of uv that writes it differently fails here, by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tomli
from cli import environment
from index_server import serve
from index_site import Offer
from processes import PATIENCE
from uv import find_uv_bin
from wheel_maker import sdist, sha256, wheel

from envcheck.install.wheels import uv, uv_compile

PYPROJECT = """\
[project]
name = "{name}"
version = "0"
dependencies = ["own-app", "old==0.1"]
[[tool.uv.index]]
name = "index1"
url = "{own}"
explicit = true
[tool.uv.sources]
own-app = {{ index = "index1" }}
"""
UV = """\
[[index]]
name = "index0"
url = "{public}"
default = true
[[dependency-metadata]]
name = "old"
version = "0.1"
requires-dist = ["lib<2"]
"""


@pytest.fixture
def answers(tmp_path: Path) -> tuple[str, str, Path, str, str]:
    """As annotated requirements, and as pylock.toml; the folder of the files, and both indexes."""
    files = tmp_path / "files"
    wheel(files / "own", "own-app", "1.0", requires=["lib"])
    wheel(files / "public", "own-app", "9.0")
    wheel(files / "public", "lib", "1.5")
    wheel(files / "public", "lib", "2.5")
    sdist(files / "public", "old", "0.1", setup="raise SystemExit('ran')")
    with (
        serve(files / "own", tmp_path / "one", offer=Offer(json=False)) as own,
        serve(files / "public", tmp_path / "two") as public,
    ):
        project, settings = tmp_path / "pyproject.toml", tmp_path / "uv.toml"
        project.write_text(PYPROJECT.format(name=uv_compile.PROJECT, own=own.url))
        settings.write_text(UV.format(public=public.url))

        def run(*options: str) -> str:
            argv = [
                find_uv_bin(), "--config-file", settings, "pip", "compile", project, "--quiet",
                "--no-header", "--only-binary", ":all:", "--no-binary=old", "--python",
                sys.executable, *options,
            ]  # fmt: skip
            result = subprocess.run(
                argv, capture_output=True, text=True, timeout=PATIENCE, check=False,
                env=environment(UV_CACHE_DIR=str(tmp_path / "cache")), cwd=tmp_path,
            )  # fmt: skip
            assert result.returncode == 0, result.stderr
            return result.stdout

        annotated = run("--annotation-style", "line", "--emit-index-annotation")
        return annotated, run("--format", "pylock.toml", "--offline"), files, own.url, public.url


def test_the_annotations_name_the_index_and_who_needs_it(
    answers: tuple[str, str, Path, str, str],
) -> None:
    annotated, _, _, own, public = answers
    found = [
        (pin.name, pin.version, pin.index, pin.needed_by) for pin in uv_compile.parse(annotated)
    ]
    assert found == [
        ("lib", "1.5", public, ["old", "own-app"]),
        ("old", "0.1", public, [uv_compile.PROJECT]),
        ("own-app", "1.0", own, [uv_compile.PROJECT]),
    ], f"uv {uv.described()} writes another form:\n{annotated}"


def test_pylock_toml_has_urls_hashes_and_sizes(answers: tuple[str, str, Path, str, str]) -> None:
    _, locked, files, _, _ = answers
    assert tomli.loads(locked)["lock-version"] == "1.0"
    found = uv_compile.parse_files(locked)
    assert {name: [file.name for file in listed] for name, listed in found.items()} == {
        "lib": ["lib-1.5-py3-none-any.whl"],
        "old": ["old-0.1.tar.gz"],
        "own-app": ["own_app-1.0-py3-none-any.whl"],
    }, f"uv {uv.described()} writes another form:\n{locked}"
    (lib,), (old,), (app,) = found["lib"], found["old"], found["own-app"]
    assert lib.size == (files / "public" / lib.name).stat().st_size and app.size is None
    assert app.sha256 == sha256(files / "own" / app.name)
    assert old.sha256 == sha256(files / "public" / old.name)


def test_the_versions_of_uv_are_those_that_pyproject_asks_for() -> None:
    output = tomli.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    (asked,) = (one for one in output["project"]["dependencies"] if one.startswith("uv"))
    least, beyond = (".".join(map(str, version)) for version in (uv.LEAST, uv.BEYOND))
    assert asked == f"uv>={least},<{beyond}"
