"""Remedies are pasted into a shell, and a Snapshot may come from somebody else."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, Literal, Union, get_args, get_origin

import h100
import msgspec
import pytest
import test_failure_modes as modes
from build import ok
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from targets import (
    config,
    config_file,
    dist,
    error,
    good_libraries,
    packages,
    system_library,
    tensorflow,
    variable,
    wheel_library,
)
from whole import blind, containers, disk, docker, host, kernel, node, nodes, whole, with_target

from envcheck.checks.engine import diagnose
from envcheck.checks.shell import word
from envcheck.facts.base import Facts
from envcheck.facts.containers import CdiSpec
from envcheck.facts.kernel import DeviceNode
from envcheck.facts.target import ConfigSetting, Loader
from envcheck.snapshot import Snapshot

# All that a shell minds in one text, and what a program would take for an option.
SUFFIX = "$(HOSTILE) `HOSTILE` '; HOSTILE & \"$HOSTILE\" \\ \n HOSTILE \r\x1b[2K # HOSTILE {0} %s"
PREFIX = "--HOSTILE=1 "


def shadowed_libraries() -> Snapshot:
    """The system's cuBLAS instead of the wheel's, a cuDNN off the loader's path, and one that is refused."""
    stranger = system_library("libcublas", "libcublas.so.12", "12.4.5", how="framework", origin="system")
    used = [one for one in good_libraries("framework") if one.name != "libcublas"] + [stranger]
    refused = system_library("libnccl", "libnccl.so.2", path=error("undefined symbol: x"))
    return with_target(
        tensorflow=tensorflow(libraries=used),
        loader=Loader(
            ld_library_path=["/opt/cuda/stubs"], libraries=[*good_libraries(), refused, stranger]
        ),
    )


def hidden_cudnn() -> Snapshot:
    library = wheel_library("libcudnn", "libcudnn.so.8", "8.9.2", "nvidia-cudnn-cu11", "8.9.2.26")
    facts = modes.old_tensorflow(modes.CANNOT_DLOPEN)
    return with_target(**facts, loader=Loader(libraries=[*modes.cuda_11("libcudnn"), library]))


def odd_configuration() -> Snapshot:
    files = [
        config_file(
            "/etc/pip.conf",
            "global",
            mode="0644",
            extra_index_url="https://pypi.ngc.nvidia.com https://example.org/simple",
            trusted_host="pypi.ngc.nvidia.com",
            no_cache_dir="true",
            target="/opt/x",
        ),
        config_file("<home-1>/.config/pip/pip.conf", find_links="http://example.org/simple"),
        config_file("/opt/uv/uv.toml", tool="uv", index_strategy="unsafe-best-match"),
        variable("PIP_EXTRA_INDEX_URL", "http://example.org/simple"),
    ]
    credentials = [
        replace(file, settings=[replace(s, credentials=True) for s in file.settings])  # type: ignore[union-attr]
        for file in files
    ]
    traces = ["/etc/pip.conf", "/somewhere/pip.conf"]
    return with_target(packaging_config=config(*credentials, traces=traces))


def broken_packages() -> Snapshot:
    return with_target(
        packages=packages(
            dist("tensorflow", "2.15.1", missing=["tensorflow/x.so"], missing_count=1),
            dist("tensorflow-cpu", "2.16.1", requires=["nvidia-nccl-cu12>=2.19"]),
            dist("tensorflow", "2.14.0", shadowed=True, location="/usr/lib/python3/dist-packages"),
            dist("nvidia-tensorrt", "99.0.0"),
            dist("horovod", "0.28.1", wheel_tags=["cp27-cp27mu-linux_x86_64"]),
            dist("nvidia-cudnn-cu11", "8.9.2.26"),
            dist("nvidia-cudnn-cu12", "9.3.0.75"),
            dist("numpy", "2.1.0"),
            dist("nvidia-pyindex", "1.0.9"),
            horovod_extensions=[],
        ),
        tensorflow=blind(modes.CANNOT_DLOPEN),
        loader=Loader(),
    )


