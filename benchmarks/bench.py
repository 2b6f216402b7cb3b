"""What envcheck bench costs beside the training that it measures:

    .venv/bin/python benchmarks/bench.py [--target DIR ...] [--rounds 60] [--only WHAT ...]

WHAT: harness (a row's steps by the harness, and by a bare loop of the same style in a process of its own, in
turn), whole (`envcheck bench` without WHAT, by the clock, and the memory of its own processes), sampler
(its share of a processor at 10 Hz; without NVML, on a stand-in for it). Prints, as Markdown to be kept, date,
machine, command, and each figure beside its limit. Nothing is asserted: a limit that is missed is said.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import envcheck as package
from envcheck.collector import worker
from envcheck.collector.bench import work

ENVCHECK = str(Path(sys.executable).parent / "envcheck")
ROOT = str(Path(package.__file__).parents[1])
LIMITS = {"harness": 1.0, "whole": 60.0, "memory": 120.0, "sampler": 1.0}
WHAT = ("harness", "whole", "sampler")
SECONDS = 0.3  # of a repetition: short ones, so that both meet the same neighbours

# The bare loop: the same Training, built as a row's process builds it, and nothing around it but a clock.
BARE = """
import json, sys, time
package = type(sys)("envcheck")
package.__path__ = [sys.argv[1] + "/envcheck"]
sys.modules["envcheck"] = package
from envcheck.collector import framework
from envcheck.collector.bench import styles
from envcheck.collector.bench.place import Place
row = json.loads(sys.argv[2])
style = styles.load(row["style"])
module, problem = framework.load(style.FRAMEWORK)
training = style.build(module, row, Place())
print("ready", flush=True)
for line in sys.stdin:
    began = time.monotonic()
    training.run(int(line))
    print(time.monotonic() - began, flush=True)
"""


class Talk:
    """A process that answers lines."""

    def __init__(self, argv: list[str]) -> None:
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, *wanted: str) -> Any:
        """The next line that is one float, or the message that has one of these."""
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            line = raw.decode("utf-8", "replace").strip()
            if not wanted and (
                line == "ready" or line.replace(".", "").replace("e-", "").isdigit()
            ):
                return line
            if wanted and line.startswith("@envcheck "):
                message = json.loads(line.partition(" ")[2])
                if {*message, message.get("of")} & set(wanted):
                    return message
        sys.exit("a row's process has ended")

    @property
    def cpu_seconds(self) -> float:
        """Of all its threads so far."""
        found = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            found += int((task / "schedstat").read_text().split()[0])
        return found / 1e9

    def order(self, **words: Any) -> None:
        self.say(json.dumps(words))
        self.hear("order")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


# Prints the style of what the environment has.
STYLE = """
import importlib.util as util, importlib.metadata as metadata
has = {name for name in ("torch", "jax", "tensorflow") if util.find_spec(name)}
names = {(one.metadata["Name"] or "").lower(): one.version for one in metadata.distributions()}
versions = [version for name, version in names.items() if name.startswith("tensorflow")]
first = any(version.startswith("1.") for version in versions)
print("torch" if "torch" in has else "jax" if "jax" in has else "session" if first else "keras")
"""


def row_of(target: str) -> dict[str, Any]:
    """The feed-forward network's row for what the target has."""
    from envcheck.facts.bench import BenchRow

    python = str(Path(target) / "bin/python")
    code = STYLE.replace("importlib.metadata", "importlib_metadata") if _is_old(python) else STYLE
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    style: Any = done.stdout.strip()
    made = BenchRow(name="mlp", what="mlp", model="mlp", style=style, batch=16, small=True)
    return {name: getattr(made, name) for name in made.__struct_fields__}


def _is_old(python: str) -> bool:
    """Without importlib.metadata, which came with 3.8: TensorFlow 1.15 brings the package."""
    code = "import sys; sys.exit(sys.version_info < (3, 8))"
    return subprocess.run([python, "-c", code], check=False).returncode != 0


def harness(target: str, rounds: int) -> None:
    """Repetitions of a row by the harness's process and by a bare loop, in turn."""
    row = row_of(target)
    python = str(Path(target) / "bin/python")
    params = {"row": row, "place": {"device": "cpu", "gpus": []}}
    by_harness = Talk(worker.command([python, "-B"], work.MODULE, params))
    bare = Talk([python, "-B", "-c", BARE, ROOT, json.dumps(row)])
    bare.hear()
    by_harness.hear("begin")
    by_harness.order(build=True)
    by_harness.order(warm=20)
    bare.say("20")
    steps = max(1, round(SECONDS / float(bare.hear()) * 20))
    control = Talk([python, "-B", "-c", BARE, ROOT, json.dumps(row)])
    control.hear()
    control.say("20")
    control.hear()
    talks = {"bare": bare, "harness": by_harness, "control": control}
    used: dict[str, list[float]] = {who: [] for who in talks}
    for number in range(rounds):
        for who in list(talks)[:: 1 if number % 2 else -1]:
            one = talks[who]
            before = one.cpu_seconds
            if who == "harness":
                one.order(measure=steps)
            else:
                one.say(str(steps))
                one.hear()
            used[who].append(one.cpu_seconds - before)
    for one in talks.values():
        one.end()
    # Processor time, with all that the harness does between two orders: the clock tells of neighbours, too.
    each = {who: statistics.median(seconds) / steps for who, seconds in used.items()}
    cost = 100 * (each["harness"] / each["bare"] - 1)
    alike = 100 * (each["control"] / each["bare"] - 1)
    words = f"{Path(target).name}, {row['style']}: {1000 * each['bare']:.2f} ms of a CPU a step"
    figure = f"{cost:+.1f} %; a second bare loop {alike:+.1f} %"
    print(f"| the harness beside the bare loop ({words}) | {figure} | {said('harness', cost)} |")


