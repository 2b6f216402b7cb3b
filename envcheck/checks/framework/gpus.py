"""The check on which GPUs a framework sees: the last link of the chain."""

from __future__ import annotations

import re

from ...data.packages import component
from ..declared import declared_causes
from ..gpus import plural
from ..installing import conda_install
from ..reading import Framework, Skip, SnapshotView, fact, known, need
from ..target import installed_if_known, per_framework, pip_install, python, title_of
from ..verdicts import Evidence, Passed, Remedy, Verdicts, check, word
from ..visible import MIG_INSTANCE, VARIABLE, setting, visible
from .causes import NO_GPU, Explained, explain

CAUSE = declared_causes(__name__)
OUTDATED = CAUSE["cuda-library-too-old"]
NO_REASON = CAUSE["no-reason-logged"]
_ASK = {
    "tensorflow": 'import tensorflow as tf; print(tf.config.list_physical_devices("GPU"))',
    "torch": "import torch; torch.cuda.init()",
    "jax": 'import jax; print(jax.devices("gpu"))',
}


@check("FRM-002", causes=[sign.cause for sign in NO_GPU])
@per_framework(built_with_cuda=True)
def sees_every_gpu(view: SnapshotView, facts: Framework) -> Verdicts:
    if fact(view.seen.cuda, "device_count") == 0:
        raise Skip("CUDA itself sees no GPU")
    title = title_of(facts)
    gpus = need(facts.gpus, f"the GPUs that {title} sees")
    choice = visible(view)
    if not choice.chosen:
        raise Skip(f"{VARIABLE} leaves no GPU visible")
    instances = any(one.name == MIG_INSTANCE for one in choice.chosen)
    expected = len(choice.chosen) if choice.certain and not instances else 1
    if len(gpus) >= expected:
        of = "" if choice.certain else f" (which ones {VARIABLE} means is not certain)"
        yield Passed(f"{title} sees {plural(len(gpus), 'GPU')}{of}")
        return
    names = ", ".join(gpu.name for gpu in gpus) or "none"
    by_nvml = fact(view.seen.cuda, "device_count") is None
    counted = "seen.nvml.gpu_count" if by_nvml else "seen.cuda.device_count"
    evidence = [view.evidence(f"target.{facts.name}.gpus", names), view.evidence(counted)]
    if (value := setting(view)) is not None:
        evidence.append(view.evidence("target.environment.variables", f"{VARIABLE}={value}"))
    again = f"TF_CPP_MIN_LOG_LEVEL=0 {python(view)} -c '{_ASK[facts.name]}'"
    found = (
        _outdated(view, facts)
        or explain(view, facts, NO_GPU, facts.log)
        or Explained(NO_REASON, "", "", {}, Remedy(NO_REASON.remedy, [again]))
    )
    if found.line:
        evidence.append(Evidence(f"target.{facts.name}.log", found.line, f"{title}'s log"))
    yield found.found(
        facts,
        evidence,
        seen=len(gpus) or "none",
        expected=plural(expected, "GPU"),
        instead="fewer" if gpus else "the CPU",
    )


# The installed version may be older than the one that JAX was built with, but not older than the oldest
# supported one (0: it must be the same).
_OUTDATED = re.compile(
    r"Outdated (\w{2,20}) installation found\.? ?"
    r"(?:Version JAX was built against: (\d{1,9}) ?)?"
    r"(?:Minimum supported: (\d{1,9}) ?)?"
    r"(?:Installed version: (\d{1,9}))"
)
_PARTS = {"cuda": "cuda-runtime", "cupti": "cuda-cupti"}
_FIRST_CUDNN_9 = 90000


def _outdated(view: SnapshotView, facts: Framework) -> Explained | None:
    """Why JAX leaves its CUDA half out, if one of its libraries is older than it supports."""
    found = next((match for line in facts.log if (match := _OUTDATED.search(line))), None)
    if found is None:
        return None
    name = found[1]
    needed = version(name, int(found[3] or 0) or int(found[2] or 0))
    params = {"library": name, "needed": needed, "loaded": version(name, int(found[4]))}
    part = _PARTS.get(name.lower(), name.lower())
    wheels = (
        one for one in installed_if_known(view) if getattr(component(one), "name", "") == part
    )
    major = (known(facts.built_cuda) or "12").partition(".")[0]
    conda = "" if fact(view.target.interpreter, "kind") == "conda" else f"nvidia-{part}-cu{major}"
    wheel = next(wheels, conda)
    command = conda_install(view, f"-c conda-forge {word(f'{part}>={needed}')}")
    command = pip_install(view, f"{wheel}>={needed}") if wheel else command
    advice = Remedy(OUTDATED.remedy.format(**params), [command])
    return Explained(OUTDATED, "", found.string.strip()[:300], params, advice)


def version(library: str, number: int) -> str:
    """A version as the library's own header writes it: 8907 is cuDNN 8.9.7, 90100 cuDNN 9.1.0."""
    if library == "CUDA":
        return f"{number // 1000}.{number % 1000 // 10}"
    wide = library == "cuBLAS" or (library == "cuDNN" and number >= _FIRST_CUDNN_9)
    major = 10000 if wide else 1000
    return f"{number // major}.{number % major // 100}.{number % 100}"
