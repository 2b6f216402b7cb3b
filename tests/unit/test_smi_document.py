"""nvidia-smi's documents as facts: every capture, schema and kind of non-value; and what people paste."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import build
import captures
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world.kernel_tree import reason

from envcheck.checks.engine import diagnose
from envcheck.collector.facts import dumps
from envcheck.collector.smi import document
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Gpu, NvidiaSmi
from envcheck.facts.snapshot import SCHEMA, Snapshot

# file: (schema, driver, CUDA, attached GPUs, first GPU's name, PCI address)
CAPTURES = {
    "a100-sxm4-v12": ("v12", "535.54.03", "12.2", 4, "NVIDIA A100-SXM4-80GB", "0000:01:00.0"),
    "a10g": ("v11", "515.105.01", "11.7", 1, "NVIDIA A10G", "0000:00:1e.0"),
    "gtx-1070-ti": ("v10", None, None, None, "GeForce GTX 1070 Ti", "0000:01:00.0"),
    "gtx-1660-ti": (None, "418.43", "10.1", 1, "Graphics Device", "0000:43:00.0"),
    "quadro-p2000-v12": ("v12", "525.125.06", "12.0", 1, "Quadro P2000", "0000:17:00.0"),
    "quadro-p400": (None, "418.43", "10.1", 1, "Quadro P400", "0000:43:00.0"),
    "rtx-3060-v12": ("v12", "570.124.04", "12.8", 1, "NVIDIA GeForce RTX 3060", "0000:2d:00.0"),
    "rtx-3080-v12": ("v12", "536.40", "12.2", 1, "NVIDIA GeForce RTX 3080", "0000:04:00.0"),
    "rtx-3080-v13": ("v13", "595.58.03", "13.2", 1, "NVIDIA GeForce RTX 3080", "0000:0c:00.0"),
    "rtx-3090-v12": ("v12", "525.147.05", "12.0", 1, "NVIDIA GeForce RTX 3090", "0000:00:10.0"),
    "rtx-4000-sff-ada-v13": (
        "v13",
        "595.84",
        "13.2",
        1,
        "NVIDIA RTX 4000 SFF Ada Generation",
        "0000:06:00.0",
    ),
    "tesla-t4": ("v11", "515.105.01", "11.7", 1, "Tesla T4", "0000:00:1e.0"),
}


def typed(facts: dict[str, Any]) -> NvidiaSmi:
    """The facts through JSON and the Snapshot's types, as they will travel."""
    return msgspec.json.decode(dumps(facts).encode(), type=NvidiaSmi)


def only_gpu(facts: dict[str, Any]) -> Gpu:
    (gpu,) = msgspec.structs.asdict(typed(facts))["gpus"]
    assert isinstance(gpu, Gpu)
    return gpu


@pytest.mark.parametrize("name", CAPTURES)
def test_every_xml_capture(name: str) -> None:
    schema, driver, cuda, count, product, address = CAPTURES[name]
    facts = document.read_file(str(captures.path(f"nvidia-smi-xml/{name}.xml")))
    assert facts["form"] == "xml"
    expected = {
        "schema": schema,
        "driver_version": driver,
        "cuda_version": cuda,
        "gpu_count": count,
    }
    assert {key: facts.get(key) for key in expected} == expected
    gpu = only_gpu(facts)
    assert (gpu.name, gpu.pci_address) == (product, address)
    assert str(gpu.uuid).startswith("GPU-")


def test_a_full_document_fills_every_field_that_it_can() -> None:
    path = captures.path("nvidia-smi-xml/rtx-4000-sff-ada-v13.xml")
    gpu = only_gpu(document.read_file(str(path)))
    empty = {
        name for name in Gpu.__struct_fields__
        if getattr(getattr(gpu, name), "unavailable", "") == "not-collected"
    }  # fmt: skip
    assert empty == {
        "compute_capability", "nvlinks",  # never in -q
        "vgpu_licence",  # of vGPUs only
        "reset_required", "drain_and_reset_recommended",  # replaced by the recovery action
        "gsp_enabled", "inforom_valid", "stopped",  # NVML's alone
        "serial",  # taken out by whoever sent it
        # relative to T.Limit since Ada
        "temperature_slowdown_c", "temperature_shutdown_c", "memory_temperature_max_c",
    }  # fmt: skip


def a_document(body: str, count: int = 1) -> str:
    return (
        f"<nvidia_smi_log><driver_version>590.1</driver_version><attached_gpus>{count}</attached_gpus>"
        f'<gpu id="00000000:01:00.0">{body}</gpu></nvidia_smi_log>'
    )


