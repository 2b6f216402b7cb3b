"""A lock as a Dockerfile: exact, exclusive in its indexes, and nothing that an old builder lacks."""

from __future__ import annotations

import json
import re
import shlex

import msgspec
import pytest
from planned import GAST, MIB, NVIDIA, SETUPTOOLS, lock, package, stack

from envcheck.data import table
from envcheck.install.catalogue.model import Build
from envcheck.install.lockfile import Lockfile
from envcheck.reports.dockerfile import Context, Options, render, render_over
from envcheck.reports.dockerfile import lists as locked_lists
from envcheck.reports.dockerfile.options import is_too_old, standalone

CONTEXT = Context(standalone=standalone("x86_64"))


def text(locked: Lockfile | None = None, **options: str) -> str:
    return render(stack(), locked or lock(), Options(envcheck="0.1.0", **options))


def runs(dockerfile: str) -> list[str]:
    """Each RUN as one line of shell, as a builder reads it."""
    joined = dockerfile.replace("\\\n", "")
    return [line.removeprefix("RUN ") for line in joined.splitlines() if line.startswith("RUN ")]


def installs(dockerfile: str) -> list[list[str]]:
    """The words of every pip."""
    commands = [part.strip() for run in runs(dockerfile) for part in run.split(" && ")]
    return [shlex.split(command) for command in commands if " -m pip install " in command]


def lists(dockerfile: str) -> list[list[str]]:
    """The requirements of every pip."""
    commands = [part.strip() for run in runs(dockerfile) for part in run.split(" && ")]
    found = [shlex.split(command) for command in commands if command.startswith("printf ")]
    return [words[2 : words.index(">")] for words in found]


def test_every_package_has_its_version_and_hash_once() -> None:
    locked = lock()
    stated = [line for listed in lists(text(locked)) for line in listed]
    assert sorted(stated) == sorted(
        f"{p.name}=={p.version} --hash=sha256:{p.file.sha256}" for p in locked.packages
    )


def test_one_pip_for_each_index_and_none_merges_two() -> None:
    commands = installs(text())
    assert len(commands) == 3  # pip itself, the public index, NVIDIA's
    for words in commands:
        assert {"--no-deps", "--require-hashes", "--only-binary=:all:", "--no-cache-dir"} <= set(
            words
        )
        assert "--extra-index-url" not in " ".join(words)
    assert commands[2][commands[2].index("--index-url") + 1] == "$NVIDIA_INDEX_URL"
    assert all("nvidia" in line for line in lists(text())[2])
    assert not any("nvidia" in line for line in lists(text())[1])


def test_what_an_index_does_not_claim_is_asked_of_the_public_one() -> None:
    (index,) = stack().indexes
    but_not = msgspec.structs.replace(index, but_not=["nvidia-ml-py"])
    whose = msgspec.structs.replace(stack(), indexes=[but_not])
    locked = lock(
        package("nvidia-ml-py", "12.575.51", MIB), package("nvidia-nccl", "2", MIB, NVIDIA)
    )
    told = render(whose, locked, Options(envcheck="0.1.0"))
    assert [line.partition("=")[0] for listed in lists(told) for line in listed] == [
        "nvidia-ml-py",
        "nvidia-nccl",
    ]
    assert f"ARG NVIDIA_INDEX_URL={NVIDIA}" in told
    assert len(installs(told)) == 2


def test_the_public_index_is_pips_own_unless_one_is_given() -> None:
    told = text()
    assert "\nARG INDEX_URL=\n" in told
    assert '${INDEX_URL:+--index-url "$INDEX_URL"}' in told
    assert f"\nARG NVIDIA_INDEX_URL={NVIDIA}\n" in told
    assert "index.example" not in told


def test_pip_is_there_before_what_it_installs() -> None:
    order = [line.partition("==")[0] for listed in lists(text()) for line in listed]
    assert order[0] == "pip"


def test_the_base_is_the_releases_python_and_can_be_another() -> None:
    pinned = "docker.io/library/ubuntu:20.04@sha256:"
    assert re.search(rf"\nARG BASE={pinned}[0-9a-f]{{64}}\n\nFROM \$\{{BASE\}}\n", text())
    other = text(lock(python="3.9"))
    assert "\nARG BASE=docker.io/library/python:3.9-slim\n" in other, "no Ubuntu has it as its own"
    assert "\nARG BASE=ubuntu:20.04\n" in text(base="ubuntu:20.04")
    assert "'3.8 x86_64'" in text()


