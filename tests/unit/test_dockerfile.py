"""A lock as a Dockerfile: exact, exclusive in its indexes, and nobody root."""

from __future__ import annotations

import re
import shlex

import msgspec
import pytest
from planned import GAST, NVIDIA, SETUPTOOLS, lock, stack

from envcheck.install.catalogue.model import Stack
from envcheck.install.export.dockerfile import render
from envcheck.install.export.requirement_lists import RequirementList, of_lock
from envcheck.install.lockfile import Lockfile

DIGEST = "ab" * 32


def text(locked: Lockfile | None = None, whose: Stack | None = None, base: str = "") -> str:
    of, locked = whose or stack(), locked or lock()
    return render(of, locked, of_lock(of, locked), DIGEST, base)


def runs(dockerfile: str) -> list[str]:
    """Each RUN as one line of shell, as a builder reads it, with its mounts."""
    joined = dockerfile.replace("\\\n", "")
    return [line.removeprefix("RUN ") for line in joined.splitlines() if line.startswith("RUN ")]


def installs(dockerfile: str) -> list[list[str]]:
    """The words of every `uv pip install`."""
    commands = [part.strip() for run in runs(dockerfile) for part in run.split(" && ")]
    found = [command for command in commands if "uv pip install " in command]
    return [shlex.split(re.sub(r"--mount=\S+ ", "", command)) for command in found]


def lists(locked: Lockfile, whose: Stack | None = None) -> dict[str, RequirementList]:
    return {one.name: one for one in of_lock(whose or stack(), locked)}


def test_every_list_is_copied_and_installed_with_hashes() -> None:
    locked = lock(*lock().packages, GAST, building=[SETUPTOOLS])
    dockerfile = text(locked)
    assert "\nCOPY requirements*.txt /opt/lock/\n" in dockerfile
    assert "\nCOPY envcheck-*.txt envcheck_gpu-*.whl /opt/lock/\n" in dockerfile
    commands = installs(dockerfile)
    assert [words[words.index("-r") + 1] for words in commands] == [
        "/opt/lock/requirements.txt",
        "/opt/lock/requirements-nvidia.txt",
        "/opt/lock/requirements-build.txt",
        "/opt/lock/requirements-sdist-gast.txt",
        "/opt/lock/envcheck-requirements.txt",
        "/opt/lock/envcheck-itself.txt",
    ]
    assert set(lists(locked)) == {
        words[words.index("-r") + 1].removeprefix("/opt/lock/") for words in commands[:4]
    }
    assert all({"--no-deps", "--require-hashes"} <= set(words) for words in commands)
    for run in runs(dockerfile):
        assert ("uv " in run) == ("source=envcheck-uv,target=/usr/bin/uv" in run), run


def test_one_uv_for_each_index_and_none_merges_two() -> None:
    public, nvidia, *_ = installs(text())
    assert "--only-binary" in public and "--only-binary" in nvidia
    assert "--default-index" not in public, "the public index, or UV_DEFAULT_INDEX"
    assert nvidia[nvidia.index("--default-index") + 1] == "$NVIDIA_INDEX_URL"
    assert "--index" not in [*public, *nvidia] and "--extra-index-url" not in text()
    found = lists(lock())
    assert all("nvidia" in line for line in found["requirements-nvidia.txt"].lines)
    assert not any("nvidia" in line for line in found["requirements.txt"].lines)
    assert f"\nARG NVIDIA_INDEX_URL={NVIDIA}\n" in text()
    assert "\nARG UV_DEFAULT_INDEX=\n" in text() and "index.example" not in text()


def test_the_base_is_in_support_pinned_and_can_be_another() -> None:
    pinned = r"\nARG BASE=docker.io/library/ubuntu:24.04@(sha256:[0-9a-f]{64})\nFROM \$\{BASE\}\n"
    found = re.search(pinned, text())
    assert found is not None and f"\nARG BASE_DIGEST={found[1]}\n" in text()
    assert 'org.opencontainers.image.base.digest="$BASE_DIGEST"' in text()
    other = text(base="ubuntu@sha256:00")
    assert "\nARG BASE=ubuntu@sha256:00\n" in other and "\nARG BASE_DIGEST=sha256:00\n" in other


def test_an_sdist_is_built_last_and_with_pinned_tools() -> None:
    dockerfile = text(lock(*lock().packages, GAST, building=[SETUPTOOLS]))
    *_, tools, gast, _needs, _itself = installs(dockerfile)
    assert tools[tools.index("--target") + 1] == "/tmp/build-tools"
    assert "--only-binary" in tools
    assert "--no-build-isolation" in gast and gast[gast.index("--no-binary") + 1] == "gast"
    assert "--only-binary" not in gast
    assert gast[0] == "PYTHONPATH=/tmp/build-tools"
    (building,) = [run for run in runs(dockerfile) if "--no-binary" in run]
    assert building.endswith("&& rm -rf /tmp/build-tools"), "in the step that made it"


@pytest.mark.parametrize("value", ['say "hi"', "$HOME", "a\\b", "two\nlines"])
def test_values_cannot_end_their_string(value: str) -> None:
    dockerfile = text(whose=msgspec.structs.replace(stack(), environment={"TF_X": value}))
    (line,) = [line for line in dockerfile.splitlines() if line.startswith("ENV TF_X=")]
    inside = re.fullmatch(r'ENV TF_X="((?:[^"\\$]|\\.)*)"', line)
    assert inside is not None, line
