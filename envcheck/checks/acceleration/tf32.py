"""The check on TF32 in convolutions: used without being asked, shown by the bits of results."""

from __future__ import annotations

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...tensorcores.circumstances import OVERRIDE
from ...tensorcores.factors import FP32, TF32, parse, rounded_to, unit
from ...tensorcores.not_engaged import older_than_tf32
from ..reading import SnapshotView
from ..target import python
from ..verdicts import Passed, Verdict, Verdicts, check, fail, warn, word
from .common import NO_FRAMEWORK, Seen, each_run, failed, ok, text, words

_SIZE = " channels"  # how the names of evidence end that hold outputs
_MOST_SIZES, _MOST_LINES = 4, 16
_JAX_PRECISION = "JAX_DEFAULT_MATMUL_PRECISION"
_ASK = {
    "tensorflow": "tf.config.experimental.enable_tensor_float_32_execution(True)",
    "torch": "torch.backends.cudnn.allow_tf32 = True",
    "jax": "jax.config.update('jax_default_matmul_precision', 'tensorfloat32')",
}
NOT_SWITCHED = warn(
    "cannot-be-switched-off",
    "TF32 in {title}'s convolutions cannot be switched off",
    "Convolutions in {title} round FP32 numbers to TF32, and neither the framework's own switch nor "
    + OVERRIDE
    + "=0 ends that.",
)
CHOSEN_OFF = warn(
    "switched-off",
    "TF32 convolutions are off in {title}: {setting}",
    "Convolutions of FP32 numbers run in FP32 in {title}: {setting} is set.",
    "Unset it, unless the full FP32 precision is needed.",
)
OFF = fail(
    "default-off",
    "{title} runs FP32 convolutions without TF32{switch}",
    "Convolutions of FP32 numbers run in FP32 in {title}{switch}, though its default is TF32, which this GPU"
    " has: something that runs at Python's start switches it off, or this build does.",
    "If TF32's precision is enough, ask for it: {ask}. Check what runs at Python's start.",
)
OFF_IN_JAX = OFF.variant("default-off-in-jax", severity="warn")


@check(
    "ACC-006",
    title="TF32 convolutions",
    causes=[NOT_SWITCHED, CHOSEN_OFF, OFF, OFF_IN_JAX],
    about="From compute capability 8.0 on, frameworks run convolutions of FP32 numbers in TF32 unless they"
    " are configured not to. Engaged where the default's bits are rounded to TF32 and the framework's own"
    f" switch or {OVERRIDE}=0, in a process of its own, ends that.",
    sources=(
        "PyTorch's CUDA semantics; TensorFlow 2.4 release notes; jax.lax.Precision's documentation",
        "NVIDIA's A100 architecture whitepaper",
    ),
    follows=(*NO_FRAMEWORK, "FRM-010", "ENV-004", "ACC-011"),
    systems=("tf32",),
)
def tf32_convolutions(view: SnapshotView) -> Verdicts:
    yield from each_run(view, "tf32", lambda seen: [_judge(view, seen)])


def _judge(view: SnapshotView, seen: Seen) -> Verdict:
    default = seen.trial("default")
    if default is None or not ok(default):
        return seen.unjudged(failed(seen, default))
    found = rounding(default)
    if TF32 in found:
        return _engaged(seen, default)
    if found == {FP32}:
        return _kept(view, seen, default)
    shown = next((lines[0] for lines in _sizes(default) if lines), "no output was recorded")
    return seen.unjudged(f"the bits are those of no known rounding ({shown})")


def rounding(trial: SystemTrial | None) -> set[str]:
    """What factors were rounded to, of the sizes that were run; "" where that cannot be determined."""
    found = set()
    for lines in _sizes(trial) if trial is not None and ok(trial) else ():
        sums = [parse(line) for line in lines[:_MOST_LINES]]
        whole = [one for one in sums if one is not None]
        found.add(rounded_to(whole) if len(whole) == len(sums) else "")
    return found


def _sizes(trial: SystemTrial) -> list[list[str]]:
    held = [v for k, v in trial.evidence.items() if k.endswith(_SIZE) and isinstance(v, list)]
    return held[:_MOST_SIZES]


def _engaged(seen: Seen, default: SystemTrial) -> Verdict:
    switch, override = "the framework's switch", f"{OVERRIDE}=0"
    found = {
        switch: rounding(seen.trial("switch off")),
        override: rounding(seen.trial(override)),
    }
    ended = [name for name, forms in found.items() if forms == {FP32}]
    if not ended and TF32 in found[switch]:
        return seen.found(NOT_SWITCHED)
    if not ended:
        why = "; ".join(f"{one.name}: {failed(seen, one)}" for one in seen.controls)
        return seen.unjudged(
            f"TF32 by the bits, and no control ran without it ({why or 'none was run'})"
        )
    details = [f"{name} switches it off" for name in ended]
    details += [f"{name} does not reach it" for name, forms in found.items() if TF32 in forms]
    core = f", on Tensor Cores ({_unit(default)})" if _unit(default) else ""
    return Passed(f"{seen.title}: TF32 without being asked{core}; {', '.join(details)}{seen.where}")


def _unit(trial: SystemTrial) -> str:
    for lines in _sizes(trial):
        sums = [one for one in map(parse, lines[:_MOST_LINES]) if one is not None]
        if rounded_to(sums) == TF32 and (named := unit(sums)):
            return named
    return ""


def _kept(view: SnapshotView, seen: Seen, default: SystemTrial) -> Verdict:
    """The default keeps all of FP32's bits: by whose wish?"""
    framework, cudnn = seen.run.framework, text(default, "cudnn")
    parsed = parse_version(cudnn)
    if seen.run.device == "cpu":
        return seen.not_applicable("on the CPU: FP32")
    if older_than_tf32(framework, seen.version):
        return seen.not_applicable("older than TF32")
    if parsed is not None and parsed.major < 8:
        return seen.not_applicable(f"cuDNN {cudnn} is older than TF32, which came with 8.0")
    for line in words(default, "environment"):
        name, _, value = line.partition("=")
        precise = value.lower() in ("float32", "highest")
        by_jax = name == _JAX_PRECISION and framework == "jax" and precise
        if by_jax or (name == OVERRIDE and value.strip() == "0"):
            return seen.found(CHOSEN_OFF, commands=[f"unset {word(name)}"], setting=line)
    if TF32 not in rounding(seen.trial("switch on")):
        return seen.unjudged(
            "FP32 by the bits, also where TF32 is asked for: cuDNN took kernels without it for these sizes"
        )
    flag = text(default, "switch")
    code = 'import sys; print(sys.modules.get("sitecustomize"))'
    return seen.found(
        OFF_IN_JAX if framework == "jax" else OFF,
        commands=[f"{python(view)} -c '{code}'"],
        switch=f" ({flag})" if flag else "",
        ask=_ASK[framework],
    )
