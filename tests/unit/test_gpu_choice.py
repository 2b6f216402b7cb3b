"""`--gpus 0,1`: what is chosen, what is refused before anything starts, and each engine's words for it."""

from __future__ import annotations

from typing import Any

import h100
import pytest
from fit_machines import without_gpu

from envcheck.exit_codes import Cannot, CouldNotLook, EnvcheckError, UsageError
from envcheck.facts.base import known
from envcheck.facts.containers import CdiSpec, Containers
from envcheck.facts.gpu import MigInstance
from envcheck.facts.snapshot import Snapshot
from envcheck.install.engine import EngineName, Wiring
from envcheck.install.engines import gpu_choice
from envcheck.install.engines.gpu_choice import ChosenGpus

KIND = "nvidia.com/gpu"
PARTS = [MigInstance(gpu_instance=n, compute_instance=0, uuid=f"MIG-{n}") for n in (1, 2)]
GPUS = [
    h100.gpu(0),
    h100.gpu(1),
    h100.gpu(2, mig_enabled=True, mig_pending=True, mig_instances=PARTS),
]
ZERO, ONE, TWO = (str(known(gpu.uuid)) for gpu in GPUS)
CDI = Wiring(kind="cdi", arguments=["--device", f"{KIND}=all"], sentence="by CDI (x.yaml)")
RUNTIME = Wiring(
    kind="runtime", arguments=["--runtime=nvidia"], environment={"NVIDIA_VISIBLE_DEVICES": "all"}
)


def machine(*names: str) -> Snapshot:
    """With a CDI specification of these devices."""
    spec = CdiSpec(path="/etc/cdi/x.yaml", kind=KIND, devices=list(names))
    other = CdiSpec(path="/etc/cdi/other.yaml", kind="vendor.com/gpu", devices=["1"])
    return h100.machine(GPUS, containers=Containers(cdi_specs=[other, spec]))


def chosen(
    words: str,
    wiring: Wiring = CDI,
    names: tuple[str, ...] = ("0", "1", "all"),
    engine: EngineName = "podman",
) -> ChosenGpus:
    return gpu_choice.choose(words, engine, wiring, machine(*names))


@pytest.mark.parametrize(
    ("words", "names", "devices"),
    [
        ("0", ("0", "1", "all"), ["0"]),
        ("1,0", ("0", "1", "all"), ["1", "0"]),
        (" 0 , 1 ", (ZERO, ONE, "all"), [ZERO, ONE]),
        (f"{ONE}", ("0", "1"), ["1"]),
        (ONE.lower(), ("0", "1"), ["1"]),
        ("MIG-2", ("0", "MIG-2"), ["MIG-2"]),
        ("MIG-2,MIG-1,1", ("1", "MIG-1", "MIG-2"), ["MIG-2", "MIG-1", "1"]),
    ],
)
def test_cdi_devices_by_the_names_of_the_specification(
    words: str, names: tuple[str, ...], devices: list[str]
) -> None:
    arguments = chosen(words, names=names).wiring.arguments
    assert arguments == [word for name in devices for word in ("--device", f"{KIND}={name}")]


def test_nodes_are_those_of_gpus_and_not_of_instances() -> None:
    names = ("0", "1", "MIG-1", "MIG-2")
    counted = {words: chosen(words, names=names).nodes for words in ("0", "0,1", "MIG-1,MIG-2")}
    assert counted == {"0": 1, "0,1": 2, "MIG-1,MIG-2": 1}
    assert chosen("MIG-1,1", names=names).nodes == 2


@pytest.mark.parametrize(
    ("engine", "wiring", "arguments", "environment"),
    [
        ("docker", RUNTIME, RUNTIME.arguments, {"NVIDIA_VISIBLE_DEVICES": f"{ONE},MIG-1"}),
        (
            "docker",
            Wiring(kind="gpus", arguments=["--gpus", "all"]),
            ["--gpus", f'"device={ONE},MIG-1"'],
            {},
        ),
        (
            "apptainer",
            Wiring(kind="nv", arguments=["--nv"]),
            ["--nv"],
            {"CUDA_VISIBLE_DEVICES": f"{ONE},MIG-1"},
        ),
        (
            "podman",
            Wiring(kind="hook", arguments=[], environment={"NVIDIA_DRIVER_CAPABILITIES": "x"}),
            [],
            {"NVIDIA_DRIVER_CAPABILITIES": "x", "NVIDIA_VISIBLE_DEVICES": f"{ONE},MIG-1"},
        ),
    ],
)
def test_each_engine_s_words(
    engine: EngineName, wiring: Wiring, arguments: list[str], environment: dict[str, str]
) -> None:
    found = chosen("1,MIG-1", wiring, engine=engine).wiring
    assert (found.arguments, found.environment) == (arguments, environment)
    assert found.sentence.endswith(": GPU 1, MIG-1")


@pytest.mark.parametrize(
    ("words", "error", "sentence", "hint"),
    [
        ("3", UsageError, "this machine has no GPU '3'", f"0 ({ZERO})"),
        ("", UsageError, "no GPU ''", ""),
        ("0,", UsageError, "no GPU ''", ""),
        ("-1", UsageError, "no GPU '-1'", ""),
        ("²", UsageError, "no GPU", ""),
        ("9" * 5000, UsageError, "no GPU", ""),
        ("GPU-nope", UsageError, "no GPU 'GPU-nope'", "MIG-1"),
        ("all,0", UsageError, "no GPU 'all'", ""),
        (f"0,{ZERO}", UsageError, "GPU 0 is named twice", ""),
        ("MIG-1,MIG-1", UsageError, "MIG-1 is named twice", ""),
        ("2", UsageError, "GPU 2 is divided by MIG", "MIG-1,MIG-2"),
        (TWO, UsageError, "GPU 2 is divided by MIG", "MIG-1,MIG-2"),
        ("MIG-1", Cannot, "has a device for MIG-1", "nvidia-ctk cdi generate"),
        ("\x1b[31m", UsageError, "no GPU '\\x1b[31m'", ""),
    ],
)
def test_what_is_not_there_is_refused(
    words: str, error: type[EnvcheckError], sentence: str, hint: str
) -> None:
    with pytest.raises(error) as caught:
        chosen(words)
    assert sentence in str(caught.value) and hint in caught.value.hint
    assert len(str(caught.value)) < 400


def test_where_nobody_knows_the_gpus_nothing_is_chosen() -> None:
    unknown: Any = h100.machine(nvml=None, nvidia_smi=None)
    with pytest.raises(CouldNotLook, match="GPUs are not known"):
        gpu_choice.choose("0", "podman", CDI, unknown)


def test_an_installation_without_gpus_has_none_to_choose_from() -> None:
    with pytest.raises(EnvcheckError):
        gpu_choice.choose("0", "podman", CDI, without_gpu())
    with pytest.raises(UsageError, match="was set up without GPUs"):
        chosen("0", Wiring(kind="none", arguments=[]))
