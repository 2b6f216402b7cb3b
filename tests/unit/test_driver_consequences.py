"""What follows from a failure of the driver, and what does not."""

from __future__ import annotations

import msgspec
import pytest
from build import ok, snapshot
from h100 import ABSENT, ADDRESSES, ERROR, cuda, gpu, machine, no_driver, nvml
from judged import results

from envcheck.facts.base import Probe
from envcheck.facts.gpu import CudaDriver, LostGpu, NvidiaSmi, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel
from envcheck.facts.pci import Pci


def test_a_machine_without_any_facts_is_skipped() -> None:
    assert {r.outcome for r in results(snapshot()).values()} == {"skipped"}


def test_a_saved_nvidia_smi_is_not_asked_how_it_ran() -> None:
    saved = snapshot(nvidia_smi=NvidiaSmi(form="xml", driver_version="535.54.03", gpus=[gpu(0)]))
    saved = msgspec.structs.replace(
        saved, machine=msgspec.structs.replace(saved.machine, origin="nvidia-smi")
    )
    found = results(saved)
    assert not [code for code, r in found.items() if r.outcome in ("warn", "fail", "could-not-run")]
    assert found["DRV-003"].outcome == "skipped"
    assert "CUDA 12.2" in found["DRV-008"].detail


BROKEN = {
    "healthy": {},
    "cuInit fails": {"cuda": cuda([], init_code=999)},
    "cuInit is refused": {"cuda": cuda([], library_path="/opt/compat/libcuda.so.1", init_code=804)},
    "fabric is not up": {"cuda": cuda([], init_code=802)},
    "no libcuda": {"cuda": CudaDriver(library_path=ABSENT)},
    "nvml fails": {"nvml": no_driver(12)},
    "wsl": {"host": Host(wsl=True)},
    "lost": {
        "nvml": nvml(
            [gpu(0)], lost=[LostGpu(index=1, error="?", code=15, pci_address=ADDRESSES[1])]
        )
    },
}
EMPTY = {
    "host": Host(),
    "pci": Pci(),
    "kernel": Kernel(),
    "nvml": Nvml(),
    "nvidia_smi": NvidiaSmi(),
    "cuda": CudaDriver(),
}
FATES = {
    "was not asked for": lambda _section: None,
    "crashed": lambda _section: Probe(
        outcome="crashed", reason="the probe died by signal 9 (SIGKILL)"
    ),
    "was refused": lambda _section: Probe(outcome="refused", reason="could not be started"),
    "knows nothing": lambda section: ok(EMPTY[section]),
}


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("section", EMPTY)
@pytest.mark.parametrize("name", BROKEN)
def test_no_check_crashes_where_a_probe_failed(name: str, section: str, fate: str) -> None:
    broken = machine(**BROKEN[name])
    doc = msgspec.structs.replace(broken.machine, **{section: FATES[fate](section)})
    found = results(msgspec.structs.replace(broken, machine=doc))
    assert not [r.reason for r in found.values() if "the check crashed" in r.reason]
    if name == "healthy" and (section, fate) != ("cuda", "crashed"):
        # A probe that failed is no finding; only a libcuda that kills who loads it is.
        assert not [code for code, r in found.items() if r.findings]


def test_what_nvidia_smi_printed_in_a_documents_place_is_judged() -> None:
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    found = snapshot(nvidia_smi=NvidiaSmi(message=text, gpus=ERROR))
    found = msgspec.structs.replace(
        found, machine=msgspec.structs.replace(found.machine, origin="nvidia-smi")
    )
    (finding,) = results(found)["DRV-003"].findings
    assert finding.level == "fail" and "not loaded" in finding.message
    assert finding.remedy is not None and finding.remedy.commands
