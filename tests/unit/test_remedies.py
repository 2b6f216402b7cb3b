"""Remedies are pasted into a shell, and a Snapshot may come from somebody else."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Union, get_args, get_origin

import h100
import msgspec
import pytest
import tensor_runs
from hypothesis import given, settings
from hypothesis import strategies as st
from known_machines import machines
from modes_parts import no_cuda
from msgspec.structs import replace
from targets import (
    config,
    config_file,
    error,
    good_snapshot,
    tensorflow,
    variable,
)
from tensor_runs import MACHINES, level_run, mode_run, replaced, signatures
from test_failure_modes import ECC
from whole import (
    RELEASE,
    containers,
    disk,
    docker,
    event,
    host,
    kernel,
    node,
    nodes,
    whole,
    with_target,
)

from envcheck.checks.engine import diagnose
from envcheck.checks.framework.causes import IMPORT, explain, install_library
from envcheck.checks.registry import all_checks
from envcheck.facts.base import Facts
from envcheck.facts.containers import CdiSpec
from envcheck.facts.gpu import GpuPair, NvLink
from envcheck.facts.kernel import DeviceNode
from envcheck.facts.micro_kernels import Hardware
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import ConfigSetting
from envcheck.facts.view import SnapshotView
from envcheck.findings.shell import word

BUSY: Any = {"index": 1, "pci_address": "0000:02:00.0", "outcome": "busy", "modes": []}
# All that a shell minds, in one text.
HOSTILE = '$(HOSTILE) `HOSTILE` /HOSTILE/x \'; HOSTILE & "$HOSTILE" \\ \n HOSTILE \r\x1b[2K # HOSTILE {0} %s'


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
        replace(
            config_file("/opt/uv.toml", tool="uv"),
            settings=[ConfigSetting(section="index", key="url", value="http://example.org")],
        ),
        variable("PIP_EXTRA_INDEX_URL", "http://example.org/simple"),
    ]
    traces = ["/etc/pip.conf", "/somewhere/pip.conf"]
    return with_target(packaging_config=config(*files, traces=traces))


def odd_machine() -> Snapshot:
    """Disks, nodes, packages and engines of which each is wrong in its way."""
    closed: list[DeviceNode] = [
        *nodes("/dev/nvidia-uvm"),
        node("/dev/nvidia-uvm", usable=False, mode="0660", group="video"),
    ]
    spec = CdiSpec(
        path="/etc/cdi/nvidia.yaml", kind="nvidia.com/gpu", missing_paths=["/usr/lib/x.so"]
    )
    podman = docker(server_version=error("it does not answer"))
    facts = kernel(
        device_nodes=closed,
        runfile_installer="/usr/bin/nvidia-uninstall",
        driver_files=[h100.file("libcuda", h100.DRIVER), h100.file("libcuda", "550.54.15", "/opt")],
        kernels_installed=[RELEASE, "6.8.0-45-generic"],
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
        cuda=no_cuda(999, "CUDA_ERROR_UNKNOWN"),
        containers=containers(replace(podman, name="podman"), docker(), cdi_specs=[spec]),
    )


def odd_bus() -> Snapshot:
    """GPUs below one switch that sends their transfers up, with errors on their links."""
    slots = ["0000:10:00.0", "0000:11:00.0"]
    gpus = [h100.gpu(n, nvlinks=[]) for n in range(2)]
    devices = [
        h100.pci_device(address, slot=slot, aer_fatal=1, aer_nonfatal=2, link_width=8)
        for address, slot in zip(h100.ADDRESSES, slots, strict=False)
    ]
    first, second = h100.ADDRESSES[:2]
    pair = GpuPair(first=first, second=second, level="PIX", p2p_read="ok")
    no_room = "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: BAR1 is 0M"
    return whole(
        pci=Pci(devices=devices, iommu_mode="identity", acs_ports=slots),
        nvml=h100.nvml(gpus, pairs=[pair]),
        nvidia_smi=h100.smi(gpus),
        cuda=h100.cuda(gpus),
        kernel=kernel(
            driver_version="535.98",
            driver_files=[
                h100.file("libcuda", h100.DRIVER),
                h100.file("libcuda", "550.54.15", "/opt"),
            ],
            log=[event("nvrm", no_room, None, h100.ADDRESSES[5])],
        ),
    )


def odd_gpus() -> Snapshot:
    """Every GPU with a fault of its own."""
    faults: list[dict[str, Any]] = [
        ECC,
        {"remap_failed": True},
        {"mig_enabled": True, "mig_pending": False},
        {"power_limit_w": 300.0, "compute_mode": "Prohibited"},
        {"pcie_width": 8, "pcie_replays": 9000},
        {"memory_used_mib": 81000, "recovery_action": "Reset"},
        {"unrepairable_memory": True},
        {"nvlinks": [NvLink(link=0, active=True, crc_errors=9999)]},
    ]
    gpus = [h100.gpu(n, **facts) for n, facts in enumerate(faults)]
    return whole(nvml=h100.nvml(gpus), nvidia_smi=h100.smi(gpus), cuda=h100.cuda(gpus))


def tensor_core_faults() -> Snapshot:
    """An H100 on which each level has a fault of its own, and a GPU that was in use."""
    gpu, dead = MACHINES["H100"], {"outcome": "crashed", "reason": "signal 9"}
    variables = {"CUBLAS_EMULATE_SINGLE_PRECISION": "1"}
    emulated = replace(mode_run(gpu, "L1", "tf32"), mode="fp32")
    weak = mode_run(gpu, "L0", "fp16", hardware=Hardware(), rate=None)
    cores = signatures("fp16", gpu, False, "L2")
    half = mode_run(gpu, "L2", "fp16", "half", signatures=cores, rate=None, hardware=Hardware())
    below = [replaced(level_run(gpu, "L0"), "fp16", weak), level_run(gpu, "L0", **BUSY)]
    above = [
        replaced(level_run(gpu, "L1", variables=variables), "fp32", emulated),
        replaced(level_run(gpu, "L2", "torch"), "fp16", half, "half"),
        replaced(level_run(gpu, "L2", "jax"), "fp16", mode_run(gpu, "L2", "fp16", **dead), "half"),
    ]
    return tensor_runs.snapshot(gpu, [*below, *above])


ODD: list[Callable[[], Snapshot]] = [
    odd_configuration,
    odd_machine,
    odd_bus,
    odd_gpus,
    tensor_core_faults,
]


@functools.cache
def snapshots() -> list[Snapshot]:
    """Every machine that the tests know, and those on which many things are wrong at once."""
    return [*machines().values(), *(build() for build in ODD)]


@functools.cache
def as_they_are() -> list[list[tuple[str, str]]]:
    return [list(remedies(snapshot)) for snapshot in snapshots()]


@functools.cache
def telling() -> list[tuple[Snapshot, set[str]]]:
    """Of them, those with a remedy that none before has, and the codes of such remedies."""
    kept, seen = [], set()
    for snapshot, found in zip(snapshots(), as_they_are(), strict=True):
        new = {(code, *command.split()[:4]) for code, command in found} - seen
        if new:
            kept.append((snapshot, {code for code, *_ in new}))
        seen |= new
    return kept


def remedies(snapshot: Snapshot, codes: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """The code of each check (of these alone) that found something, with each of its commands."""
    checks = [check for check in all_checks() if check.code in codes] if codes else None
    for result in diagnose(snapshot, checks=checks).results:
        assert "crashed" not in result.reason, result.reason
        for finding in result.findings:
            for command in finding.remedy.commands if finding.remedy is not None else ():
                yield result.code, command


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


def typed(command: str) -> str:
    """Without the words before it that say who is to type it."""
    return re.sub("^# [^:]*: ", "", command)


def is_whole(command: str) -> bool:
    """One line: words that a shell can read, or a remark."""
    words = typed(command)
    return command.isprintable() and (
        words.startswith("# ") or bool(shlex.split(words, comments=True))
    )


def assert_safe(command: str) -> None:
    assert is_whole(command), command
    assert "HOSTILE" not in unquoted(typed(command)), command


# Fields to spoil together, so that what the checks look for is still found in the others.
GROUPS = {
    "places": "address pci_address first second slot acs_ports mount_point group executable text",
    "paths": "path real_path library_path runfile_installer pyindex_traces",
    "settings": "value section",
    "names": "name soname requires location",
    "versions": "version release kernel kernels_installed driver_version distribution_version",
}


@pytest.mark.parametrize("group", GROUPS)
def test_a_hostile_text_stays_inside_one_word(group: str) -> None:
    fields = GROUPS[group].split()
    hostile = 0
    for snapshot, codes in telling():
        bad = changed(snapshot, lambda text, field: text + HOSTILE if field in fields else text)
        for _code, command in remedies(bad, codes) if bad != snapshot else ():
            assert_safe(command)
            hostile += "HOSTILE" in command
    assert hostile  # it came through


@given(st.text(max_size=30))
@settings(max_examples=30, deadline=None)
def test_any_text_is_one_word(text: str) -> None:
    (parsed,) = shlex.split(f"echo {word(text)}")[1:]
    assert parsed.isprintable() and not parsed.startswith("-")
    if text.isprintable() and not text.startswith("-"):
        assert parsed == text


def test_commands_are_whole() -> None:
    for found in as_they_are():
        for _code, command in found:
            assert command == command.strip() and is_whole(command)
            assert not re.search(r"None|Unavailable|\{\w+\}", command), command


def test_a_frameworks_words_are_quoted_too() -> None:
    bad = "$(HOSTILE)"
    view = SnapshotView(good_snapshot())
    lines = [f"/x{bad}.so: cannot allocate memory in static TLS block"]
    found = explain(view, tensorflow(), IMPORT, lines)
    assert found is not None
    for command in (
        *found.advice.commands,
        install_library(view, f"lib{bad}.so.1"),
        install_library(view, f"libcudnn.so.9{bad}", "12.5"),
    ):
        assert bad in command
        assert_safe(command)


def test_words() -> None:
    assert word("") == "''" and word("/a/b.so.1") == "/a/b.so.1"
    assert word("-rf") == "./-rf" and word("a\nb\x1b") == "'a?b?'"