def odd_imports() -> Iterator[Snapshot]:
    for words in (
        "ModuleNotFoundError: No module named 'x'",
        "ImportError: libnuma.so.1: cannot open shared object file",
        "ImportError: /lib/libgomp.so.1: cannot allocate memory in static TLS block",
    ):
        yield with_target(tensorflow=modes.not_imported(words=words))


def odd_machine() -> Snapshot:
    """Disks, nodes, packages and engines of which each is wrong in its way."""
    closed: list[DeviceNode] = [
        *nodes("/dev/nvidia-uvm"),
        node("/dev/nvidia-uvm", usable=False, mode="0660", group="video"),
    ]
    spec = CdiSpec(path="/etc/cdi/nvidia.yaml", kind="nvidia.com/gpu", missing_paths=["/usr/lib/x.so"])
    podman = docker(server_version=error("it does not answer"))
    facts = kernel(
        device_nodes=closed,
        runfile_installer="/usr/bin/nvidia-uninstall",
        driver_files=[h100.file("libcuda", h100.DRIVER), h100.file("libcuda", "550.54.15", "/opt")],
        kernels_installed=[modes.RELEASE, "6.8.0-45-generic"],
    )
    return whole(
        host=host(
            disks=[
                disk("/a", "environments", noexec=True, mount_point="/a"),
                disk("/b", "temporary", free_mib=1, mount_point="/b", writable=False),
                disk("/c", "cache", free_mib=error("late", "timeout"), mount_point="/c"),
                disk("/d", "cache", free_inodes=1, mount_point="/d"),
            ]
        ),
        kernel=facts,
        cuda=modes.no_cuda(999, "CUDA_ERROR_UNKNOWN"),
        containers=containers(replace(podman, name="podman"), docker(), cdi_specs=[spec]),
    )


def odd_gpus() -> Snapshot:
    """Every GPU with a fault of its own."""
    faults: list[dict[str, Any]] = [
        modes.ECC,
        {"remap_failed": True},
        {"mig_enabled": True, "mig_pending": False},
        {"power_limit_w": 300.0, "compute_mode": "Prohibited"},
        {"pcie_width": 8, "pcie_replays": 9000},
        {"memory_used_mib": 81000, "recovery_action": "Reset"},
        {"unrepairable_memory": True},
        {"nvlinks": [h100.NvLink(link=0, active=True, crc_errors=9999)]},
    ]
    gpus = [h100.gpu(n, **facts) for n, facts in enumerate(faults)]
    return whole(nvml=h100.nvml(gpus), nvidia_smi=h100.smi(gpus), cuda=h100.cuda(gpus))


def on_red_hat() -> Snapshot:
    broken = modes.no_fabric()
    machine = replace(broken.machine, host=ok(host(os_id="rocky")))
    facts = replace(broken.machine.kernel.facts, services=[modes.NOT_INSTALLED])  # type: ignore[union-attr]
    return replace(broken, machine=replace(machine, kernel=ok(facts)))


BUILDERS: list[Callable[[], Snapshot]] = [
    *(build for build, _ in (modes.ROWS | modes.OTHERS).values()),
    *(shadowed_libraries, hidden_cudnn, odd_configuration, broken_packages, odd_machine, odd_gpus),
    on_red_hat,
]


@functools.cache
def snapshots() -> list[Snapshot]:
    return [build() for build in BUILDERS] + list(odd_imports())


@functools.cache
def telling() -> list[Snapshot]:
    """Of them, those with a remedy that none before has."""
    kept, seen = [], set()
    for snapshot in snapshots():
        told = {" ".join(command.split()[:3]) for command in commands(snapshot)}
        if not told <= seen:
            kept.append(snapshot)
        seen |= told
    return kept


def commands(snapshot: Snapshot) -> Iterator[str]:
    for result in diagnose(snapshot).results:
        assert "crashed" not in result.reason, result.reason
        for finding in result.findings:
            yield from finding.remedy.commands if finding.remedy is not None else ()


