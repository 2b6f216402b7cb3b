"""What the rate says: faster than CUDA cores can be, or not; and why it is below the chip's peak.

L0 counts FMA per clock and SM, which neither clocks nor power caps nor MIG change. L1 and L2 compare
with FP32 products timed between, or, where the chip's ratio is not known, with the most that CUDA cores
could give at the chip's maximum clock.

The matrices lie in the GPU's memory while they are timed, so a slow PCIe link is no reason for a low rate:
that is GPU-010's business.
"""

from __future__ import annotations

import msgspec

from ..facts.base import known
from ..facts.micro_kernels import LevelRun, Mode, ModeRun, Rate
from .mode_verdict import Line, Word
from .peaks import Chip, tflops

MARGIN = 1.5  # over what CUDA cores can do, before that counts as a Tensor Core's work
SHARE = 0.5  # of the expected ratio to FP32
AT_REST = 1.1  # times what CUDA cores can do: what measuring adds at most
BEYOND = 1.15  # times the chip's own peak: then the measurement is wrong, or the table
FAR = 0.2  # of the expected ratio: what CUDA cores can do, below it, is no slow Tensor Core's work
UNSTEADY = 1.5  # 90th over 10th percentile
WIDE = 2.0  # times the threshold: then even a disturbed measurement says enough
TINY = 1e-4  # seconds of one product, under which a host's clock times the launch
LOW = 0.4  # of the peak at the clock that was seen: lower is worth a warning
IMPOSSIBLE = 2  # times the maximum clock: no reading of a clock
HELD = 0.6  # of the maximum clock; lower, and not for the power cap alone, is one too
NOTEWORTHY = 0.85

_NAMES: dict[Mode, str] = {
    "fp32": "FP32",
    "tf32": "TF32",
    "fp16": "FP16",
    "bf16": "BF16",
    "int8": "INT8",
    "fp8": "FP8",
}
# Clock-event reasons that hold clocks down, in words; the first that was seen comes first.
_HOLDS = {
    "hw_thermal_slowdown": "the hardware slowed it down for heat",
    "hw_power_brake_slowdown": "the power brake slowed it down",
    "hw_slowdown": "the hardware slowed it down",
    "sw_thermal_slowdown": "the driver slowed it down for heat",
    "sw_power_cap": "the power cap held it",
    "applications_clocks_setting": "the applications clocks are set so",
    "sync_boost": "it was tied to another GPU's clock",
}
_NORMAL = {"sw_power_cap", "gpu_idle"}


class Speed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The rate's line, and the figures beside it (10^12 operations per second)."""

    line: Line
    abstains: bool = False  # it cannot tell by nature: this chip is not fast enough, or not known
    tflops: float | None = None
    peak_tflops: float | None = None
    share: float | None = None
    ratio: float | None = None
    slow: str = ""
    low: bool = False  # so far below the peak that it is worth a warning


def name(mode: Mode) -> str:
    return _NAMES[mode]


def question(mode: ModeRun) -> Mode:
    """What is asked of a run: whether products of FP32 matrices in a framework are done in TF32."""
    return "tf32" if mode.mode == "fp32" and mode.setting else mode.mode


def speed(run: LevelRun, mode: ModeRun, chip: Chip) -> Speed:
    """What the timing of one mode says. ``run``: the level's run that it belongs to."""
    rate = mode.rate
    if rate is None:
        why = f": {mode.rate_reason}" if mode.rate_reason else ""
        return Speed(line=_line("cannot tell", f"not measured{why}"))
    asked = question(mode)
    multiprocessors = known(rate.multiprocessors) or known(run.multiprocessors)
    clock, limit = known(rate.clock_mhz), known(run.clock_max_mhz)
    if clock and limit and clock > IMPOSSIBLE * limit:
        clock = None
    maximum = max(clock or 0.0, limit or 0.0)
    half = run.level == "L2" and mode.setting == "half"
    doubts, slowed = _doubts(run, rate), _slowed(rate, clock, maximum)
    line = (
        _per_clock(rate, chip, asked, doubts, slowed)
        if run.level == "L0"
        else _products(rate, chip, asked, half, multiprocessors, maximum, doubts, slowed)
    )
    abstains = _cannot_tell_by_nature(run, rate, chip, asked, half)
    done, fp32 = known(rate.tflops), known(rate.fp32_tflops)
    ran = "fp32" if mode.mode == "fp32" and line.says != "tensor" else asked
    if _stale(chip, ran, multiprocessors, clock, done):
        clock = None
    peak = _peak(chip, ran, multiprocessors, clock, maximum)
    share = done / peak if done is not None and peak else None
    if share is not None and share > BEYOND and ran != "fp32":
        line = _line(
            "cannot tell", f"{share:.2f} times the chip's peak: this was not measured right"
        )
        abstains = False
    return Speed(
        line=line,
        abstains=abstains and line.says == "cannot tell",
        tflops=done,
        peak_tflops=peak,
        share=share,
        ratio=done / fp32 if done is not None and fp32 and asked != "fp32" else None,
        slow=_slow(run, share, _held(rate, clock, maximum)),
        low=_low(run, mode, share, rate, clock, maximum),
    )


