"""Checks on the target's environment variables: each with a bad, a good and a missing one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from targets import (
    ABSENT,
    SITE,
    dist,
    good_snapshot,
    good_target,
    gpu,
    interpreter,
    judge,
    machine,
    packages,
    replace,
    snapshot,
    tensorflow,
    with_variables,
)

from envcheck.collector.probes import environment as environment_probe
from envcheck.collector.runtime.context import Context
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import CudaDriver, Gpu, MigInstance, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel
from envcheck.facts.pci import Pci, PciDevice
from envcheck.facts.target import Environment, FrameworkGpu, Shadow
from envcheck.findings.model import CheckResult

CODES = [f"ENV-{number:03d}" for number in (1, 2, 4, 5, 7, 9, 10, 11, 15, 17)]


def on(code: str, **values: str) -> CheckResult:
    return judge(with_variables(**values), code, "environment")


def of_gpus(code: str, *gpus: Gpu, **values: str) -> CheckResult:
    target = good_target(environment=Environment(variables=values))
    return judge(snapshot(target, **machine(*gpus)), code, "environment")


@pytest.mark.parametrize("code", CODES)
def test_an_empty_environment_has_no_finding(code: str) -> None:
    inside = ("ENV-002", "ENV-009")
    assert on(code).outcome == ("skipped" if code in inside else "pass")
    without = good_snapshot(environment=None, interpreter=None)
    assert code == "ENV-015" or judge(without, code, "environment").outcome == "skipped"


# ENV-001


@pytest.mark.parametrize(
    ("value", "outcome", "says"),
    [
        ("", "fail", "is empty"),
        ("-1", "fail", "'-1'"),
        ("7", "fail", "hides all 2 GPUs"),
        ("all", "fail", "names no GPU"),
        ("NoDevFiles", "fail", "names no GPU"),
        ("-1,0", "fail", "hides all"),
        ("GPU-<uuid-9>", "fail", "hides all"),
        ("0", "pass", "1 of 2"),
        ("1,0", "pass", "2 of 2"),
        (" 0 , 1 ", "pass", "2 of 2"),
        ("GPU-<uuid-2>", "pass", "1 of 2"),
        ("0,5,1", "warn", "ends at 5"),
        ("0,", "warn", "(empty)"),
        ("0,0", "warn", "twice"),
    ],
)
def test_cuda_visible_devices(value: str, outcome: str, says: str) -> None:
    result = on("ENV-001", CUDA_VISIBLE_DEVICES=value)
    assert result.outcome == outcome
    assert says in result.detail + "".join(finding.message for finding in result.findings)


def test_a_job_that_slurm_gave_no_gpu() -> None:
    for value in ("", "NoDevFiles"):
        (finding,) = on("ENV-001", CUDA_VISIBLE_DEVICES=value, SLURM_JOB_ID="7").findings
        assert finding.remedy is not None and "--gres=gpu:1" in finding.remedy.commands[0]
        (finding,) = on("ENV-001", CUDA_VISIBLE_DEVICES=value).findings
        assert finding.remedy is not None and finding.remedy.commands[0].startswith("unset")


@pytest.mark.parametrize(("value", "outcome"), [("0", "warn"), ("GPU-<uuid-1>", "pass")])
def test_numbers_that_mean_another_gpu_to_nvidia_smi(value: str, outcome: str) -> None:
    slow, fast = gpu(0, "Tesla T4", "7.5"), gpu(1)
    facts = machine(slow, fast)
    listed = facts["cuda"].devices
    turned = [msgspec.structs.replace(one, ordinal=1 - one.ordinal) for one in listed]
    facts["cuda"] = msgspec.structs.replace(facts["cuda"], devices=turned)
    target = good_target(environment=Environment(variables={"CUDA_VISIBLE_DEVICES": value}))
    result = judge(snapshot(target, **facts), "ENV-001", "environment")
    assert result.outcome == outcome
    for finding in result.findings:
        assert "nvidia-smi counts as 1" in finding.message


def divided(number: int, *uuids: str, mig: bool = True) -> Gpu:
    one = gpu(number)
    instances = [MigInstance(uuid=uuid) for uuid in uuids]
    return msgspec.structs.replace(one, mig_enabled=mig, mig_instances=instances)


def of_instances(seen: int | None, *gpus: Gpu, **values: str) -> CheckResult:
    """A framework that sees so many devices; None: it fails."""
    failed_at = Unavailable(unavailable="error", detail="device < num_gpus INTERNAL ASSERT FAILED")
    found = failed_at if seen is None else [FrameworkGpu(name="A100") for _ in range(seen)]
    target = good_target(
        environment=Environment(variables=values), tensorflow=tensorflow(gpus=found)
    )
    return judge(snapshot(target, **machine(*gpus)), "ENV-001", "environment")


TWO = divided(0, "MIG-<uuid-1>", "MIG-<uuid-2>")


@pytest.mark.parametrize(
    ("seen", "gpus", "outcome"),
    [
        (1, [TWO], "warn"),
        (1, [divided(0, "MIG-<uuid-1>"), divided(1, "MIG-<uuid-2>")], "warn"),
        (1, [divided(0, "MIG-<uuid-1>"), divided(1, mig=False)], "warn"),
        (None, [TWO], "fail"),
        (2, [TWO], "pass"),  # a driver that shows both
        (1, [divided(0, "MIG-<uuid-1>")], "pass"),
        (1, [divided(0, mig=False)], "pass"),
        (None, [divided(0, mig=False), divided(1, mig=False)], "pass"),
        (0, [TWO], "pass"),
    ],
)
def test_one_of_several_mig_instances(seen: int | None, gpus: list[Gpu], outcome: str) -> None:
    result = of_instances(seen, *gpus)
    assert result.outcome == outcome
    if outcome != "pass":
        (finding,) = result.findings
        assert finding.remedy is not None
        assert "CUDA_VISIBLE_DEVICES='MIG-<uuid-1>' python3" in finding.remedy.commands[1]
        named = of_instances(seen, *gpus, CUDA_VISIBLE_DEVICES="MIG-<uuid-1>")
        assert named.outcome == "pass"


# ENV-002, ENV-009


def container(code: str, *, gpus: bool, **values: str) -> CheckResult:
    host = Host(container="docker", wsl=False)
    snap = replace(with_variables(**values), "machine", host=host)
    if not gpus:
        none = CudaDriver(init_code=ABSENT, device_count=ABSENT, devices=ABSENT)
        snap = replace(snap, "machine", cuda=none, nvml=Nvml(gpus=ABSENT, gpu_count=ABSENT))
    return judge(snap, code, "environment")


def untouched(container: str = "kubernetes", **differs: Any) -> CheckResult:
    """A container of which NVIDIA's runtime knows nothing, on a machine with a GPU."""
    snap = with_variables(NVIDIA_VISIBLE_DEVICES="all")
    facts: dict[str, Any] = {
        "host": Host(container=container, wsl=False),
        "cuda": CudaDriver(library_path=ABSENT, init_code=ABSENT, device_count=ABSENT),
        "nvml": Nvml(init_code=12, gpus=ABSENT, gpu_count=ABSENT),
        "pci": Pci(devices=[PciDevice(address="0000:01:00.0", kind="gpu", device_id="10de:2330")]),
        "kernel": Kernel(device_nodes=[]),
    }
    return judge(replace(snap, "machine", **(facts | differs)), "ENV-002", "environment")


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("kubernetes", "nvidia-ctk runtime configure --runtime=containerd --set-as-default"),
        ("docker", "docker run --rm --gpus all"),
        ("podman", "podman run --rm --device nvidia.com/gpu=all"),
        ("apptainer", "apptainer exec --nv"),
        ("lxc", "nvidia.runtime=true"),
        ("rkt", "docker run --rm --gpus all"),
    ],
)
def test_a_container_that_asks_for_gpus_and_gets_none(kind: str, command: str) -> None:
    (finding,) = untouched(kind).findings
    assert finding.level == "fail" and "does not use NVIDIA's runtime" in finding.message
    assert finding.remedy is not None
    assert any(command in line for line in finding.remedy.commands)
    assert kind in ("docker", "rkt") or "docker run" not in "\n".join(finding.remedy.commands)


