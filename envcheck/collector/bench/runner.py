"""Runs the rows that core has planned, one after the other, with samples of their GPUs beside them."""

import shutil
import tempfile
import time

from ..systems.shared.distributed import loopback
from ..telemetry.telemetry import Telemetry
from ..worker import command
from ..worker.messages import one_line
from . import styles
from .row import RowAtWork
from .work import MODULE

WARM_UP = {"gpu": 20.0, "cpu": 5.0}  # seconds at most of warm-up
_INTERVAL = 0.1  # seconds between two samples
_PAUSE = 0.01  # seconds between two looks
_FOREVER = 1e6  # seconds: rows have limits of their own
# Variables that change what is measured; the result has them.
SETTINGS = (
    "NVIDIA_TF32_OVERRIDE",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
    "TF_GPU_THREAD_MODE",
    "TF_CUDNN_USE_AUTOTUNE",
    "CUDA_LAUNCH_BLOCKING",
    "OMP_NUM_THREADS",
)


class BenchRunner(object):
    """All rows of a request."""

    def __init__(self, request, run, environ, patience=1, clock=time.monotonic):
        """request: {"asked", "options", "rows", "repetitions", "seconds": of one, "warm_up", "limit",
        "busy_ok", "left_out": by the plan}. limit: seconds after which no row is begun any more.

        run: the collection. patience: what the rows' limits are multiplied by.
        """
        self.stopped = False  # by the user
        self._request, self._run, self._environ = request, run, environ
        self._patience, self._clock = patience, clock
        self._left_behind = []  # (session, ``stuck`` of a Result)
        scratch = run.request.scratch
        self._scratch = None if scratch in (None, "/") else scratch

    def stop(self):
        """End; the rows that are there are kept."""
        self.stopped = True

    def run(self, devices, pause=time.sleep):
        """Fill in ``bench`` of the target's document. devices: of kernels.selection.

        Its events are {"row", "phase", "round": repetitions so far, "rate": samples a second or None}, and
        of a row that is over "phase": "over", "outcome" and "reason".
        """
        self._devices = {}
        for device in devices:
            self._devices.setdefault(device.seed.get("pci_address"), device)
        rows = self._request["rows"]
        used = {address for row in rows for address in row["gpus"]} & set(self._devices)
        self._telemetry = Telemetry(
            self._run.start, pynvml=self._run.request.pynvml, folder=self._scratch
        )
        self._began = self._clock()
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        runs = []
        self._telemetry.open(sorted(used), _INTERVAL)
        try:
            for row in rows:
                if self.stopped:
                    break
                runs.append(self._row(row, len(runs), pause))
                self._event(row, "over", None, **{k: runs[-1][k] for k in ("outcome", "reason")})
                self._left_behind += self._run.sweep()
        finally:
            self._telemetry.close()
        self._write(runs, started)

    def _row(self, row, done, pause):
        """The RowRun of one row."""
        outcome, reason = self._cannot(row)
        if outcome:
            return {"row": row, "outcome": outcome, "reason": one_line(reason)}
        try:
            folder = tempfile.mkdtemp(prefix="row-", dir=self._scratch)
        except OSError as error:
            why = "no files for its process: %s" % (error.strerror or error)
            return {"row": row, "outcome": "error", "reason": one_line(why)}
        try:
            return self._run_in(folder, row, done, pause)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run_in(self, folder, row, done, pause):
        request = dict(self._request, warm_up=self._warm_up(row))
        children = self._children(row, request, folder)
        one = RowAtWork(row, children, request, self._patience, self._clock)
        shown = "import", 0
        self._event(row, "import", None, round=0)
        while one.step():
            if self.stopped:
                one.stop("interrupted", "stopped by its user")
            self._telemetry.poll()
            self._run.progress([row["name"]], done, len(self._request["rows"]))
            now = one.phase, min(len(reader.repetitions) for reader in one.readers)
            if now[0] and now != shown:
                shown = now
                self._event(row, now[0], one.rate, round=now[1])
            pause(_PAUSE)
        one.samples = self._samples(row, one)
        return one.facts(self._began)

    def _event(self, row, phase, rate, **more):
        self._run.event(dict(more, row=row["name"], phase=phase, rate=rate))

    def _cannot(self, row):
        """(outcome, reason) of a row that cannot be run, ("", "") of any other."""
        for address in row["gpus"]:
            device = self._devices.get(address)
            if device is None:
                return "not-run", "CUDA does not see the GPU at %s" % address
            if device.outcome:
                return device.outcome, "%s: %s" % (device.name, device.reason)
        if self._clock() - self._began > (self._request.get("limit") or float("inf")):
            return "not-run", "no time left for it"
        return "", ""

    def _warm_up(self, row):
        return self._request.get("warm_up") or WARM_UP["gpu" if row["gpus"] else "cpu"]

    def _children(self, row, request, folder):
        """Its processes: one, or one a GPU."""
        ranks = len(row["gpus"]) if row["together"] == "ddp" else 1
        port = loopback.free_ports(1)[0] if ranks > 1 else 0
        return [self._launch(row, request, folder, rank, ranks, port) for rank in range(ranks)]

    def _launch(self, row, request, folder, rank, ranks, port):
        gpus = row["gpus"][rank : rank + 1] if ranks > 1 else row["gpus"]
        env = dict(self._environ, TMPDIR=folder)
        env.update(styles.load(row["style"]).environ(row))
        if ranks > 1:  # as torchrun sets them; each sees one GPU alone
            env.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK="0")
            env.update(MASTER_ADDR=loopback.HOST, MASTER_PORT=str(port))
        visible = [self._devices[address].visible for address in gpus]
        env["CUDA_VISIBLE_DEVICES"] = ",".join(visible) or "-1"
        device = "gpu" if gpus else "cpu"
        place = {"device": device, "gpus": len(gpus), "rank": rank, "ranks": ranks}
        names = ("repetitions", "seconds", "warm_up")
        params = dict({name: request[name] for name in names}, row=row, place=place)
        python = self._run.python["target"]
        argv = command(python.argv, MODULE, params)
        return self._run.start(argv, _FOREVER, python.cwd, env)

    def _samples(self, row, one):
        """GpuSamples of its GPUs, while it was measured."""
        repetitions = one.readers[0].repetitions
        if not repetitions:
            return []
        last = repetitions[-1]
        end = min(last["began"] + last["seconds"], self._clock())
        taken = self._telemetry.between(repetitions[0]["began"], end, self._began)
        return [samples for samples in taken if samples["gpu"] in row["gpus"]]

    def failed(self, reason):
        """Nothing came of it."""
        section = {"outcome": "crashed", "reason": one_line(reason)}
        self._run.documents["target"]["bench"] = section

    def name_stuck(self, remaining):
        """Name the processes that could not be ended: (session, ``stuck`` of a Result)."""
        section = self._run.documents["target"]["bench"]
        for _session, stuck in self._left_behind + remaining:
            section.setdefault("stuck", []).append(stuck)

    def _write(self, runs, started):
        seconds, environ = round(self._clock() - self._began, 3), self._environ
        request = self._request
        self._run.documents["target"]["bench"] = {
            "outcome": "ok",
            "seconds": seconds,
            "sources": {"*": "the models, run"},
            "facts": {
                "asked": request["asked"],
                "options": request.get("options") or [],
                "began": started,
                "seconds": seconds,
                "interrupted": self.stopped,
                "busy_ok": bool(request.get("busy_ok")),
                "settings": {name: one_line(environ[name]) for name in SETTINGS if name in environ},
                "left_out": request.get("left_out") or [],
                "rows": runs,
            },
        }
