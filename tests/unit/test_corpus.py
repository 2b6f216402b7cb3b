"""Public problem reports: the doctor names their cause and the remedy that resolved them."""

from __future__ import annotations

import re

import msgspec
import pytest
from corpus import CorpusError, judged, read, reports, snapshot
from corpus_machines import CIRCUMSTANCES, MACHINES
from whole import diagnosed, independent

HEAD = """\
n = 1
theme = "driver"
link = "https://github.com/a/b/issues/1"
symptom = "It breaks."
cause = "It is broken."
code = "GPU-001"
remedy = ["reset"]
"""


@pytest.mark.parametrize("name", reports())
def test_the_report_is_diagnosed(name: str) -> None:
    report = reports()[name]
    seen = judged(report)
    assert not seen.misleading, seen.codes
    if report.code:
        assert seen.named, (report.code, seen.codes)
        assert seen.remedy or not report.remedy, (report.remedy, seen.codes)


@pytest.mark.parametrize("name", MACHINES)
def test_the_machine_is_well(name: str) -> None:
    assert independent(diagnosed(MACHINES[name]())) == {}


@pytest.mark.parametrize("name", CIRCUMSTANCES)
def test_a_circumstance_is_no_machine_that_is_well(name: str) -> None:
    assert independent(diagnosed(CIRCUMSTANCES[name](MACHINES["8 x H100"]())))


@pytest.mark.parametrize(
    "tail, words",
    [
        ("colour = 1", "unknown field `colour`"),
        ("machine = 'C64'", "no machine is called 'C64'"),
        ("circumstances = ['rain']", "no circumstance is called 'rain'"),
        ("unseen = 'it is dark'", "either a code, or the reason"),
        ("[differs]\n'machine.kernel.colour' = 1", "the Snapshot has no machine.kernel.facts.colour"),
        ("[differs]\n'machine.nvml.gpus[3].colour' = 1", "has no machine.nvml.facts.gpus"),
        ("[differs]\n'machine.nvml.gpus[30].name' = 'x'", "chooses none of 8"),
        ("[differs]\n'machine.colour.x' = 1", "a path is machine.SECTION.FIELD"),
        ("[differs]\n'machine.kernel.release' = 5", "Expected"),
    ],
)  # fmt: skip
def test_a_report_is_read_strictly(tail: str, words: str) -> None:
    with pytest.raises(CorpusError, match=re.escape(words)):
        snapshot(read(f"{HEAD}{tail}\n", "here"))


def test_differences_are_put_where_they_belong() -> None:
    made = snapshot(
        msgspec.structs.replace(
            read(HEAD, "here"),
            differs={
                "machine.nvml.gpus[3].name": "A",
                "machine.nvml.gpus[*].power_limit_w": 300.0,
                "machine.kernel.device_nodes[path=/dev/nvidia-uvm]": "<removed>",
                "machine.kernel.log[+]": {"kind": "nvrm", "text": "NVRM: x"},
                "machine.kernel.dkms": {"unavailable": "absent"},
                "machine.containers": "<removed>",
                "machine.pci": {"outcome": "timeout", "reason": "late"},
                "target.packages.distributions[normalized=numpy].version": "1.2",
                "target.environment.variables.CUDA_HOME": "/opt/cuda",
            },
        )
    )
    nvml, kernel = made.machine.nvml.facts, made.machine.kernel.facts  # type: ignore[union-attr]
    assert [gpu.name for gpu in nvml.gpus].count("A") == 1 and nvml.gpus[3].name == "A"
    assert {gpu.power_limit_w for gpu in nvml.gpus} == {300.0}
    assert "/dev/nvidia-uvm" not in [node.path for node in kernel.device_nodes]
    assert [line.text for line in kernel.log] == ["NVRM: x"]
    assert kernel.dkms.unavailable == "absent"
    assert made.machine.containers is None
    assert made.machine.pci.outcome == "timeout"  # type: ignore[union-attr]
    packages = made.target.packages.facts.distributions  # type: ignore[union-attr]
    assert [one.version for one in packages if one.normalized == "numpy"] == ["1.2"]
    assert made.target.environment.facts.variables == {"CUDA_HOME": "/opt/cuda"}  # type: ignore[union-attr]
