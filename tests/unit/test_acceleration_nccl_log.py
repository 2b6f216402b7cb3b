"""What is read out of NCCL's log, in the words of its versions from 2.4 to 2.32."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.collector.systems.shared.nccl import log as nccl_log

START = "vm:27930:27971 [0] NCCL "


def read(*lines: str) -> dict[str, Any]:
    found: dict[str, Any] = nccl_log.read("\n".join(START + line for line in lines))
    return found


@pytest.mark.parametrize(
    ("line", "transport"),
    [
        ("INFO Ring 00 : 0[3d000] -> 1[3e000] via direct shared memory", "SHM"),
        ("INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "SHM"),
        ("INFO Channel 00 : 1[101c0] -> 0[101d0] via P2P/IPC/read", "P2P/IPC"),
        ("INFO Channel 00/0 : 0[0] -> 7[7] via P2P/CUMEM/read", "P2P/CUMEM"),
        ("INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer/read", "P2P/direct pointer"),
        ("INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0", "NET/Socket"),
        ("INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA", "NET/IB/GDRDMA"),
    ],
)
def test_the_way_between_two_gpus(line: str, transport: str) -> None:
    assert read(line)["transports"] == [transport]


def test_the_most_frequent_way_comes_first() -> None:
    told = read(
        "INFO Channel 00 : 0[0] -> 1[1] via P2P/IPC",
        *["INFO Channel 00 : 1[1] -> 2[2] via SHM/direct/direct"] * 2,
    )
    assert told["transports"] == ["SHM", "P2P/IPC"]


@pytest.mark.parametrize(
    ("line", "algorithm", "protocol"),
    [
        ("INFO 1048576 Bytes -> Algo 0 proto 1 time 54.707825", "Tree", "LL128"),
        ("INFO AllReduce: 1048576 Bytes -> Algo 4 proto 2 time 9.1", "NVLS", "Simple"),
        (
            "INFO AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..23}",
            "Ring",
            "Simple",
        ),
        ("INFO AllReduce: 1048576 Bytes -> Algo NVLS_TREE proto SIMPLE", "NVLSTree", "Simple"),
        ("INFO AllReduce: 1048576 Bytes -> Algo 12 proto NEW", "12", "NEW"),
    ],
)
def test_the_algorithm_of_each_version(line: str, algorithm: str, protocol: str) -> None:
    told = read(line)
    assert (told["algorithm"], told["protocol"]) == (algorithm, protocol)
    assert told["algorithm_1_mib"] == algorithm


def test_the_largest_all_reduce_counts_and_no_other_collective() -> None:
    told = read(
        "INFO AllReduce: 4 Bytes -> Algo TREE proto LL",
        "INFO AllReduce: 1073741824 Bytes -> Algo RING proto SIMPLE",
        "INFO AllReduce: 4 Bytes -> Algo TREE proto LL",
        "INFO AllGather: 9073741824 Bytes -> Algo PAT proto SIMPLE",
    )
    assert told["algorithm"] == told["algorithm_1024_mib"] == "Ring"


def test_settings_versions_channels_and_multicast() -> None:
    told = read(
        "INFO NCCL_P2P_DISABLE set by environment to 1.",
        "INFO NCCL_SOCKET_IFNAME set by environment to eth0",
        "INFO NCCL_DEBUG_SUBSYS set by environment to INIT",
        "INFO NCCL version 2.24.3+cuda12.2",
        "INFO 24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels",
        "INFO NVLS multicast support is available on dev 3 (NVLS_NCHANNELS 16)",
    )
    assert told == {
        "version": "2.24.3",
        "built_cuda": "12.2",
        "settings": ["NCCL_P2P_DISABLE=1", "NCCL_SOCKET_IFNAME=eth0"],
        "channels": 24,
        "nvls": True,
    }
    assert "nvls" not in read("INFO NVLS multicast support is not available on dev 0")
    assert read("INFO Channel 01/04 :    0   1")["channels"] == 4


def test_warnings_are_told_once_without_those_of_networks_that_are_not_there() -> None:
    told = read(
        "WARN Failed to open libibverbs.so[.1]",
        *["WARN Cuda failure 'invalid argument'"] * 3,
    )
    assert told["warnings"] == ["Cuda failure 'invalid argument'"]
    assert nccl_log.read("\x00\xff garbage") == {}