def read_gpu(body: str) -> Gpu:
    return only_gpu(document.read_document(a_document(body)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N/A", "not-supported"),
        ("[N/A]", "not-supported"),
        ("[Not Supported]", "not-supported"),
        ("Not Supported", "not-supported"),
        ("Requested functionality has been deprecated", "not-supported"),
        ("Function Not Found", "not-supported"),
        ("ERR!", "error"),
        ("Unknown Error", "error"),
        ("[Unknown Error]", "error"),
        ("[GPU requires reset]", "error"),
        ("GPU requires restart", "error"),
        ("GPU is lost", "lost"),
        ("[GPU is lost]", "lost"),
        ("Insufficient Permissions", "no-permission"),
        ("Timeout", "timeout"),
        ("Not Found", "absent"),
        ("", "absent"),
        ("[REDACTED]", "not-collected"),
        ("twelve", "error"),
        ("99999999999999999999", "error"),
    ],
)
def test_what_stands_instead_of_a_value(text: str, expected: str) -> None:
    gpu = read_gpu(f"<minor_number>{text}</minor_number><serial>{text}</serial>")
    assert reason(gpu.minor_number) == expected
    if text not in ("twelve", "99999999999999999999"):
        assert reason(gpu.serial) == expected
    if expected in ("error", "lost", "no-permission"):
        assert text.strip("[]") in gpu.minor_number.detail  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("body", "field", "expected"),
    [
        ("<fb_memory_usage><total>16 GiB</total></fb_memory_usage>", "memory_total_mib", 16384),
        ("<fb_memory_usage><total>2048 MB</total></fb_memory_usage>", "memory_total_mib", 2048),
        ("<temperature><gpu_temp_tlimit>-3 C</gpu_temp_tlimit></temperature>", "temperature_margin_c",
         -3),
        ("<persistence_mode>Enabled</persistence_mode>", "persistence", True),
        ("<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>", "reset_required",
         True),
        ("<gpu_recovery_action>Drain and Reset</gpu_recovery_action>", "recovery_action",
         "Drain and Reset"),
        (
            "<vgpu_software_licensed_product><license_status>Licensed (Expiry: 2026-7-7 16:1:44 GMT)"
            "</license_status></vgpu_software_licensed_product>",
            "vgpu_licence",
            "Licensed (Expiry: 2026-7-7 16:1:44 GMT)",
        ),
        ("<processes></processes>", "processes", []),
        ("<pci><pci_bus_id>00010000:0A:1F.0</pci_bus_id></pci>", "pci_address", "10000:0a:1f.0"),
        ("<pci><pci_bus_id>N/A</pci_bus_id></pci>", "pci_address", "0000:01:00.0"),
    ],
)  # fmt: skip
def test_values(body: str, field: str, expected: object) -> None:
    assert getattr(read_gpu(body), field) == expected


def test_the_three_shapes_of_ecc_counters() -> None:
    old = (
        "<ecc_errors><volatile><single_bit><total>3</total></single_bit>"
        "<double_bit><device_memory>1</device_memory><total>2</total></double_bit></volatile></ecc_errors>"
    )
    gpu = read_gpu(old)
    assert (gpu.ecc_corrected_volatile, gpu.ecc_uncorrected_volatile) == (3, 2)
    middle = (
        "<ecc_errors><aggregate><sram_correctable>1</sram_correctable><sram_uncorrectable>2"
        "</sram_uncorrectable><dram_correctable>10</dram_correctable><dram_uncorrectable>20"
        "</dram_uncorrectable></aggregate></ecc_errors>"
    )
    gpu = read_gpu(middle)
    assert (gpu.ecc_corrected_aggregate, gpu.ecc_uncorrected_aggregate) == (11, 22)
    new = (
        "<ecc_errors><aggregate><sram_correctable>1</sram_correctable><sram_uncorrectable_parity>2"
        "</sram_uncorrectable_parity><sram_uncorrectable_secded>3</sram_uncorrectable_secded>"
        "<dram_correctable>N/A</dram_correctable><dram_uncorrectable>4</dram_uncorrectable>"
        "<sram_threshold_exceeded>Yes</sram_threshold_exceeded></aggregate></ecc_errors>"
    )
    gpu = read_gpu(new)
    assert (gpu.ecc_corrected_aggregate, gpu.ecc_uncorrected_aggregate) == (1, 9)
    assert gpu.sram_threshold_exceeded is True
    assert (gpu.sram_parity_aggregate, gpu.sram_secded_aggregate) == (2, 3)
    assert (
        reason(read_gpu("<ecc_errors>N/A</ecc_errors>").ecc_uncorrected_volatile) == "not-supported"
    )


def test_a_file_s_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="No such file"):
        document.read_file(str(tmp_path / "none"))
    with pytest.raises(OSError, match="directory"):
        document.read_file(str(tmp_path))
    (tmp_path / "big").write_bytes(b"x" * 101)
    monkeypatch.setattr(document, "FILE_LIMIT", 100)
    with pytest.raises(ValueError, match="larger"):
        document.read_file(str(tmp_path / "big"))


