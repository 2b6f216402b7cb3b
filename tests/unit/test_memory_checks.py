"""Memory and links: what the checks make of made-up runs. No GPU and no process is in here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from h100 import ADDRESSES, COUNT, gpu, mig_instance, nvml, pci_device
from judged import told
from memory_runs import (
    SYSTEMS,
    both,
    changed,
    judged,
    links_trials,
    memory_trials,
    peers_trials,
    run,
    runs,
    set_,
    trial,
    with_runs,
)

from envcheck.checks.registry import all_checks
from envcheck.collector.systems import peers
from envcheck.collector.systems.running.records import TRIALS
from envcheck.data import table
from envcheck.data.bandwidth import memory_line, peer_line, published_memory
from envcheck.facts.acceleration import SystemRun
from envcheck.facts.gpu import Gpu, GpuPair
from envcheck.facts.host import Host
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import DEEPER

CODES = [f"MEM-{number:03d}" for number in range(1, 7)]
FIRST, SECOND = ADDRESSES[:2]
DIRECT, HOST = f"directly {FIRST} to {SECOND}", f"by way of the host {FIRST} to {SECOND}"
VIRTUAL = Host(os_id="ubuntu", wsl=False, hypervisor="kvm")
METAL = Host(os_id="ubuntu", wsl=False)
WSL = Host(os_id="ubuntu", wsl=True)


def each(count: int = COUNT, **facts: Any) -> list[Gpu]:
    return [gpu(number, **facts) for number in range(count)]


def idle(count: int = COUNT, **facts: Any) -> list[Gpu]:
    return each(count, **{"processes": [], "clock_event_reasons": ["gpu_idle"], **facts})


def outcomes(snapshot: Snapshot) -> dict[str, str]:
    return {code: judged(snapshot, code).outcome for code in CODES}


# -- healthy


def test_a_healthy_machine_is_told_its_rates() -> None:
    snapshot = with_runs(runs())
    details = {code: judged(snapshot, code) for code in CODES}
    assert {code: one.outcome for code, one in details.items()} == dict.fromkeys(CODES, "pass")
    assert details["MEM-001"].detail == (
        "8 GPUs, 20,000 MiB or more of each written and read back, nothing wrong"
    )
    assert details["MEM-002"].detail == "8 GPUs: 2,900 GB/s, of 3,350 GB/s published"
    assert "to it 55.1 GB/s, back 54.2 GB/s" in details["MEM-003"].detail
    assert "pageable 9.0 to 11.0 GB/s over generation 5 x16" in details["MEM-003"].detail
    assert "GPU 0: near (node 0) 54.0 GB/s, far 40.0 GB/s" in details["MEM-004"].detail
    assert details["MEM-005"].detail == "directly 380 GB/s, by way of the host 30.0 GB/s"
    assert details["MEM-006"].detail == "whole: 56 direct copies, 28 by way of the host"


def one_gpu(trials: dict[str, Any], system: str, **facts: Any) -> list[SystemRun]:
    return [run(system, trials, **facts)]


SLOW_MEMORY = both(*[set_(way, gb_s=300.0) for way in ("copy", "read", "write", "triad")])
SLOW_LINK = both(*[set_(f"pinned {way} the GPU", gb_s=9.0) for way in ("to", "from")])
NODE_FAR = both(*[set_(f"node 1 {way} the GPU", gb_s=20.0) for way in ("to", "from")])
NODE_NEAR = both(*[set_(f"node 0 {way} the GPU", gb_s=20.0) for way in ("to", "from")])


@pytest.mark.parametrize(
    ("code", "made", "outcome", "words"),
    [
        # -- the pattern
        (
            "MEM-001",
            changed("memory", set_("pattern", wrong=3, where=["0x7f10 to 0x7fff"], bits="0x10")),
            "fail",
            "3 words of 8 bytes in 20,000 MiB of the memory of GPU 0 came back different from what was"
            " written, at device addresses 0x7f10 to 0x7fff (bits that differ: 0x10)",
        ),
        (
            "MEM-001",
            changed("memory", set_("with the host", wrong=1)),
            "fail",
            "1 word of 8 bytes",
        ),
        ("MEM-001", changed("memory", set_("inverted pattern", wrong=1), place=5), "fail", "GPU 5"),
        (
            "MEM-001",
            changed(
                "memory", set_("pattern", "error", "cuMemcpyDtoH: CUDA_ERROR_ECC_UNCORRECTABLE")
            ),
            "fail",
            "meets an uncorrectable error",
        ),
        (
            "MEM-001",
            changed("memory", set_("with the host", "error", "CUDA_ERROR_ECC_UNCORRECTABLE")),
            "fail",
            "meets an uncorrectable error",
        ),
        (
            "MEM-001",
            changed(
                "memory",
                both(
                    set_("pattern", "out-of-memory", "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"),
                    set_("inverted pattern", "out-of-memory"),
                ),
            ),
            "could-not-run",
            "CUDA_ERROR_OUT_OF_MEMORY",
        ),
        (
            "MEM-001",
            changed("memory", set_("inverted pattern", "timeout", "not done within 30 s")),
            "could-not-run",
            "GPU 0: not done within 30 s",
        ),
        (
            "MEM-001",
            changed(
                "memory", lambda t: t.clear(), outcome="busy", reason="GPU 0: python3 is using it"
            ),
            "could-not-run",
            "python3 is using it",
        ),
        (
            "MEM-001",
            changed("memory", set_("pattern", mib="much", wrong=[]), count=1),
            "pass",
            "20,000 MiB written",
        ),
        # -- its bandwidth
        (
            "MEM-002",
            changed("memory", SLOW_MEMORY),
            "warn",
            "reaches 300 GB/s, while DCGM passes from 1,905 GB/s on",
        ),
        (
            "MEM-002",
            changed(
                "memory", both(*[set_(w, gb_s=2000.0) for w in ("copy", "read", "write", "triad")])
            ),
            "warn",
            "its 7 peers reach 2,900 GB/s",
        ),
        (
            "MEM-002",
            changed("memory", both(SLOW_MEMORY, set_("device", l2_mib=512.0)), count=1),
            "skipped",
            "too little free memory",
        ),
        (
            "MEM-002",
            changed(
                "memory",
                both(*[set_(w, "error", "it broke") for w in ("copy", "read", "write", "triad")]),
            ),
            "could-not-run",
            "GPU 0: it broke",
        ),
        # -- host and GPU
        (
            "MEM-003",
            changed("links", set_("round trip", wrong=2, where=["byte 0x8 to 0xf"], bits="0x1")),
            "fail",
            "2 words of 8 bytes came back different from a copy of 64 MiB to the host and back to GPU 0",
        ),
        (
            "MEM-003",
            changed("links", SLOW_LINK),
            "warn",
            "reach 9.0 GB/s, while its link, generation 5 x16, carries 63.0 GB/s: a factor of 7.0",
        ),
        (
            "MEM-003",
            changed(
                "links",
                both(
                    *[
                        set_(f"pinned {way} the GPU", gb_s=3.2, pcie_gen=1, pcie_width=16)
                        for way in ("to", "from")
                    ]
                ),
            ),
            "warn",
            "reach 3.2 GB/s, over a link that came up with generation 1 of 5",
        ),
        (
            "MEM-003",
            changed(
                "links",
                both(
                    *[
                        set_(f"pinned {way} the GPU", gb_s=13.0, pcie_gen=5, pcie_width=4)
                        for way in ("to", "from")
                    ]
                ),
            ),
            "warn",
            "x4 of x16",
        ),
        (
            "MEM-003",
            changed(
                "links",
                both(*[set_(f"pinned {way} the GPU", gb_s=36.0) for way in ("to", "from")]),
            ),
            "warn",
            "its 7 peers reach 54.2 GB/s",
        ),
        (
            "MEM-003",
            changed(
                "links", both(*[set_(f"pinned {w} the GPU", gb_s=400.0) for w in ("to", "from")])
            ),
            "pass",
            "to 400 GB/s",
        ),
        (
            "MEM-003",
            changed("links", set_("round trip", "out-of-memory", "cuMemHostAlloc: out of memory")),
            "pass",
            "8 GPUs",
        ),
        (
            "MEM-003",
            changed(
                "links",
                both(
                    set_("round trip", "out-of-memory", "cuMemHostAlloc: out of memory"),
                    lambda t: [t.pop(n) for n in list(t) if n.startswith("pinned")] and None,
                ),
            ),
            "could-not-run",
            "GPU 0: cuMemHostAlloc: out of memory",
        ),
        (
            "MEM-003",
            changed(
                "links", lambda t: t.clear(), outcome="not-applicable", reason="it shares memory"
            ),
            "pass",
            "7 GPUs",
        ),
        # -- NUMA
        (
            "MEM-004",
            changed("links", NODE_FAR),
            "warn",
            "Host memory of NUMA node 1 reaches GPU 0 at 20.0 GB/s, that of its own node 0 at 54.0 GB/s",
        ),
        ("MEM-004", changed("links", NODE_FAR), "warn", "numactl --cpunodebind=0 --membind=0"),
        (
            "MEM-004",
            changed("links", NODE_NEAR),
            "warn",
            "calls NUMA node 0 near to GPU 0, and memory of node 1 is faster",
        ),
        (
            "MEM-004",
            changed("links", lambda t: t["device"].evidence.pop("node") and None, count=1),
            "pass",
            "node 0 is near by its speed",
        ),
        ("MEM-004", changed("links", set_("device", nodes=1), count=1), "skipped", "one NUMA node"),
        (
            "MEM-004",
            changed(
                "links",
                both(
                    *[
                        set_(f"node {n} {w} the GPU", "not-supported", "memory of this kind: no")
                        for n in (0, 1)
                        for w in ("to", "from")
                    ]
                ),
            ),
            "could-not-run",
            "memory of this kind: no",
        ),
        # -- GPU to GPU
        (
            "MEM-005",
            changed("peers", set_(DIRECT, gb_s=20.0)),
            "warn",
            "GPU 0 to GPU 1 20.0 GB/s, while the NVLinks of each carry 450 GB/s",
        ),
        (
            "MEM-005",
            changed("peers", set_(DIRECT, gb_s=240.0)),
            "warn",
            "while Azure passes such pairs from 335 GB/s on",
        ),
        (
            "MEM-005",
            changed("peers", lambda t: t.clear(), outcome="not-applicable", reason="one GPU"),
            "skipped",
            "one GPU",
        ),
        (
            "MEM-005",
            changed("peers", lambda t: t.clear(), outcome="error", reason="cuInit: it broke"),
            "could-not-run",
            "cuInit: it broke",
        ),
        # -- and whole
        (
            "MEM-006",
            changed("peers", set_(DIRECT, wrong=2, where=["byte 0x8 to 0xf of the copy"])),
            "fail",
            "Direct copies from GPU to GPU arrive damaged: GPU 0 to GPU 1 (2 words); first at byte 0x8",
        ),
        (
            "MEM-006",
            changed("peers", set_(DIRECT, wrong_read=1)),
            "fail",
            "GPU 0 to GPU 1 (1 word)",
        ),
        ("MEM-006", changed("peers", set_(HOST, wrong=1)), "fail", "Copies from GPU to GPU arrive"),
        (
            "MEM-006",
            changed("peers", set_(DIRECT, "timeout", "not done within 60 s"), outcome="timeout"),
            "fail",
            "A direct copy from GPU 0 to GPU 1 never ends",
        ),
        (
            "MEM-006",
            changed("peers", set_(DIRECT, "crashed", "its process died"), outcome="crashed"),
            "could-not-run",
            "its process died",
        ),
        (
            "MEM-006",
            changed("peers", set_(HOST, "timeout", "not done within 60 s"), outcome="timeout"),
            "could-not-run",
            "not done within 60 s",
        ),
    ],
)
def test_each_state_and_cause(code: str, made: list[SystemRun], outcome: str, words: str) -> None:
    result = judged(with_runs(made), code)
    assert result.outcome == outcome, told(result)
    assert words in told(result), told(result)
    for finding in result.findings:
        assert finding.evidence and finding.subjects and finding.headline
        assert finding.message.endswith((".", ")")) and finding.remedy is not None


# -- no wolf


@pytest.mark.parametrize(
    ("gpus", "sections"),
    [
        (each(mig_enabled=True, mig_instances=[mig_instance()]), {}),
        (each(virtualization="VGPU"), {}),
        (each(), {"host": WSL}),
    ],
    ids=["MIG", "vGPU", "WSL"],
)
def test_a_share_of_a_gpu_is_held_against_nothing(
    gpus: list[Gpu], sections: dict[str, Any]
) -> None:
    slow = changed("memory", SLOW_MEMORY)
    link = changed("links", both(SLOW_LINK, set_("pageable to the GPU", gb_s=1.0)))
    for made, code in ((slow, "MEM-002"), (link, "MEM-003")):
        result = judged(with_runs(made, gpus, **sections), code)
        assert result.outcome == "pass" and "not judged" in result.detail, told(result)


@pytest.mark.parametrize(
    ("gpus", "host"), [(each(virtualization="VGPU"), METAL), (each(), WSL)], ids=["vGPU", "WSL"]
)
def test_copies_between_shares_of_gpus_are_held_against_nothing(
    gpus: list[Gpu], host: Host
) -> None:
    made = changed("peers", set_(DIRECT, gb_s=2.0))
    assert judged(with_runs(made, gpus, host=host), "MEM-005").outcome == "pass"


def test_a_product_without_a_pass_line_is_held_against_what_is_published() -> None:
    devices = [pci_device(address, device_id="10de:9999") for address in ADDRESSES]
    changes = both(SLOW_MEMORY)
    changes(trials := memory_trials())
    result = judged(
        with_runs([run("memory", trials)], idle(1), pci=Pci(devices=devices)), "MEM-002"
    )
    assert result.outcome == "warn" and "3,350 GB/s are published" in told(result)


def test_what_the_host_looks_at_alone_says_little() -> None:
    changes = both(set_("pattern", "out-of-memory", "no"), set_("inverted pattern", "error", "no"))
    changes(trials := memory_trials())
    result = judged(with_runs([run("memory", trials)]), "MEM-001")
    assert result.outcome == "could-not-run" and not result.detail, told(result)


def test_an_instance_is_known_by_what_libcuda_says() -> None:
    made = changed("memory", both(SLOW_MEMORY, set_("device", instance=True)))
    assert judged(with_runs(made), "MEM-002").outcome == "pass"


def test_memory_shared_with_the_host_is_held_against_nothing() -> None:
    made = changed("memory", both(SLOW_MEMORY, set_("device", integrated=True)))
    assert judged(with_runs(made), "MEM-002").outcome == "pass"


def test_wrong_data_is_a_failure_on_any_share() -> None:
    gpus = each(mig_enabled=True, mig_instances=[mig_instance()])
    assert judged(with_runs(changed("memory", set_("pattern", wrong=1)), gpus), "MEM-001").findings


@pytest.mark.parametrize(
    ("host", "rate", "generation", "width", "outcome"),
    [
        (VIRTUAL, 24.0, 1, 1, "pass"),  # made up, as the speed says
        (VIRTUAL, 12.0, 3, 16, "pass"),  # of a slot that is not seen
        (METAL, 12.0, 3, 16, "warn"),
        (METAL, 400.0, 1, 16, "pass"),  # NVLink-C2C: the PCIe link idles
    ],
)
def test_a_link_is_judged_by_what_can_be_true(
    host: Host, rate: float, generation: int, width: int, outcome: str
) -> None:
    link = {"pcie_gen": generation, "pcie_width": width}
    changes = both(*[set_(f"pinned {way} the GPU", gb_s=rate, **link) for way in ("to", "from")])
    changes(trials := links_trials())
    made = [run("links", trials, place) for place in range(COUNT)]
    result = judged(with_runs(made, host=host), "MEM-003")
    assert result.outcome == outcome, told(result)


def test_a_link_that_nobody_saw_is_taken_from_the_facts() -> None:
    trials = links_trials()
    for name in ("pinned to the GPU", "pinned from the GPU"):
        trials[name] = trial(name, gb_s=9.0, mib=64)
    result = judged(with_runs([run("links", trials)], each(1)), "MEM-003")
    assert "generation 5 x16" in told(result) and result.outcome == "warn"
    blind = each(1, pcie_gen_max=None or gpu().pcie_replays, pcie_width=16)
    assert judged(with_runs([run("links", trials)], blind), "MEM-003").outcome == "pass"


def without_access() -> dict[str, Any]:
    trials = peers_trials()
    for name in trials:
        if name.startswith("directly"):
            trials[name] = trial(name, "not-supported", "the driver lets these two not")
    return trials


def test_boards_without_direct_access_copy_by_way_of_the_host() -> None:
    snapshot = with_runs([run("peers", without_access())], each(name="NVIDIA GeForce RTX 4090"))
    assert judged(snapshot, "MEM-005").detail == (
        "by way of the host 30.0 GB/s, the driver offers no direct access"
    )
    assert judged(snapshot, "MEM-006").detail == (
        "whole: 28 copies by way of the host; no direct access"
    )


def test_pairs_that_were_left_out_are_told() -> None:
    trials = {**peers_trials(2), "left out": trial("left out", pairs=96)}
    assert judged(with_runs([run("peers", trials)]), "MEM-006").detail == (
        "whole: 2 direct copies, 1 by way of the host; 96 pairs left out"
    )


@pytest.mark.parametrize(("count", "pairs"), [(2, 1), (8, 28), (10, 14), (16, 23), (40, 30)])
def test_a_process_tells_of_so_many_pairs(count: int, pairs: int) -> None:
    found = peers.pairs_of(count)
    assert len(found) == pairs == len(set(found))
    assert 3 * len(found) + 1 <= TRIALS
    if count <= 16:
        assert {end for pair in found for end in pair} == set(range(count))


def pcie_pairs(level: str, rate: float, odd: float) -> Snapshot:
    """Eight boards without NVLink, joined in one way; one copy differs."""
    trials = peers_trials()
    for name, one in trials.items():
        if name.startswith("directly"):
            evidence = {**one.evidence, "GB/s": odd if name == DIRECT else rate}
            trials[name] = trial(name, **evidence)
    gpus = each(name="NVIDIA L40S", nvlinks=[], pcie_gen_max=4)
    pairs = [
        GpuPair(first=one, second=other, level=level, p2p_read="ok")
        for place, one in enumerate(ADDRESSES)
        for other in ADDRESSES[place + 1 :]
    ]
    return with_runs([run("peers", trials)], gpus, nvml=nvml(gpus, pairs=pairs))


@pytest.mark.parametrize(
    ("level", "rate", "odd", "words"),
    [
        ("PIX", 25.0, 25.0, ""),
        ("PIX", 25.0, 9.0, "while their PCIe switch and links carry 31.5 GB/s"),
        ("SYS", 9.0, 9.0, ""),
        ("SYS", 20.0, 9.0, "while 55 pairs that are joined alike reach 20.0 GB/s"),
    ],
)
def test_pairs_over_pcie(level: str, rate: float, odd: float, words: str) -> None:
    result = judged(pcie_pairs(level, rate, odd), "MEM-005")
    assert result.outcome == ("warn" if words else "pass")
    assert words in told(result), told(result)


def test_nvlinks_without_a_switch_join_some_pairs_better_than_others() -> None:
    """A DGX-1: 1 or 2 of 6 links, and none between some pairs."""
    trials = peers_trials()
    for place, (name, one) in enumerate(trials.items()):
        if name.startswith("directly"):
            trials[name] = trial(
                name, **{**one.evidence, "GB/s": [9.0, 24.0, 48.0][place // 3 % 3]}
            )
    links = gpu().nvlinks
    assert isinstance(links, list)
    gpus = each(name="Tesla V100-SXM2-32GB", nvlinks=links[:6])
    assert judged(with_runs([run("peers", trials)], gpus), "MEM-005").outcome == "pass"


# -- what was not asked for, or is not there


def test_a_standard_look_asks_for_none_of_it() -> None:
    bare = msgspec.structs.replace(with_runs([]), machine=with_runs([], asked=[]).machine)
    for code in CODES:
        result = judged(bare, code)
        assert (result.outcome, result.reason) == ("skipped", DEEPER)


def test_nothing_ran() -> None:
    assert outcomes(with_runs([])) == dict.fromkeys(CODES, "skipped")
    made = [
        run(system, {}, outcome="not-run", reason="no GPU: libcuda cannot be loaded")
        for system in SYSTEMS
    ]
    snapshot = with_runs(made)
    assert outcomes(snapshot) == dict.fromkeys(CODES, "could-not-run")
    assert "libcuda cannot be loaded" in told(judged(snapshot, "MEM-003"))


@pytest.mark.parametrize("system", SYSTEMS)
def test_hostile_evidence_breaks_nothing(system: str) -> None:
    healthy = {"memory": memory_trials, "links": links_trials, "peers": peers_trials}[system]()
    values: list[Any] = ["", "many", -1, 0, 1e308, True, ["a", "b"], float(1 << 63)]
    for value in values:
        trials = {
            name: trial(name, **dict.fromkeys(one.evidence, value)) for name, one in healthy.items()
        }
        trials["node 99999 to the GPU"] = trial("node 99999 to the GPU", gb_s=value)
        trials["directly  to "] = trial("directly  to ", gb_s=value)
        for code in CODES:
            judged(with_runs([run(system, trials)]), code)
    for code in CODES:
        judged(with_runs([run(system, healthy, gpus=[])], gpus=[]), code)


def test_a_replay_says_the_same() -> None:
    for made in (runs(), changed("links", SLOW_LINK), changed("peers", set_(DIRECT, wrong=1))):
        snapshot = with_runs(made)
        again = msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot)
        for code in CODES:
            assert judged(snapshot, code) == judged(again, code)


# -- the tables


def test_the_pass_lines_are_below_what_is_published() -> None:
    rows = table("bandwidth_reference")
    assert len(rows) > 25 and all(row["source"] and row["kind"] for row in rows)
    for row in rows:
        if row["what"] == "memory":
            published = float(row["note"].rpartition(" ")[2])
            assert 0.4 < float(row["gb_s"]) / published < 0.7, row["gpu"]
    line = memory_line("10DE:2330")
    assert line is not None and line.gb_s == 1905
    assert memory_line("10de:26b5") is None  # ten times too small in the source
    azure = peer_line("NVIDIA H100 80GB HBM3")
    assert azure is not None and azure.gb_s == 335


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("NVIDIA H100 80GB HBM3", 3350),
        ("NVIDIA H100 PCIe", 2000),
        ("NVIDIA H100 NVL", 3940),
        ("NVIDIA H200", 4800),
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100 80GB PCIe", 1935),
        ("Tesla V100-PCIE-16GB", 897),
        ("Tesla V100-SXM2-32GB", 900),
        ("NVIDIA L4", 300.1),
        ("NVIDIA GeForce RTX 4090", 1008),
        ("NVIDIA L4000", None),
        ("", None),
    ],
)
def test_a_product_s_memory_as_published(name: str, rate: float | None) -> None:
    assert published_memory(name) == rate


def test_the_checks_are_those_of_the_area() -> None:
    found = {one.code: one.systems for one in all_checks() if one.area == "memory"}
    assert list(found) == CODES
    assert {name for names in found.values() for name in names} == set(SYSTEMS)
    assert all(len(one.title) <= 20 for one in all_checks() if one.area == "memory")