def test_an_sdist_is_built_last_and_with_pinned_tools() -> None:
    locked = lock(*lock().packages, GAST, building=[SETUPTOOLS])
    told = text(locked)
    *_, tools, gast = installs(told)
    assert tools[tools.index("--target") + 1] == "/tmp/build-tools"
    assert "--only-binary=:all:" in tools
    assert "--no-build-isolation" in gast and gast[gast.index("--no-binary") + 1] == "gast"
    assert "--only-binary=:all:" not in gast
    assert gast[0] == "PYTHONPATH=/tmp/build-tools"
    (building,) = [run for run in runs(told) if "--no-binary" in run]
    assert building.endswith("&& rm -rf /tmp/build-tools"), "in the step that made it"
    assert "setuptools==59.6.0" in building


def test_a_build_gets_its_programs_and_variables() -> None:
    build = Build(programs=["g++", "cmake"], environment={"HOROVOD_WITH_GLOO": "1", "A": "x y"})
    of = msgspec.structs.replace(
        stack(), sdists=[msgspec.structs.replace(stack().sdists[0], build=build)]
    )
    told = render(of, lock(*lock().packages, GAST), Options(envcheck="0.1.0"))
    assert "apt-get install -y --no-install-recommends cmake g++ " in told
    assert "HOROVOD_WITH_GLOO=1 A='x y' /opt/venv/bin/python" in told.replace("\\\n", "")


def test_without_sdists_there_is_no_compiler() -> None:
    (installed,) = re.findall(r"apt-get install -y --no-install-recommends (.*) \\", text())
    assert installed == "python3 python3-venv", "and only where BASE has none"
    assert "build-tools" not in text()


def test_what_the_host_needs_is_said_of_a_gpu_stack() -> None:
    with_cuda = msgspec.structs.replace(stack().releases[0], cuda="12.1.0")
    options = Options(envcheck="0.1.0")
    known = render(stack(releases=[with_cuda]), lock(), options)
    assert "and driver 525.60.13 or newer, for CUDA 12.1.0.\n" in known
    assert "#   docker run --rm --gpus all nvidia-tf1:23.03 " in known
    assert "a driver: which is not known.\n" in text()
    assert "--gpus" not in render(stack(gpu=False), lock(), options)


def test_nothing_stays_and_nobody_is_root() -> None:
    told = text()
    assert told.count("> /tmp/requirements.txt") == told.count(" && rm /tmp/requirements.txt")
    users = re.findall(r"^USER (.*)$", told, re.MULTILINE)
    assert users == ["10001"]
    assert told.index("USER 10001") < told.index("CMD [")


def test_no_heredoc_and_no_mount() -> None:
    assert "<<" not in text() and "--mount" not in text() and "COPY" not in text()


def test_with_a_context_the_lists_lie_beside_it_and_all_has_hashes() -> None:
    locked = lock(*lock().packages, GAST, building=[SETUPTOOLS])
    told = render(stack(), locked, Options(envcheck="0.1.0", context=CONTEXT))
    copied = re.findall(r"^COPY (requirements.*) /opt/lock/$", told, re.MULTILINE)
    names = {one.name for one in locked_lists.lists(stack(), locked).all}
    assert set(copied[0].split()) == names
    assert names == {
        "requirements-pip.txt", "requirements.txt", "requirements-nvidia.txt",
        "requirements-build.txt", "requirements-sdist-gast.txt",
    }  # fmt: skip
    commands = installs(told)
    listed = [words[words.index("-r") + 1] for words in commands]
    assert listed == [
        *(f"/opt/lock/{one.name}" for one in locked_lists.lists(stack(), locked).all),
        "/opt/lock/envcheck-requirements.txt",
        "/opt/lock/envcheck-itself.txt",
    ]
    assert all({"--no-deps", "--require-hashes"} <= set(words) for words in commands)
    assert "sha256=" not in told and "printf" not in told
    for run in runs(told):
        assert (" -m pip " in run) == ("--mount=type=cache,target=/var/cache/pip" in run), run