MODEL = a_document(
    "<minor_number>0</minor_number><clocks_event_reasons><clocks_event_reason_gpu_idle>Active"
    "</clocks_event_reason_gpu_idle></clocks_event_reasons><processes><process_info><pid>1</pid>"
    "<process_name>x</process_name></process_info></processes><mig_mode><current_mig>Enabled"
    "</current_mig></mig_mode><mig_devices><mig_device><gpu_instance_id>1</gpu_instance_id>"
    "</mig_device></mig_devices><fabric><health><bandwidth>Full</bandwidth></health></fabric>"
)
WORDS = st.one_of(
    st.sampled_from(["", "N/A", "-1", "0", "9" * 30, "Yes", "[x]", "1 MiB"]), st.text(max_size=12)
)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), WORDS), max_size=6))
def test_whatever_stands_in_a_document_is_a_snapshot_or_a_value_error(
    changes: list[tuple[int, str]],
) -> None:
    pieces = re.split(r"(>[^<]*<)", MODEL)
    for place, text in changes:
        leaf = 2 * (place % (len(pieces) // 2)) + 1
        pieces[leaf] = f">{text}<"
    try:
        facts = document.read_document("".join(pieces))
    except ValueError:
        return
    typed(facts)


NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NO_DRIVER + " that it runs.\n", NO_DRIVER),
        ("$ nvidia-smi\n> Failed to initialize NVML: Driver/library version mismatch\n", "Failed to"),
        ("  Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.\n", "Unable to"),
    ],
)  # fmt: skip
def test_an_error_in_the_place_of_a_document_is_its_words(
    tmp_path: Path, text: str, expected: str
) -> None:
    file = tmp_path / "smi.txt"
    file.write_text(text)
    facts = typed(document.read_file(file))
    assert isinstance(facts.message, str) and facts.message.startswith(expected)
    for fact in (facts.gpus, facts.driver_version):
        assert isinstance(fact, Unavailable) and expected in fact.detail


def facts_of(text: str, tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "smi.txt"
    file.write_bytes(text.encode())
    return document.read_file(str(file))


def alarms(facts: dict[str, Any]) -> set[tuple[str, str]]:
    """What the doctor says of the document, besides that it was cut."""
    sent = msgspec.structs.replace(build.document(nvidia_smi=typed(facts)), origin="nvidia-smi")
    results = diagnose(Snapshot(schema=SCHEMA, redacted=True, machine=sent, target=None)).results
    return {
        (result.code, result.outcome)
        for result in results
        if result.outcome in ("fail", "warn") and result.code != "DRV-011"
    }


# Driver 610


# Wrapped


# Cut


def cuts(text: str, step: int = 1) -> Iterator[str]:
    """The text up to each line, and into the midst of the next one."""
    every = text.split("\n")
    for number in range(1, len(every), step):
        whole = "\n".join(every[:number]) + "\n"
        yield whole
        yield whole + every[number][: len(every[number]) * 2 // 3]


def new_alarms(text: str, tmp_path: Path, step: int = 1) -> set[tuple[str, str]]:
    """Of the text cut at every line: what is said that is not said of the whole."""
    found: set[tuple[str, str]] = set()
    for cut in cuts(text, step):
        try:
            found |= alarms(facts_of(cut, tmp_path))
        except ValueError:
            continue
    return found - alarms(facts_of(text, tmp_path))


def section(name: str) -> str:
    text = captures.path(name).read_text()
    begin = text.rindex("\n", 0, text.index("NVSMI LOG")) + 1
    return text[begin : text.index("\n####", begin)]


SECTIONS = (captures.H200, captures.H100_MIG, captures.RTX_4080)


@pytest.mark.heavy
def test_every_capture_cut_at_many_lines(tmp_path: Path) -> None:
    for file in sorted((captures.FOLDER / "nvidia-smi-xml").glob("*.xml")):
        assert new_alarms(file.read_text(errors="replace"), tmp_path, step=5) == set(), file.name
    for name in SECTIONS:
        assert new_alarms(section(name), tmp_path) == set(), name


# Errors alone


def test_no_devices(tmp_path: Path) -> None:
    assert facts_of("$ nvidia-smi\n> No devices were found\n", tmp_path)["gpus"] == []


# Hostile


@pytest.mark.parametrize(
    "piece",
    ["NVSMI LOG\n", "GPU 0: ",
     "=", "==============NVSMI LOG==============\nGPU 00000000:01:00.0\n", "<nvidia_smi_log><gpu>", "\n",
     "Failed to initialize NVML"],
)  # fmt: skip
def test_a_megabyte_of_anything_is_read_in_linear_time(piece: str, tmp_path: Path) -> None:
    taken = []
    for size in (100_000, 1_000_000):
        began = time.process_time()
        try:
            facts_of(piece * (size // len(piece)), tmp_path)
        except ValueError as error:
            assert len(str(error)) < 300
        taken.append(time.process_time() - began)
    assert taken[1] < 2.0 or taken[1] < 25 * taken[0]
