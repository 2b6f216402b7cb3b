"""How well the micro-kernels measure, on a GPU, beside PyTorch and Triton in the same run:

    .venv/bin/python benchmarks/tensor_cores.py --target PYTHON [--gpu 0] [--rounds 3]

PYTHON has PyTorch and Triton. Prints, as Markdown to be kept, date, GPU, driver, the command, and each figure
beside its limit. Nothing is asserted, and no result has been written down yet.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ENVCHECK = str(Path(sys.executable).parent / "envcheck")

LOAD = """\
import torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
print("loaded", flush=True)
while True:
    a @ a
    torch.cuda.synchronize()
"""

Json = dict[str, Any]


class Doctor:
    """One run of the doctor with its micro-kernels: the report, and the Snapshot under it."""

    def __init__(self, options: argparse.Namespace, *more: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder) / "snapshot.json"
            argv = [ENVCHECK, "doctor", "--only", "tensorcores", "--format", "json", "--exit-zero"]
            argv += ["--gpu", str(options.gpu), "--kernels", "L0,L1", "--save", str(saved)]
            argv += ["--target", options.target, *more]
            started = time.perf_counter()
            done = subprocess.run(argv, capture_output=True, check=False)
            self.seconds = time.perf_counter() - started
            if done.returncode:
                sys.exit(f"{shlex.join(argv)}: {done.stderr.decode().strip()}")
            self.report: Json = json.loads(done.stdout)
            self.snapshot: Json = json.loads(saved.read_bytes())

    @property
    def verdicts(self) -> dict[str, str]:
        return {f"{j['level']} {j['mode']}": j["verdict"] for j in self.report["tensor_cores"]}

    def runs(self, level: str) -> list[Json]:
        documents = (self.snapshot["machine"], self.snapshot["target"] or {})
        sections = [d["micro_kernels"]["facts"] for d in documents if d.get("micro_kernels")]
        return [run for facts in sections for run in facts["runs"] if run["level"] == level]

    def rates(self, level: str) -> dict[str, Json]:
        modes = [mode for run in self.runs(level) for mode in run.get("modes", [])]
        return {mode["mode"]: mode["rate"] for mode in modes if mode.get("rate")}


def main() -> None:
    options = arguments()
    line = shlex.join(["benchmarks/tensor_cores.py", *sys.argv[1:]])
    runs = [Doctor(options) for _ in range(options.rounds)]
    first = runs[0]
    gpu = next(iter(first.runs("L0")), {})
    if not first.rates("L0"):
        sys.exit(f"nothing ran at L0: {gpu.get('reason') or 'there is no GPU'}")
    driver = first.report["machine"]["summary"]
    now = datetime.datetime.now(datetime.timezone.utc)
    print(f"# {gpu['name']}, {now:%Y-%m-%d}\n\n{driver}\n\n    .venv/bin/python {line}\n")
    beside_torch(options, runs)
    at_l0(runs)
    how_long(runs)
    steadiness(runs)
    under_load(options)


def beside_torch(options: argparse.Namespace, runs: list[Doctor]) -> None:
    """L1's rates over PyTorch's at the same size, the reference taken before and after."""
    rates = runs[0].rates("L1")
    modes = [mode for mode in ("fp32", "tf32", "fp16", "bf16") if mode in rates]
    if not modes:
        print("L1 did not run\n")
        return
    again = [Doctor(options, "--modes", ",".join(modes)).rates("L1") for _ in range(3)]
    print("## L1 beside torch.matmul timed by triton.testing.do_bench (limit: within 3 %)\n")
    print("| mode | size | envcheck TFLOP/s | PyTorch TFLOP/s | ratio |\n|---|---|---|---|---|")
    for mode in modes:
        size = rates[mode]["shape"][0]
        ours = [one[mode]["tflops"] for one in again if mode in one]
        theirs = [reference(options.target, size, mode, options.gpu) for _ in range(3)]
        if not ours:
            continue
        mine, other = statistics.median(ours), statistics.median(theirs)
        print(f"| {mode} | {size} | {mine:.1f} | {other:.1f} | {mine / other:.3f} |")
    print()


def reference(target: str, size: int, mode: str, gpu: int) -> float:
    argv = [target, str(HERE / "reference_torch.py"), str(size), mode]
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(gpu)}
    done = subprocess.run(
        ["env", *(f"{k}={v}" for k, v in order.items()), *argv], capture_output=True
    )
    if done.returncode:
        sys.exit(f"the reference did not run: {done.stderr.decode().strip().splitlines()[-1:]}")
    return float(json.loads(done.stdout)[mode])


def at_l0(runs: list[Doctor]) -> None:
    print("## L0, FMA per clock per multiprocessor (median of the rounds)\n")
    print("| mode | instruction | FMA/clk/SM | share of the peak |\n|---|---|---|---|")
    calls = {m["mode"]: m.get("call", "") for run in runs[0].runs("L0") for m in run["modes"]}
    shares = {
        j["mode"]: j.get("share") for j in runs[0].report["tensor_cores"] if j["level"] == "L0"
    }
    for mode in runs[0].rates("L0"):
        rates = [run.rates("L0") for run in runs]
        values = [one[mode]["fma_per_clock_per_sm"] for one in rates if mode in one]
        share = shares.get(mode)
        text = "not known" if share is None else f"{share:.0%}"
        print(f"| {mode} | {calls[mode]} | {statistics.median(values):.1f} | {text} |")
    print()


def how_long(runs: list[Doctor]) -> None:
    l0 = statistics.median(sum(r["seconds"] for r in run.runs("L0")) for run in runs)
    l1 = statistics.median(sum(r["seconds"] for r in run.runs("L1")) for run in runs)
    print("## Seconds for one GPU (median of the rounds)\n")
    print(f"L0 {l0:.2f} (limit 1.5), L0 and L1 {l0 + l1:.2f} (limit 6)\n")


def steadiness(runs: list[Doctor]) -> None:
    print(f"## The same verdict in {len(runs)} rounds\n")
    for name in runs[0].verdicts:
        seen = sorted({run.verdicts.get(name, "missing") for run in runs})
        print(f"- {name}: {', '.join(seen)}")
    print()


def under_load(options: argparse.Namespace) -> None:
    """Verdicts while another process multiplies matrices on the same GPU, beside those without it."""
    quiet = Doctor(options)
    with load(options):
        loaded = [Doctor(options, "--busy-ok") for _ in range(options.rounds)]
    print("## With another process loading the GPU (limit: no false proven or not engaged)\n")
    for name, verdict in quiet.verdicts.items():
        seen = sorted({run.verdicts.get(name, "missing") for run in loaded})
        wrong = [v for v in seen if v in ("proven", "not engaged") and v != verdict]
        print(f"- {name}: {', '.join(seen)}{' FALSE' if wrong else ''}")


@contextlib.contextmanager
def load(options: argparse.Namespace) -> Iterator[None]:
    argv = [
        "env",
        "CUDA_DEVICE_ORDER=PCI_BUS_ID",
        f"CUDA_VISIBLE_DEVICES={options.gpu}",
        options.target,
        "-c",
        LOAD,
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", required=True, help="a Python with PyTorch and Triton")
    parser.add_argument("--gpu", type=int, default=0, help="nvidia-smi's index (default: 0)")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
