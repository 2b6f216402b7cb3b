"""The fabric manager's own log, and what it says on stderr alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from world.kernel_tree import Tree

from envcheck.collector.linux import fabric_manager

STARTED = "Fabric Manager Log initializing at: 2/27/2025 13:59:45.123"
INFO = "[Feb 25 2025 13:59:45] [INFO] [tid 1808] multicast group 0 is freed."
SXID = "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028 on fid 0"
HANDLE = (
    "[Feb 27 2025 15:10:03] [ERROR] [tid 7] failed to find the GPU handle {} in the multicast team"
)


def texts(*lines: str, booted: float | None = None) -> list[tuple[str, int]]:
    return [(e["text"], e["count"]) for e in fabric_manager.parse("\n".join(lines), booted)]


def test_errors_alone_count_each_once() -> None:
    told = texts(
        INFO, SXID, HANDLE.format(5410063385821516767), HANDLE.format(10187860174420860981)
    )
    assert told[0] == ("detected NVSwitch non-fatal error 12028 on fid 0", 1)
    assert told[1][0].startswith("failed to find the GPU handle 10187860174420860981")
    assert told[1][1] == 2


def test_what_was_before_the_last_start_or_boot_is_over() -> None:
    assert texts(SXID, STARTED, INFO) == []
    assert len(texts(STARTED, SXID)) == 1
    assert texts(SXID, booted=1800000000.0) == []
    assert len(texts(SXID, booted=1000000000.0)) == 1


def test_the_file_on_a_machine(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    events, source = fabric_manager.fabric_manager_log(tree.context(), [])
    assert (events["unavailable"], source) == ("absent", "/var/log/fabricmanager.log")
    tree.write("/var/log/fabricmanager.log", f"{STARTED}\n{SXID}\n")
    events, _source = fabric_manager.fabric_manager_log(tree.context(), [])
    assert [event["count"] for event in events] == [1]


@pytest.mark.parametrize("running", [True, False])
def test_one_that_does_not_start_is_looked_up_in_the_journal(tmp_path: Path, running: bool) -> None:
    tree = Tree(tmp_path)
    program = tree.write(
        "/usr/bin/journalctl",
        "#!/bin/sh\necho 'Starting NVIDIA fabric manager service...'\n"
        "echo 'fabric manager interface version 1.2 does not match with driver version 1.3.'\n"
        "echo \"nvidia-fabricmanager.service: Failed with result 'exit-code'.\"\n"
        "echo 'Failed to start NVIDIA fabric manager service.'\n",
    )
    program.chmod(0o755)
    service = {"name": "nvidia-fabricmanager", "installed": True, "running": running}
    events, source = fabric_manager.fabric_manager_log(tree.context(), [service])
    if running:
        assert events["unavailable"] == "absent"
    else:
        assert source == "journalctl -b -u nvidia-fabricmanager"
        assert [event["text"][:32] for event in events] == ["fabric manager interface version"]