def _cannot_tell_by_nature(run: LevelRun, rate: Rate, chip: Chip, mode: Mode, half: bool) -> bool:
    """Whether no rate could tell: the chip's Tensor Cores are too slow for that, or not known."""
    measured = known(rate.fma_per_clock_per_sm if run.level == "L0" else rate.tflops) is not None
    peak, ceiling = chip.rate(mode), chip.ceiling(mode, half)
    slow = peak is None or ceiling is None or peak < MARGIN * ceiling
    return measured and (slow or is_of_the_library(run, mode))


def is_of_the_library(run: LevelRun, mode: Mode) -> bool:
    """Whether a low rate is the library's, and says nothing of the chip: cuBLAS's INT8 is slower than its
    FP16 on a T4 (cupy#9915), and far below the chip's peak on A100, H200 and B200."""
    return mode == "int8" and run.level != "L0"


def _line(says: Word, text: str) -> Line:
    return Line(says=says, text=text)


def _doubts(run: LevelRun, rate: Rate) -> list[str]:
    """What may have disturbed the measurement."""
    spread, seconds = known(rate.spread), known(rate.seconds)
    found = []
    if run.busy:
        found.append("another process was using the GPU")
    if spread is not None and spread > UNSTEADY:
        found.append(f"unsteady: the slow runs took {spread:.1f} times as long as the fast ones")
    if rate.timer == "host-clock" and seconds is not None and seconds < TINY:
        found.append(f"only {seconds * 1e3:.2g} ms a product, by the host's clock")
    return found


def _slowed(rate: Rate, clock: float | None, maximum: float) -> list[str]:
    """What may have made it slower, and never faster: turns that the GPU gave to processes that cannot be
    seen, while its own clock stood still."""
    if (
        not clock
        or clock >= HELD * maximum
        or set(known(rate.clock_event_reasons) or []) & set(_HOLDS)
    ):
        return []
    return [f"its clock counted {clock:.0f} of {maximum:.0f} MHz, and the driver gives no reason"]


def _doubted(line: Line, doubts: list[str], wide: bool) -> Line:
    """The line, or that it cannot tell where a doubt stands against it."""
    if not doubts or (line.says == "tensor" and wide):
        return line
    return _line("cannot tell", f"{line.text}; {', '.join(doubts)}")


def _per_clock(rate: Rate, chip: Chip, mode: Mode, doubts: list[str], slowed: list[str]) -> Line:
    done, ceiling, peak = known(rate.fma_per_clock_per_sm), chip.ceiling(mode), chip.rate(mode)
    if done is None:
        return _line("cannot tell", "FMA per clock and SM: not measured")
    text = f"{done:.0f} FMA per clock and SM"
    if ceiling is None:
        return _line("cannot tell", f"{text}; what CUDA cores can do here is not known")
    text += f", CUDA cores {ceiling:g}"
    if peak is not None and done > BEYOND * peak and mode != "fp32":
        return _line("cannot tell", f"{text}; the chip's peak is {peak:g}: not measured right")
    if done >= MARGIN * ceiling:
        return _doubted(_line("tensor", text), doubts, done >= WIDE * MARGIN * ceiling)
    if mode != "fp32" and (peak is None or peak < MARGIN * ceiling):
        why = "not known" if peak is None else f"only {peak:g}"
        return _line("cannot tell", f"{text}; the Tensor Cores' peak is {why}")
    if done <= AT_REST * ceiling:
        return _doubted(_line("not tensor", text), doubts + slowed, False)
    return _line("cannot tell", f"{text}: more than these can, and little more")


def _products(
    rate: Rate,
    chip: Chip,
    mode: Mode,
    half: bool,
    multiprocessors: int | None,
    clock_mhz: float,
    doubts: list[str],
    slowed: list[str],
) -> Line:
    done, fp32 = known(rate.tflops), known(rate.fp32_tflops)
    if done is None:
        return _line("cannot tell", "not measured")
    ceiling, expected = chip.ceiling(mode, half), chip.ratio(mode)
    if fp32 and _beyond_cores(fp32, chip, multiprocessors, clock_mhz):
        fp32 = None  # it went through Tensor Cores itself: emulated, or in TF32
    ratio = done / fp32 if fp32 and mode != "fp32" else None
    words = f"{figure(done)} {unit(mode)}" + ("" if ratio is None else f", {ratio:.1f} times FP32")
    cores = ceiling / chip.lanes if ceiling and chip.lanes else 1.0
    if ratio is not None and expected is not None and expected >= MARGIN * cores:
        needed = max(MARGIN * cores, SHARE * expected)
        if ratio >= needed:
            return _doubted(_line("tensor", words), doubts, ratio >= WIDE * needed)
        most_of_cores = AT_REST * cores
        if ratio < MARGIN or ratio <= most_of_cores <= FAR * expected:
            text = f"{words}, where {expected:g} are expected"
            return _doubted(_line("not tensor", text), doubts + slowed, False)
    if ceiling is not None and multiprocessors and clock_mhz:
        most = tflops(ceiling, multiprocessors, clock_mhz)
        words += f", CUDA cores at most {figure(most)}"
        if done >= MARGIN * most:
            return _doubted(_line("tensor", words), doubts, done >= WIDE * MARGIN * most)
        if mode == "fp32" and done <= AT_REST * most and _is_no_tf32(done / most, chip):
            return _doubted(_line("not tensor", words), doubts + slowed, False)
    return _line("cannot tell", words + _abstains(chip, mode, cores))


