"""The driver's device nodes as a process sees them that a real device cgroup keeps off: 0666, and closed."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import h100
import msgspec
import pytest
from judged import results
from processes import ran

from envcheck.collector.linux import device_nodes
from envcheck.facts.kernel import DeviceNode

DEVICES = Path("/sys/fs/cgroup/devices")  # of version 1; version 2's rules are a BPF program
LOOK = """\
import sys
from envcheck.collector.facts import dumps
from envcheck.collector.linux.device_nodes import device_nodes
from envcheck.collector.runtime.context import Context
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
print(dumps(device_nodes(Context({}, root=sys.argv[2]))))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "dev").mkdir()
    for name, minor in (("nvidiactl", 255), ("nvidia0", 0)):
        path = tmp_path / "dev" / name
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(195, minor))
        except OSError as error:
            pytest.skip(f"no device node can be made here: {error}")
        path.chmod(0o666)
    return tmp_path


@pytest.fixture
def group() -> Iterator[Path]:
    path = DEVICES / f"envcheck-test-{os.getpid()}"
    try:
        path.mkdir()
        (path / "devices.deny").write_text("c 195:* rwm")
    except OSError as error:
        pytest.skip(f"no device cgroup can be made here: {error}")
    yield path
    path.rmdir()


def test_nodes_that_a_device_cgroup_closes_are_told_as_such(root: Path, group: Path) -> None:
    command = [sys.executable, "-c", LOOK, str(group), str(root)]
    done = ran(command, text=True)
    assert done.returncode == 0, done.stderr
    nodes = msgspec.json.decode(done.stdout, type=list[DeviceNode])
    assert [(node.mode, node.usable) for node in nodes] == [("0666", False), ("0666", False)]
    found = results(h100.machine(kernel=h100.kernel(device_nodes=nodes)), ("kernel",))["KRN-006"]
    (finding,) = found.findings
    assert finding.cause.key == "device-cgroup"
    assert finding.remedy is not None and "chmod" not in " ".join(finding.remedy.commands)


def test_nodes_that_the_look_itself_made_are_removed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = root / "dev"
    monkeypatch.setattr(device_nodes, "NODES", str(folder / "nvidia*"))
    monkeypatch.setattr(device_nodes, "LOADED", str(root / "version"))
    before = device_nodes.present() - {str(folder / "nvidiactl")}
    (folder / "nvidia-file").write_text("")
    (root / "version").write_text("NVRM version")
    device_nodes.remove_useless(before)  # the driver is there: whoever made the node, it is of use
    assert (folder / "nvidiactl").exists()
    (root / "version").unlink()
    device_nodes.remove_useless(before)
    assert sorted(path.name for path in folder.iterdir()) == ["nvidia-file", "nvidia0"]