def changed(value: Any, change: Callable[[str, str], str], field: str = "") -> Any:
    """The value with each of its texts put through ``change(text, field)``; fixed words stay."""
    if isinstance(value, str):
        return change(value, field)
    if isinstance(value, list):
        return [changed(item, change, field) for item in value]
    if isinstance(value, dict):
        return {name: changed(item, change, name) for name, item in value.items()}
    if isinstance(value, Facts):
        free = free_fields(type(value))
        return replace(value, **{n: changed(getattr(value, n), change, n) for n in free})
    return value


@functools.cache
def free_fields(kind: type) -> list[str]:
    """The fields whose words the schema leaves open."""
    return [one.name for one in msgspec.structs.fields(kind) if not is_fixed(one.type)]


def is_fixed(kind: Any) -> bool:
    return get_origin(kind) is Literal or (
        get_origin(kind) is Union and any(map(is_fixed, get_args(kind)))
    )


def unquoted(command: str) -> str:
    """What of a command the shell reads as its own: all that does not stand in single quotes."""
    return re.sub(r"'[^']*'", "", command.replace("'\"'\"'", ""))


def assert_safe(command: str) -> None:
    assert command.isprintable(), command
    parsed = shlex.split(command, comments=True)
    assert parsed, command
    assert "HOSTILE" not in unquoted(command), command
    assert not [one for one in parsed if one.startswith(PREFIX.split("=")[0])], command


# What checks compare with words of their own; a spoiled one hides the fault that it belongs to.
COMPARED = {"name", "normalized", "version", "key", "section", "path", "soname", "location", "origin"}
GROUPS: dict[str, Callable[[str], bool]] = {
    "what is not compared": lambda field: field not in COMPARED,
    "paths and settings": lambda field: field in ("path", "real_path", "value", "section"),
    "names and versions": lambda field: field in ("name", "soname", "requires", "version", "location"),
}


@pytest.mark.parametrize(("front", "back"), [("", SUFFIX), (PREFIX, "")])
@pytest.mark.parametrize("group", GROUPS)
def test_a_hostile_text_stays_inside_one_word(group: str, front: str, back: str) -> None:
    def spoil(text: str, field: str) -> str:
        return front + text + back if GROUPS[group](field) else text

    told = 0
    for snapshot in telling():
        for command in commands(changed(snapshot, spoil)):
            assert_safe(command)
            told += "HOSTILE" in command
    assert told  # it came through


@given(st.text(max_size=30))
@settings(max_examples=50, deadline=None)
def test_any_text_is_one_word(text: str) -> None:
    (parsed,) = shlex.split(f"echo {word(text)}")[1:]
    assert parsed.isprintable() and not parsed.startswith("-")
    if text.isprintable() and not text.startswith("-"):
        assert parsed == text


def test_a_setting_is_no_sed_program() -> None:
    setting = ConfigSetting(
        section="global", key="x/e touch HOSTILE;s/a-b", value="http://example.org"
    )
    file = replace(config_file("/opt/pip.conf"), settings=[setting])
    (command,) = (c for c in commands(with_target(packaging_config=config(file))) if "sed" in c)
    program = shlex.split(command)[3]
    assert "/^[[:space:]]*x.e.touch.hostile.s.a[-_]b[[:space:]]*[=:]/" in program


@pytest.mark.parametrize("build", BUILDERS)
def test_commands_are_whole(build: Callable[[], Snapshot]) -> None:
    for command in commands(build()):
        assert command.isprintable() and command == command.strip()
        assert shlex.split(command, comments=True)
        assert "None" not in command and "Unavailable" not in command and "{" not in (
            command.replace("${LD_LIBRARY_PATH", "").replace("{:a;", "").replace("{print", "")
        )


def test_words() -> None:
    assert word("") == "''" and word("/a/b.so.1") == "/a/b.so.1"
    assert word("-rf") == "./-rf" and word("a\nb\x1b") == "'a?b?'"