def _is_no_tf32(share: float, chip: Chip) -> bool:
    """Whether FP32 products at this share of the CUDA cores' peak are too slow to be done in TF32."""
    ratio = chip.ratio("tf32")
    return chip.has("tf32") is False or (ratio is not None and share <= FAR * ratio)


def _beyond_cores(fp32: float, chip: Chip, multiprocessors: int | None, clock_mhz: float) -> bool:
    """Whether FP32 products were faster than CUDA cores can be."""
    if not (chip.lanes and multiprocessors and clock_mhz):
        return False
    return fp32 >= MARGIN * tflops(chip.lanes, multiprocessors, clock_mhz)


def _abstains(chip: Chip, mode: Mode, cores: float) -> str:
    expected = chip.ratio(mode)
    if mode == "fp32" or chip.has(mode) is False:
        return ""
    if expected is None:
        return f"; how fast {name(mode)} is on this chip is not known"
    if expected < MARGIN * cores:
        return f"; {name(mode)} is only {expected:.1f} times as fast as FP32 on this chip"
    return f", where {expected:g} times FP32 are expected"


def unit(mode: Mode) -> str:
    return "TOP/s" if mode == "int8" else "TFLOP/s"


def figure(value: float) -> str:
    """A rate with three digits that count: "9.53", "1140"."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _peak(
    chip: Chip, mode: Mode, multiprocessors: int | None, clock: float | None, maximum: float
) -> float | None:
    """At the clock that was seen; else at the maximum, at which Tensor Cores may be scaled down."""
    rate = chip.rate(mode)
    if rate is None or not multiprocessors or not (clock or maximum):
        return None
    if clock:
        return tflops(rate, multiprocessors, clock)
    return tflops(rate, multiprocessors, maximum * (1.0 if mode == "fp32" else chip.boost_scale))


def _stale(
    chip: Chip, mode: Mode, multiprocessors: int | None, clock: float | None, done: float | None
) -> bool:
    """Whether the clock was read at another moment: at this one the chip could not have done it."""
    rate = chip.rate(mode)
    if rate is None or not multiprocessors or not clock or done is None:
        return False
    return done > BEYOND * tflops(rate, multiprocessors, clock)


def _by_old_instructions(run: LevelRun, mode: ModeRun) -> bool:
    """mma.sync and wmma on chips whose full rate only wgmma or tcgen05.mma reaches."""
    newer = (known(run.compute_capability) or "").partition(".")[0] in ("9", "10")
    others = mode.mode == "fp32" or mode.call.startswith(("wgmma", "tcgen05"))
    return newer and run.level == "L0" and not others


def _held(rate: Rate, clock: float | None, maximum: float) -> str:
    """Why the clock was below its maximum, where it was."""
    if not clock or not maximum or clock >= NOTEWORTHY * maximum:
        return ""
    reasons = known(rate.clock_event_reasons) or []
    why = [words for reason, words in _HOLDS.items() if reason in reasons]
    text = f"the SM clock was at {clock:.0f} of {maximum:.0f} MHz"
    return text + (f": {' and '.join(why)}" if why else ", and the driver gives no reason")


def _slow(run: LevelRun, share: float | None, held: str) -> str:
    """Why it is slower than the chip can, where the facts tell: one sentence, or ""."""
    why = [held] if held else []
    if (known(run.uuid) or "").startswith("MIG-"):
        count = known(run.multiprocessors)
        why.append(f"it ran on a MIG instance{f' of {count} multiprocessors' if count else ''}")
    if share is not None and share < NOTEWORTHY and run.busy:
        why.append("another process was using the GPU")
    text = "; ".join(why)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _low(
    run: LevelRun,
    mode: ModeRun,
    share: float | None,
    rate: Rate,
    clock: float | None,
    maximum: float,
) -> bool:
    if run.busy or _by_old_instructions(run, mode):
        return False
    listed = known(rate.clock_event_reasons)
    reasons = set(listed or []) - _NORMAL
    # A clock that was counted on the GPU is low where others had their turns too; NVML's is the clock.
    unexplained = listed == [] and rate.clock_source == "NVML"
    braked = bool(clock and clock < HELD * maximum and (reasons & set(_HOLDS) or unexplained))
    judged = share is not None and not is_of_the_library(run, question(mode))
    return braked or (judged and share is not None and share < LOW)
