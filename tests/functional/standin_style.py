"""A stand-in for a style of envcheck bench: a training that sleeps, or does what STANDIN says of its row.

It is copied as ``collector/bench/torch/__init__.py`` into a copy of envcheck. STANDIN is JSON: {row's name:
{"step": seconds, "kill": run, "exit": run, "flood": run, "rubbish": run,
"at": a file that says that it is measured}}; runs are counted from one. Rows of
two ranks wait for each other over a socket, as they would in an all-reduce.
"""

import json
import os
import signal
import socket
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
        said = json.loads(os.environ.get("STANDIN", "{}")).get(row["name"], {})
        self.said, self.place, self.runs = said, place, 0
        Path(os.environ["TMPDIR"], "left").write_text("a file that nobody removes")
        if said.get("orphan"):  # in a session of its own, as a framework's helper might be
            subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
            )
        self.peer = _meet(place) if place.ranks > 1 else None

    def run(self, steps):
        self.runs += 1
        at = {what: self.said.get(what) for what in ("kill", "exit", "flood", "rubbish")}
        at = {what for what, run in at.items() if run == self.runs}
        if self.said.get("rank", self.place.rank) != self.place.rank:
            at = set()
        if "kill" in at:
            sys.stderr.write("cuda: out of memory\n" if self.said.get("memory") else "farewell\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if "exit" in at:
            os._exit(3)
        if "flood" in at:
            os.write(1, b"x" * (20 << 20))
        if "rubbish" in at:
            rude = '@envcheck-row {"repetition": {"seconds": NaN, "steps": 1, "skipped": 0}}\n\x1b[31m\xff'
            os.write(1, rude.encode("latin-1") * 1000)
        for _step in range(steps):
            time.sleep(self.said.get("step", 0.002))
            if self.peer is not None:
                self.peer.sendall(b"g")
                if self.peer.recv(1) != b"g":
                    raise ConnectionError("the other rank is gone")
        return 0

    def loss(self):  # is asked after each repetition
        if "at" in self.said:
            Path(self.said["at"]).touch()
        return float("nan") if self.said.get("nan") else 1.0

    def evidence(self):
        return {"products": 3, "precision": os.environ["STANDIN_PRECISION"]}

    def memory(self):
        return {}


def _meet(place):
    """The socket to the other of two ranks."""
    where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if int(os.environ["RANK"]) == 0:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(1)
            listener.settimeout(30)
            return listener.accept()[0]
    until = time.monotonic() + 900
    while True:
        try:
            return socket.create_connection(where, timeout=30)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
