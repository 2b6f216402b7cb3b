"""What a target is for: a machine without a GPU is no fault where nothing in the target would use one."""

from __future__ import annotations

from ..data.packages import TENSORFLOWS
from ..data.versions import parse_version
from ..facts.base import known
from ..facts.missing import CannotJudge
from ..facts.target import FRAMEWORKS, Distribution
from ..facts.view import SnapshotView
from .target import framework, installed

# The check that finds no GPU: where the target needs none, it is skipped, and what follows from it too.
NO_GPU = "PCI-001"

CPU_TENSORFLOWS = frozenset(
    (
        "tensorflow-cpu",
        "tensorflow-cpu-aws",
        "tf-nightly-cpu",
        "intel-tensorflow",
        "intel-tensorflow-avx512",
    )
)
# Of no use without a GPU, beside whatever framework they are.
_FOR_GPUS = ("cupy-cuda", "tensorrt", "onnxruntime-gpu", "jax-cuda", "nvidia-dali")


def cpu_builds(view: SnapshotView) -> list[str]:
    """The target's frameworks, where none was built for GPUs ("tensorflow-cpu 2.21.0").

    Without a framework, the stack that envcheck installed, where that is not for GPUs.
    Empty where one was, where there is neither, and where nothing in the Snapshot says so.
    """
    if view.snapshot.target is None:
        return []
    try:
        distributions = installed(view)
    except CannotJudge:
        return []
    if any(name.startswith(_FOR_GPUS) for name in distributions):
        return []
    builds: list[str] = []
    for name in FRAMEWORKS:
        owners = _owners(name, distributions)
        if not owners:
            continue
        facts = framework(view, name)
        built = None if facts is None else known(facts.cuda_build)
        if built or (built is None and not all(map(_says_cpu, owners))):
            return []
        builds += [f"{one.normalized} {one.version}" for one in owners]
    return builds or _stack_without_gpu(view)


def _stack_without_gpu(view: SnapshotView) -> list[str]:
    """What envcheck installed in the target, where its catalogue says that it is not for GPUs."""
    probe = view.target.lock
    lock = None if probe is None else probe.facts
    if lock is None or known(lock.gpu) is not False:
        return []
    return [f"{known(lock.stack) or 'its stack'} {known(lock.release) or ''}".rstrip()]


def _owners(framework_name: str, distributions: dict[str, Distribution]) -> list[Distribution]:
    """What a framework was installed as."""
    names = TENSORFLOWS if framework_name == "tensorflow" else {framework_name}
    return [one for name, one in distributions.items() if name in names]


def _says_cpu(one: Distribution) -> bool:
    """By name or version alone. JAX's CUDA half is a plugin, which is not there."""
    version = parse_version(one.version)
    local = "" if version is None else version.local or ""
    return one.normalized in CPU_TENSORFLOWS or one.normalized == "jax" or local.startswith("cpu")