def whole(target: str) -> None:
    """`envcheck bench` by the clock, and what envcheck's own processes had in memory at the most."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            ENVCHECK,
            "bench",
            "--target",
            target,
            "--output",
            f"{folder}/out",
            "--save",
            f"{folder}/s",
        ]
        began = time.perf_counter()
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        most: dict[str, int] = {}
        while process.poll() is None:
            for name, kib in memory_of(process.pid):
                most[name] = max(most.get(name, 0), kib)
            time.sleep(0.05)
        seconds = time.perf_counter() - began
        saved = Path(folder, "s")
        runs = []
        if saved.exists():
            runs = json.loads(saved.read_bytes())["target"]["bench"]["facts"]["rows"]
    ok = sum(run["outcome"] == "ok" for run in runs)
    name = Path(target).name
    print(
        f"| `envcheck bench`, {name}: {ok} of {len(runs)} rows | {seconds:.0f} s | {said('whole', seconds)} |"
    )
    for who, kib in sorted(most.items()):
        print(f"| memory of {who}, {name} | {kib / 1024:.0f} MB | {said('memory', kib / 1024)} |")


def memory_of(pid: int) -> list[tuple[str, int]]:
    """(which, KiB at the most) of envcheck's process and of its collector's."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "status").read_text()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        own = int(entry.name) == pid
        collector = str(pid).encode() in command.split(b"\0") and b"--parent" in command
        if own or collector:
            peak = int(fields.get("VmHWM", "0 kB").split()[0])
            found.append(("envcheck's own process" if own else "its collector", peak))
    return found


def sampler(seconds: float) -> None:
    """The processor's time of the process that samples, at 10 Hz."""
    from envcheck.collector.runtime import process
    from envcheck.collector.telemetry.telemetry import Telemetry

    gpus = subprocess.run(
        ["nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader"],
        capture_output=True, text=True, check=False,
    ).stdout.split() if _there("nvidia-smi") else []  # fmt: skip
    where = "NVML"
    pynvml = None
    folder = tempfile.TemporaryDirectory()
    if not gpus:
        where, pynvml = "a stand-in for NVML", Path(folder.name, "pynvml.py")
        pynvml.write_text(STANDIN)
        gpus = ["0000:01:00.0"]

    def start(argv: list[str], deadline: float, cwd: str, env: Any) -> process.Child:
        return process.Child(argv, deadline, cwd=cwd, env=env)

    one = Telemetry(start, ROOT, None if pynvml is None else str(pynvml), folder.name)
    one.open([gpu.lower()[-12:] for gpu in gpus], 0.1)
    until = time.monotonic() + seconds
    began = time.monotonic()
    while time.monotonic() < until:
        one.poll()
        time.sleep(0.05)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = one.between(began, time.monotonic())
    one.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    share = 100 * used / seconds
    count = sum(len(samples["seconds"]) for samples in told)
    words = f"{where}, {count} samples in {seconds:g} s, with its start"
    print(
        f"| the process that samples ({words}) | {share:.2f} % of a CPU | {said('sampler', share)} |"
    )
    folder.cleanup()


def _there(program: str) -> bool:
    import shutil

    return shutil.which(program) is not None


STANDIN = """
class Answer:
    def __getattr__(self, name):
        return 7
def __getattr__(name):
    if not name.startswith("nvml"):
        raise AttributeError(name)
    def call(*arguments):
        return [] if "Processes" in name else Answer() if "Info" in name or "Rates" in name else 7
    return call
"""


def said(name: str, value: float) -> str:
    limit = LIMITS[name]
    return f"{limit:g}" + ("" if value <= limit else " MISSED")


def main() -> None:
    options = arguments()
    cores = len(os.sched_getaffinity(0))
    print(f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {cores} CPUs,", end=" ")
    print(
        f"load {os.getloadavg()[0]:.1f}: `{shlex.join(['benchmarks/bench.py', *sys.argv[1:]])}`\n"
    )
    print("| what | measured | limit |\n|---|---|---|")
    if "sampler" in options.only:
        sampler(options.seconds)
    for target in options.target:
        if "harness" in options.only:
            harness(target, options.rounds)
        if "whole" in options.only:
            whole(target)
        sys.stdout.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--target", action="append", default=[], help="an environment; several in turn"
    )
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30.0, help="of sampling")
    parser.add_argument("--only", nargs="+", default=WHAT, choices=WHAT)
    return parser.parse_args()


if __name__ == "__main__":
    main()
