"""A stand-in for a style of envcheck bench: a training that sleeps, or does what STANDIN says of its row.

It is copied as ``collector/bench/torch/__init__.py`` into a copy of envcheck. STANDIN is JSON: {row's name:
{"step": seconds, "kill": run, "exit": run, "flood": run, "rubbish": run, "raise": words,
"at": a file that says that it was measured once, and now hangs}}; runs are counted from one.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

FRAMEWORK = "torch"


def environ(row):
    return {"STANDIN_PRECISION": row["precision"]}


def build(framework, row, place):
    return StandinTraining(framework, row, place)


class StandinTraining:
    parameters = 1234

    def __init__(self, torch, row, place):
        faults = json.loads(os.environ.get("STANDIN", "{}")).get(row["name"], {})
        if "raise" in faults:
            raise RuntimeError(faults["raise"])
        self.faults, self.runs, self.measured = faults, 0, 0
        Path(os.environ["TMPDIR"], "left").write_text("a file that nobody removes")
        if faults.get("orphan"):  # in a session of its own, as a framework's helper might be
            subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
            )

    def run(self, steps):
        self.runs += 1
        at = {what: self.faults.get(what) for what in ("kill", "exit", "flood", "rubbish")}
        at = {what for what, run in at.items() if run == self.runs}
        if "kill" in at:
            sys.stderr.write("cuda: out of memory\n" if self.faults.get("memory") else "farewell\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if "exit" in at:
            os._exit(3)
        if "flood" in at:
            os.write(1, b"x" * (20 << 20))
        if "rubbish" in at:
            rude = '@envcheck {"result": {"seconds": NaN, "steps": 1}, "of": "repetition"}\n\x1b[31m\xff'
            os.write(1, rude.encode("latin-1") * 1000)
        for _step in range(steps):
            time.sleep(self.faults.get("step", 0.002))
        return 0

    def loss(self):  # is asked after each repetition
        self.measured += 1
        if "at" in self.faults and self.measured == 2:
            Path(self.faults["at"]).touch()
            time.sleep(600)
        return float("nan") if self.faults.get("nan") else 1.0

    def evidence(self):
        seen = {name: os.environ.get(name) for name in ("TMPDIR", "CUDA_VISIBLE_DEVICES")}
        return {"products": 3, "precision": os.environ["STANDIN_PRECISION"], **seen}

    def memory(self):
        return {}