def test_envcheck_brings_a_python_only_where_the_images_own_is_too_old() -> None:
    brought = render(stack(), lock(), Options(envcheck="0.1.0", context=CONTEXT))
    assert re.search(r"^ARG PYTHON_SHA256=[0-9a-f]{64}$", brought, re.MULTILINE)
    assert "sha256sum -c" in brought and "RUN --mount" in brought
    assert brought.count("FROM ${BASE}") == 2
    assert "/opt/python/bin/python3 -m venv /opt/envcheck" in brought
    own = render(stack(), lock(python="3.12"), Options(envcheck="0.1.0", context=Context()))
    assert "PYTHON_URL" not in own and own.count("FROM ") == 1
    assert "    python3 -m venv /opt/envcheck" in own
    assert not is_too_old("3.10") and is_too_old("3.9")


def test_the_health_check_is_there_with_a_context_and_before_nobody() -> None:
    told = render(stack(), lock(), Options(envcheck="0.1.0", context=CONTEXT))
    assert "HEALTHCHECK" not in text()
    command = re.search(r"^HEALTHCHECK .*\\\n  CMD (\[.*\])$", told, re.MULTILINE)
    assert command is not None and json.loads(command[1])[-1] == "--health"
    assert json.loads(command[1])[0].startswith("/opt/envcheck/")


def test_over_an_image_of_nvidias_what_it_starts_with_stays() -> None:
    told = render_over(Options(envcheck="0.1.0", digest="ab" * 32, context=CONTEXT))
    assert re.search(
        r"^ARG BASE=nvcr.io/nvidia/tensorflow:\S+@sha256:[0-9a-f]{64}$", told, re.MULTILINE
    )
    for word in ("ENTRYPOINT", "WORKDIR", "\nCMD", "ENV "):
        assert word not in told
    assert told.endswith("\nUSER 10001\n")
    assert f'      envcheck.lock="sha256:{"ab" * 32}"' in told
    pips = [line for line in told.splitlines() if " -m pip install " in line]
    assert pips and all("PIP_CONSTRAINT= /opt/envcheck" in line for line in pips)


@pytest.mark.parametrize("row", table("image_bases"), ids=lambda row: row["reference"][:40])
def test_every_base_is_pinned_and_says_where_its_digest_was_seen(row: dict[str, str]) -> None:
    assert re.fullmatch(r"[a-z.]+/[a-z/]+:[\w.-]+@sha256:[0-9a-f]{64}", row["reference"])
    assert row["source"] and row["note"]


def test_the_python_that_is_brought_is_pinned() -> None:
    found = standalone("x86_64")
    assert found is not None and not is_too_old(found.python)
    assert re.fullmatch(r"[0-9a-f]{64}", found.sha256)
    assert f"cpython-{found.python}." in found.url and standalone("riscv64") is None


def shlex_kept(instruction: str) -> list[str]:
    """The words of an instruction, with their quotes."""
    return re.findall(r'\S+="(?:[^"\\]|\\.)*"', instruction)


def test_labels_say_what_is_inside() -> None:
    told = text(lock(provided={"nvidia-pyindex": "the index"}), digest="ab" * 32)
    (found,) = re.findall(r"^LABEL .*$", told.replace("\\\n", ""), re.MULTILINE)
    labels = shlex_kept(found)
    for label in (
        'envcheck.stack="nvidia-tf1"',
        'envcheck.release="23.03"',
        f'envcheck.lock="sha256:{"ab" * 32}"',
        'envcheck.provided="nvidia-pyindex"',
        'org.opencontainers.image.version="23.03"',
    ):
        assert label in labels


@pytest.mark.parametrize("value", ['say "hi"', "$HOME", "a\\b", "two\nlines"])
def test_values_cannot_end_their_string(value: str) -> None:
    of = msgspec.structs.replace(stack(), environment={"TF_X": value})
    told = render(of, lock(), Options(envcheck="0.1.0"))
    (line,) = [line for line in told.splitlines() if line.startswith("ENV TF_X=")]
    inside = re.fullmatch(r'ENV TF_X="((?:[^"\\$]|\\.)*)"', line)
    assert inside is not None, line


def test_a_local_version_is_kept_and_the_tag_is_valid() -> None:
    locked = lock(
        package("nvidia-tensorflow", "1.15.5+nv23.3", MIB, NVIDIA), release="1.15.5+nv23.3"
    )
    told = text(locked)
    assert "nvidia-tensorflow==1.15.5+nv23.3 --hash" in told
    assert "docker build -t nvidia-tf1:1.15.5-nv23.3 " in told
