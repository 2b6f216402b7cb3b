"""The check on a container that does not start with its GPUs, by what its engine says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from build import area_checks, document, snapshot

from envcheck.checks.engine import diagnose
from envcheck.collector import inside_troubles
from envcheck.collector.runtime.process import Result
from envcheck.collector.worker.parent import Limits, Worker
from envcheck.data import table
from envcheck.data.engine_errors import explain
from envcheck.facts.base import Probe
from envcheck.facts.gpu import Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel
from envcheck.findings.model import CheckResult

CHECKS = [check for check in area_checks("boundary") if check.code in ("BND-001", "BND-010")]
HOOK = (
    "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI"
    " runtime create failed: runc create failed: unable to start container process: error during container"
    " init: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as"
    " 'legacy'\n"
)
MERGED = f"/var/lib/docker/overlay2/{'0a' * 32}/merged/usr/lib/x86_64-linux-gnu"
HELP = "\n\nRun 'docker run --help' for more information\n"
SAID = {
    f"{HOOK}nvidia-container-cli: mount error: file creation failed: {MERGED}/libnvidia-ml.so.1:"
    f" file exists: unknown{HELP}": ("the image holds driver libraries", "without-driver"),
    f"{HOOK}nvidia-container-cli: container error: cgroup subsystem devices not found: unknown.": (
        "before 1.8",
        "apt install -y nvidia-container-toolkit",
    ),
    f"{HOOK}nvidia-container-cli: mount error: failed to add device rules: unable to find any existing"
    " device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not"
    " permitted: unknown.": ("device rules", "no-cgroups"),
    'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'
    f"{HELP}": ("no way to hand out GPUs", "--runtime=docker"),
    "docker: Error response from daemon: unknown or invalid runtime name: nvidia.": (
        "does not know the runtime",
        "--runtime=docker",
    ),
    "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all": (
        "no CDI specification",
        "nvidia-ctk cdi generate",
    ),
    "docker: Error response from daemon: CDI device injection failed: failed to inject devices: failed to"
    ' stat CDI host device "/dev/dri/renderD129": no such file or directory': (
        "not there any more",
        "nvidia-ctk cdi generate",
    ),
    f"{HOOK}nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update"
    f" your driver to a newer version, or use an earlier cuda container: unknown{HELP}": (
        "newer CUDA",
        "envcheck releases",
    ),
    f"{HOOK}nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.": (
        "not loaded",
        "modprobe nvidia",
    ),
    f"{HOOK}nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot"
    " open shared object file: no such file or directory: unknown.": (
        "snap",
        "libnvidia-compute-535",
    ),
    f"{HOOK}nvidia-container-cli: initialization error: nvml error: insufficient permissions: unknown.": (
        "SELinux",
        "setsebool",
    ),
    "docker: Error response from daemon: failed to create task for container: unable to retrieve OCI runtime"
    ' error: exec: "nvidia-container-runtime": executable file not found in $PATH: unknown.': (
        "its program is not there",
        "apt install -y nvidia-container-toolkit",
    ),
    f"{HOOK}nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or"
    " directory: unknown.": ("ldconfig", "@/sbin/ldconfig"),
}


def seen(text: str, code: int = 125) -> dict[str, CheckResult]:
    result = Result(["docker"], "exited", code, b"", text.encode(), 1.0)
    child = SimpleNamespace(poll=lambda: result, new_stdout=lambda: b"")
    worker = Worker(child, Limits(), lambda *_message: None)
    worker.step()
    failed = inside_troubles.explain("image:x/y:1", worker)
    assert isinstance(failed, inside_troubles.Failed), failed
    probe: Probe[object] = Probe(outcome="refused", reason=str(failed), facts=None)
    machine = {
        "host": Host(os_id="ubuntu"),
        "nvml": Nvml(init_code=0, driver_version="535.183.01"),
        "kernel": Kernel(),
    }
    made = snapshot(document("image:x/y:1", interpreter=probe), **machine)
    return {one.code: one for one in diagnose(made, checks=CHECKS).results}


@pytest.mark.parametrize("text", SAID)
@pytest.mark.parametrize("code", [125, 126, 127])
def test_an_engine_s_words_are_explained(text: str, code: int) -> None:
    words, command = SAID[text]
    result = seen(text, code)
    (finding,) = result["BND-010"].findings
    assert finding.level == "fail" and words in finding.message
    assert finding.remedy is not None and command in "\n".join(finding.remedy.commands)
    assert result["BND-001"].consequence_of == "BND-010"


def test_every_row_is_explained_here() -> None:
    meanings = {row["meaning"] for row in table("engine_errors")}
    names = {found.meaning for text in SAID if (found := explain(text)) is not None}
    unsaid = 5  # NVIDIA_REQUIRE_DRIVER's, a rootless engine's (CTR-001), those of logs (CTR-016)
    assert len(meanings - names) <= unsaid
    assert all(row["source"] for row in table("engine_errors"))
