"""What is read out of NCCL's log, in the words of its versions from 2.4 to 2.32."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.collector.systems.shared.nccl import log as nccl_log

START = "vm:27930:27971 [0] NCCL "


def read(*lines: str) -> dict[str, Any]:
    found: dict[str, Any] = nccl_log.read("\n".join(START + line for line in lines))  # type: ignore[no-untyped-call]
    return found


@pytest.mark.parametrize(
    ("line", "transport"),
    [
        ("INFO Ring 00 : 0[3d000] -> 1[3e000] via direct shared memory", "SHM"),
        ("INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "SHM"),
        ("INFO Channel 00 : 1[101c0] -> 0[101d0] via P2P/IPC/read", "P2P/IPC"),
        ("INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer/read", "P2P/direct pointer"),
        ("INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0", "NET/Socket"),
    ],
)
def test_way_between_two_gpus(line: str, transport: str) -> None:
    assert read(line)["transports"] == [transport]
    more = ["INFO Channel 00 : 1[1] -> 2[2] via NET/IB/0"] * 2
    assert read(line, *more)["transports"] == ["NET/IB", transport], "the most frequent first"


@pytest.mark.parametrize(
    ("line", "algorithm"),
    [
        ("INFO 1048576 Bytes -> Algo 0 proto 1 time 54.707825", "Tree"),
        ("INFO AllReduce: 1048576 Bytes -> Algo 4 proto 2 time 9.1", "NVLS"),
        ("INFO AllReduce: 1048576 Bytes -> Algo NVLS_TREE proto SIMPLE", "NVLSTree"),
        ("INFO AllReduce: 1048576 Bytes -> Algo 12 proto NEW", "12"),
    ],
)
def test_algorithm_of_each_version(line: str, algorithm: str) -> None:
    others = ["INFO AllReduce: 4 Bytes -> Algo TREE proto LL"]
    others.append("INFO AllGather: 9073741824 Bytes -> Algo PAT proto SIMPLE")
    result = read(others[0], line, *others)
    assert result["algorithm"] == result["algorithm_1_mib"] == algorithm


def test_settings_versions_warnings_and_multicast() -> None:
    assert read(
        "INFO NCCL_P2P_DISABLE set by environment to 1.",
        "INFO NCCL_DEBUG_SUBSYS set by environment to INIT",
        "INFO NCCL version 2.24.3+cuda12.2",
        "INFO NVLS multicast support is available on dev 3 (NVLS_NCHANNELS 16)",
        "WARN Failed to open libibverbs.so[.1]",
        *["WARN Cuda failure 'invalid argument'"] * 3,
    ) == {
        "version": "2.24.3",
        "built_cuda": "12.2",
        "settings": ["NCCL_P2P_DISABLE=1"],
        "warnings": ["Cuda failure 'invalid argument'"],
        "nvls": True,
    }
    assert read("INFO NVLS multicast support is not available on dev 0", "\x00\xff garbage") == {}
