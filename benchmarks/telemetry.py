"""What sampling costs: the share of one CPU that the process which samples takes, beside a stand-in NVML.

    .venv/bin/python benchmarks/telemetry.py [--gpus 8] [--interval 0.1] [--seconds 10]

The stand-in answers at once. A real NVML takes time of its own for each call: there, `--real ADDRESS,…`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests"))

from world import folder as standin  # noqa: E402

from envcheck import nvidia_ml_py  # noqa: E402
from envcheck.collector.runtime import process  # noqa: E402
from envcheck.collector.telemetry.telemetry import Telemetry  # noqa: E402


def cpu_seconds(pid: int) -> float:
    """What a process has used, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--interval", type=float, default=0.1)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--errors", action="store_true", help="as a soak has it")
    parser.add_argument("--real", default="", help="PCI addresses of this machine's GPUs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ)
        addresses = [one for one in given.real.split(",") if one]
        if not addresses:
            machine = standin.h200(given.gpus)
            standin.put(Path(folder), ["libnvidia-ml.so.1"])
            env |= standin.variables(folder, standin.describe(machine, Path(folder)))
            addresses = [gpu.address for gpu in machine.gpus]

        def start(argv: list[str], deadline: float, cwd: str, _env: None) -> process.Child:
            return process.Child(argv, deadline, cwd=cwd, env=env, tied=True)

        path = nvidia_ml_py.file()
        one = Telemetry(start, None if path is None else str(path))
        one.open(addresses, given.interval, given.errors)
        try:
            ended = time.monotonic() + 30
            while not one.between(0, time.monotonic()) and time.monotonic() < ended:
                time.sleep(0.05)
            assert one._worker is not None
            before, began, mine = (
                cpu_seconds(one._worker.child.pid),
                time.monotonic(),
                time.process_time(),
            )
            samples = 0
            while time.monotonic() < began + given.seconds:
                samples += sum(kind == "sample" for kind, *_rest in one.poll())
                time.sleep(0.05)
            took = time.monotonic() - began
            used = cpu_seconds(one._worker.child.pid) - before
            print(
                f"{len(addresses)} GPUs every {given.interval:g} s: {samples / took:.1f} samples/s; "
                f"the process {100 * used / took:.2f} % of a CPU, "
                f"whoever reads them {100 * (time.process_time() - mine) / took:.2f} %"
            )
        finally:
            one.close()


if __name__ == "__main__":
    main()
