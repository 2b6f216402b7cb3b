"""What a target is for: a machine without a GPU is no fault if nothing in the target would use one."""

from __future__ import annotations

from ..data.packages import TENSORFLOWS
from ..facts.base import known
from ..facts.target import FRAMEWORKS, Distribution
from ..facts.view import SnapshotView, fact
from .target import framework, installed_if_known, version_of

# The check that finds no GPU: it is skipped, with what follows from it, if the target needs none.
NO_GPU = "PCI-001"

CPU_TENSORFLOWS = frozenset(
    {"tensorflow-cpu", "tensorflow-cpu-aws", "tf-nightly-cpu"}
    | {"intel-tensorflow", "intel-tensorflow-avx512"}
)
# Of no use without a GPU, whatever framework they are installed beside.
_FOR_GPUS = ("cupy-cuda", "tensorrt", "onnxruntime-gpu", "jax-cuda", "nvidia-dali")


def cpu_builds(view: SnapshotView) -> list[str]:
    """The target's frameworks ("tensorflow-cpu 2.21.0"), if none was built for GPUs.

    Without a framework, the stack that envcheck installed, if that is not for GPUs.
    Empty if one was built for GPUs, if there is neither, and if the Snapshot does not say.
    """
    if view.snapshot.target is None:
        return []
    distributions = installed_if_known(view)
    if not distributions and fact(view.target.packages, "distributions") is None:
        return []
    if any(name.startswith(_FOR_GPUS) for name in distributions):
        return []
    builds: list[str] = []
    for name in FRAMEWORKS:
        names = TENSORFLOWS if name == "tensorflow" else {name}
        owners = [one for key, one in distributions.items() if key in names]
        facts = framework(view, name)
        built = None if facts is None else known(facts.cuda_build)
        if owners and (built or (built is None and not all(map(_says_cpu, owners)))):
            return []
        builds += [f"{one.normalized} {one.version}" for one in owners]
    lock = view.target.lock
    if builds or fact(lock, "gpu") is not False:
        return builds
    return [f"{fact(lock, 'stack') or 'its stack'} {fact(lock, 'release') or ''}".rstrip()]


def _says_cpu(one: Distribution) -> bool:
    """By its metadata alone, as of one that does not import. JAX's CUDA half is a plugin, which is not there.

    TensorFlow was one package for both from 2.1 on. PyTorch's CUDA wheels require NVIDIA's from 2.0 on, or
    say +cu126; conda's say neither.
    """
    version = version_of(one)
    local = getattr(version, "local", None) or ""
    if one.normalized in CPU_TENSORFLOWS or one.normalized == "jax" or local.startswith("cpu"):
        return True
    if version is None or local or known(one.installer) in (None, "conda"):
        return False
    if one.normalized == "tensorflow":
        return version.release < (2, 1)
    requires = known(one.requires)
    on_nvidia = any(text.startswith(("nvidia-", "cuda-")) for text in requires or [])
    return one.normalized == "torch" and bool(requires) and version.major >= 2 and not on_nvidia
