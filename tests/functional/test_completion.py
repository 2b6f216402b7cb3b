"""Completion in a real bash and a real fish: commands, options, files, codes, areas and stacks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli import envcheck
from processes import ran

from envcheck.checks.registry import all_checks

BASH = shutil.which("bash")

ASK = """
source ./envcheck.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_shtab_envcheck envcheck "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "fish", "zsh"):
        (place / f"envcheck.{shell}").write_bytes(envcheck("completion", shell).stdout)
    (place / "machine.json").touch()
    (place / "my venvs").mkdir()
    return place


def codes(begin: str) -> set[str]:
    return {check.code for check in all_checks() if check.code.startswith(begin)}


@pytest.mark.skipif(BASH is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("envcheck ex", {"explain"}),
        ("envcheck doctor --format ", {"text", "json", "junit", "markdown", "html", "openmetrics"}),
        ("envcheck doctor --from mach", {"machine.json"}),
        ("envcheck doctor --target my", {"my venvs"}),
        ("envcheck doctor --only driver GPU-00", codes("GPU-00")),
        ("envcheck explain PKG-00", codes("PKG-00")),
        ("envcheck install ngc", {"ngc-jax", "ngc-tf1", "ngc-tf2", "ngc-torch"}),
    ],
)
def test_bash_offers(folder: Path, line: str, offered: set[str]) -> None:
    asked = ran(
        [str(BASH), "--norc", "-c", ASK, "bash", *line.split(" ")],
        cwd=folder,
        text=True,
        check=True,
    )
    assert {word.rstrip("/") for word in asked.stdout.splitlines() if word} == offered, asked.stderr
