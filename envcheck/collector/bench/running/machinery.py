"""What rows are run with: the target's Python, devices, where ranks meet, samples, the driver's count."""

import os
import time

from ...facts import known
from ...systems.shared.distributed import loopback
from ...telemetry.telemetry import Telemetry
from ...worker import command
from .. import styles
from ..work import MODULE
from . import driver_memory, rank_environ, rendezvous
from .row_at_work import RowAtWork
from .row_process import RowProcess

WARM_UP = {"gpu": 20.0, "cpu": 5.0}  # seconds at most of warm-up
_FOREVER = 1e6  # seconds: rows have limits of their own
_MEETING = 20.0  # seconds until a rendezvous has told its port
_INTERVAL = 0.1  # seconds between two samples


class Machinery(object):
    """Makes a RowAtWork of a row, and ends what was started for it."""

    def __init__(
        self,
        request,
        documents,
        python,
        start,
        environ,
        root,
        machine_python=(),
        pynvml=None,
        sweep=list,
        scratch=None,
        patience=1,
        cores=1,
        telemetry=Telemetry,
        clock=time.monotonic,
    ):
        """machine_python: argv of envcheck's own Python. pynvml: the path of its module.

        sweep(): ends what processes that are over have left behind, and names what it could not end, as
        orphans.sweep. scratch: a directory for rows' files. patience: what their limits are multiplied by.
        cores: how many frameworks may be imported side by side.
        """
        self.clock = clock
        self.cores = max(1, cores)
        self._request = request
        self._machine = documents["machine"]
        self._python = python
        self._start = start
        self._environ = environ
        self._root = root
        self._machine_python = list(machine_python)
        self._pynvml = pynvml
        self._sweep = sweep
        self._scratch = None if scratch in (None, "/") else scratch
        self._patience = patience
        self._telemetry = telemetry(start, root, pynvml, self._scratch)
        self._meetings = []  # of Horovod's ranks: Children
        self.left_behind = []  # (session, ``stuck`` of a Result)

    def open(self, devices, rows):
        """devices: of kernels.selection."""
        self._devices = {}
        for device in devices:
            self._devices.setdefault(device.seed.get("pci_address"), device)
        used = sorted({address for row in rows for address in row["gpus"]} & set(self._devices))
        self._telemetry.open(used, _INTERVAL)

    def close(self):
        self._telemetry.close()
        self.sweep()

    def poll(self):
        self._telemetry.poll()

    def between(self, first, last, since):
        """The GpuSamples of that time."""
        return self._telemetry.between(first, last, since)

    def sweep(self):
        """End what is over and has left something behind."""
        for child in self._meetings:
            child.stop()
            while child.poll() is None:
                time.sleep(0.005)
        self._meetings = []
        self.left_behind += self._sweep()

    def cannot(self, row):
        """(outcome, reason) of a row whose GPUs cannot be used, ("", "") of any other."""
        for address in row["gpus"]:
            device = self._devices.get(address)
            if device is None:
                return "not-run", "CUDA does not see the GPU at %s" % address
            if device.outcome:
                return device.outcome, "%s: %s" % (device.name, device.reason)
        return "", ""

    def free_mib(self, row):
        """What is free on the row's GPUs, on the one that has least; None where that is not known."""
        facts = (self._machine.get("nvml") or {}).get("facts") or {}
        gpus = {gpu.get("pci_address"): gpu for gpu in known(facts.get("gpus")) or []}
        free = [known(gpus.get(one, {}).get("memory_free_mib")) for one in row["gpus"]]
        return min(free) if free and None not in free else None

    def row(self, row):
        """A RowAtWork, not yet open."""
        ranks = rank_environ.ranks_of(row)
        meeting = _Meeting(self, row)
        processes = [
            RowProcess(
                lambda orders, folder, rank=rank: self._launch(
                    row, rank, ranks, meeting, orders, folder
                ),
                self.clock,
                self._patience,
                self._scratch,
            )
            for rank in range(ranks)
        ]
        warm_up = self._request.get("warm_up") or WARM_UP["gpu" if row["gpus"] else "cpu"]
        return RowAtWork(row, processes, warm_up, self.clock)

    def _launch(self, row, rank, ranks, meeting, orders, folder):
        gpus = [row["gpus"][rank]] if ranks > 1 and row["gpus"] else row["gpus"]
        env = dict(self._environ)
        env.update(styles.load(row["style"]).environ(row))
        if ranks > 1 or row["together"] in rank_environ.BY_RANKS:
            env.update(rank_environ.environ(row["together"], rank, ranks, meeting.port()))
        visible = [self._devices[address].visible for address in gpus]
        env["CUDA_VISIBLE_DEVICES"] = ",".join(visible) or "-1"
        env["TMPDIR"] = folder
        place = {
            "device": "gpu" if gpus else "cpu",
            "gpus": gpus,
            "rank": rank,
            "ranks": ranks,
            "folder": self._request.get("folder", ""),
        }
        argv = command(self._python.argv, MODULE, {"row": row, "place": place})
        return self._start(argv, _FOREVER, self._python.cwd, env, stdin=orders)

    def meeting_of_horovod(self):
        """The port of a new rendezvous. Raises OSError where there is none."""
        argv = self._machine_python + ["-c", rendezvous.BOOTSTRAP, self._root]
        child = self._start(argv, _FOREVER, "/", dict(self._environ))
        self._meetings.append(child)
        until = time.monotonic() + _MEETING
        while child.poll() is None and time.monotonic() < until:
            told = child.new_stdout().strip()
            if told.isdigit():
                return int(told)
            time.sleep(0.005)
        raise OSError("no rendezvous for Horovod's ranks on the loopback")

    def look_at_memory(self, one, until):
        """Ask the driver what a row's processes have on their GPUs; until(reached) waits."""
        if not one.row["gpus"]:
            return
        argv = self._machine_python + ["-c", driver_memory.BOOTSTRAP, self._root]
        child = self._start(
            argv + [self._pynvml or ""], driver_memory.DEADLINE, "/", dict(os.environ)
        )
        until(lambda: child.poll() is not None)
        told = driver_memory.read(child.poll().stdout)
        found = [told[process.pid] for process in one.processes if process.pid in told]
        if found:
            one.process_mib = max(found)


class _Meeting(object):
    """Where the ranks of one row find each other: made when the first of them is started."""

    def __init__(self, machinery, row):
        self._machinery = machinery
        self._by_horovod = row["together"] == "horovod"
        self._port = None

    def port(self):
        if self._port is None:
            if self._by_horovod:
                self._port = self._machinery.meeting_of_horovod()
            else:
                (self._port,) = loopback.free_ports(1)
        return self._port