@pytest.mark.parametrize(
    ("value", "gpus", "outcome"),
    [
        ("compute,utility", False, "pass"),
        ("all", False, "pass"),
        ("utility", False, "fail"),
        ("utility", True, "pass"),
        ("compute", True, "pass"),  # NVML was seen to answer
        ("compute", False, "warn"),
        ("graphics", False, "fail"),
    ],
)
def test_driver_capabilities(value: str, gpus: bool, outcome: str) -> None:
    assert container("ENV-009", gpus=gpus, NVIDIA_DRIVER_CAPABILITIES=value).outcome == outcome


def test_a_note_says_what_the_container_was_started_without() -> None:
    usual = container("ENV-009", gpus=True, NVIDIA_DRIVER_CAPABILITIES="compute,utility")
    assert "leaves out video (NVENC, NVDEC) and graphics" in usual.note
    assert not container("ENV-009", gpus=True, NVIDIA_DRIVER_CAPABILITIES="all").note


def test_tf32_switched_off_where_there_is_none() -> None:
    assert of_gpus("ENV-004", gpu(0, "Tesla T4", "7.5"), NVIDIA_TF32_OVERRIDE="0").outcome == "pass"


@pytest.mark.parametrize(
    ("installed", "values", "outcome"),
    [
        (dist("numba", "0.60.0"), {"NUMBA_ENABLE_CUDASIM": "1"}, "fail"),
        (dist("numpy", "2.0.0"), {"NUMBA_ENABLE_CUDASIM": "1"}, "pass"),
        (dist("jax", "0.6.0"), {"JAX_PLATFORMS": "cpu"}, "fail"),
        (dist("jax", "0.6.0"), {"JAX_PLATFORMS": "gpu"}, "fail"),
        (dist("jax", "0.6.0"), {"XLA_FLAGS": "--xla_a=1 -\u2013xla_b=4"}, "fail"),
        (dist("jax", "0.6.0"), {"XLA_FLAGS": "--xla_dump-to=/x-y --xla_b=4"}, "pass"),
        (dist("torch", "2.6.0"), {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb=128"}, "fail"),
        (dist("jax", "0.6.0"), {"JAX_PLATFORMS": "cuda,cpu"}, "pass"),
        (dist("torch", "2.0.1"), {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, "fail"),
        (dist("torch", "2.1.0"), {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, "pass"),
    ],
)
def test_variables_of_packages(installed: Any, values: dict[str, str], outcome: str) -> None:
    probes = {"packages": packages(installed), "environment": Environment(variables=values)}
    assert judge(good_snapshot(**probes), "ENV-017", "environment").outcome == outcome


@pytest.mark.parametrize(
    ("place", "value", "outcome"),
    [
        ("CUDA_HOME", "", "pass"),
        ("CUDA_HOME", "gone", "warn"),
        ("BNB_CUDA_VERSION", "118", "warn"),
        ("LD_LIBRARY_PATH", "lcoal/cuda-10.1/lib64", "fail"),
        ("LD_LIBRARY_PATH", "local/cuda-10.2/lib64", "pass"),
    ],
)
def test_variables_that_lead_to_another_cuda(
    tmp_path: Path, place: str, value: str, outcome: str
) -> None:
    (tmp_path / "local/cuda-10.1/lib64").mkdir(parents=True)
    given = value if place == "BNB_CUDA_VERSION" else str(tmp_path / value)
    made = environment_probe.collect(Context({place: given})).values  # type: ignore[no-untyped-call]
    probes = {
        "packages": packages(dist("bitsandbytes", "0.45.0")),
        "torch": tensorflow(name="torch", built_cuda="12.4"),
        "environment": Environment(**made),
    }
    assert judge(good_snapshot(**probes), "ENV-017", "environment").outcome == outcome


# ENV-004, ENV-005, ENV-007, ENV-010, ENV-017


@pytest.mark.parametrize(
    ("code", "values", "outcome"),
    [
        ("ENV-004", {"NVIDIA_TF32_OVERRIDE": "1"}, "pass"),
        ("ENV-005", {"CUDA_LAUNCH_BLOCKING": "1"}, "warn"),
        ("ENV-005", {"CUDA_LAUNCH_BLOCKING": "0"}, "pass"),
        ("ENV-007", {"LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"}, "pass"),
        ("ENV-007", {"LD_PRELOAD": "/usr/local/vgpu/libvgpu.so"}, "warn"),
        ("ENV-007", {"LD_PRELOAD": "libjemalloc.so.2:/opt/libcudnn.so.8"}, "warn"),
        ("ENV-010", {"TF_DISABLE_CUBLAS_TENSOR_OP_MATH": "1"}, "warn"),
        ("ENV-010", {"TF_DISABLE_CUBLAS_TENSOR_OP_MATH": "0"}, "pass"),
        ("ENV-007", {"LD_PRELOAD": "/opt/libnvJitLink.so.12"}, "warn"),
        ("ENV-005", {"CUDA_CACHE_DISABLE": "1"}, "warn"),
        ("ENV-005", {"CUDA_CACHE_DISABLE": "0", "CUDA_CACHE_MAXSIZE": "4294967296"}, "pass"),
        ("ENV-005", {"CUDA_CACHE_MAXSIZE": "1048576"}, "warn"),
        ("ENV-005", {"CUDA_FORCE_PTX_JIT": "1"}, "warn"),
    ],
)
def test_switches(code: str, values: dict[str, str], outcome: str) -> None:
    """Those of the target; without one those that envcheck itself was started with."""
    assert on(code, **values).outcome == outcome
    own = replace(good_snapshot(), "machine", environment=Environment(variables=values))
    own = msgspec.structs.replace(own, target=None)
    result = judge(own, code, "environment")
    assert result.outcome in (outcome, "skipped" if outcome == "pass" else "")
    shown = [one.fact for finding in result.findings for one in finding.evidence]
    assert all(one == "machine.environment.variables" for one in shown)
    assert (
        judge(replace(own, "machine", environment=None), code, "environment").outcome == "skipped"
    )


@pytest.mark.parametrize(("place", "outcome"), [("new/cache", "pass"), ("file/cache", "warn")])
def test_a_cache_of_kernels_that_cannot_be_written(
    tmp_path: Path, place: str, outcome: str
) -> None:
    (tmp_path / "file").write_text("")
    context = Context({"CUDA_CACHE_PATH": str(tmp_path / place)})
    made = environment_probe.collect(context).values  # type: ignore[no-untyped-call]
    found = good_snapshot(environment=Environment(**made))
    assert judge(found, "ENV-005", "environment").outcome == outcome


# ENV-011


@pytest.mark.parametrize(
    ("module", "by", "cause", "command"),
    [
        ("torch", "PYTHONPATH", "installed-module-shadowed", "unset PYTHONPATH"),
        ("torch", "cwd", "installed-module-shadowed", "mv -n /w/torch.py /w/torch.py.aside"),
        (
            "random",
            "sys.path",
            "standard-library-shadowed",
            "mv -n /w/random.py /w/random.py.aside",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["virtualenv", "interpreter"])
def test_a_file_that_comes_before_a_module(
    kind: str, module: str, by: Any, cause: str, command: str
) -> None:
    place = "/usr/lib/python3.11" if module == "random" else SITE
    shadow = Shadow(module=module, file=f"/w/{module}.py", hides=f"{place}/{module}.py", by=by)
    snap = good_snapshot(
        interpreter=interpreter(kind=kind),
        tensorflow=tensorflow(shadows=[shadow]),
        torch=tensorflow(name="torch", shadows=[shadow]),
    )
    result = judge(snap, "ENV-011", "environment")
    (finding,) = result.findings
    assert (result.outcome, finding.cause.key) == ("fail", cause)
    assert f"/w/{module}.py" in finding.message and finding.remedy is not None
    assert finding.remedy.commands == [command]


def leaks(
    location: str, kind: str = "virtualenv", user_site: bool = False, **values: str
) -> CheckResult:
    probes: dict[str, Any] = {
        "environment": Environment(variables=values),
        "interpreter": interpreter(kind=kind, user_site=user_site),
        "packages": packages(dist("tensorflow", "2.19.1", location=location)),
    }
    return judge(good_snapshot(**probes), "ENV-011", "environment")


USER = "<home-1>/.local/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("location", "kind", "values", "found"),
    [
        ("/opt/shared/lib", "virtualenv", {"PYTHONPATH": "/opt/shared/lib:/src"}, 1),
        (SITE, "virtualenv", {"PYTHONPATH": "/src/project"}, 0),
        (USER, "conda", {}, 1),
        (USER, "virtualenv", {"PYTHONPATH": USER}, 1),
        (USER, "interpreter", {}, 0),
        (SITE, "virtualenv", {"PYTHONHOME": "/opt/python"}, 1),
    ],
)
def test_packages_from_outside(
    location: str, kind: str, values: dict[str, str], found: int
) -> None:
    assert len(leaks(location, kind=kind, user_site=True, **values).findings) == found
