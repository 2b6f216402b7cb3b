"""The parent's side of a GPU's process: what it reports, and whether it still reports anything."""

import time

from .. import framework
from ..worker.messages import one_line
from ..worker.parent import Limits, Worker
from ..worker.pipes import LinePipe
from .minutes import GpuMinutes

BEGINNING = 180.0  # seconds until it computes: compilers, and memory to be filled
SILENT = 60.0  # seconds without a word, after which it hangs
GRACE = 5.0  # seconds for it to end what it is at
_KEPT = 100  # mismatches, and Xids


class SoakWorker(object):
    """``open`` it, ``look`` again and again, ``stop`` it; ``gpu_facts`` at the end.

    ended: when it died or hung. rounds: by their number, those not yet compared with other GPUs'.
    """

    def __init__(self, device, launch, clock=time.monotonic, folder=None):
        """device: of kernels.selection. launch(device, path of its pipe): a process.Child."""
        self.device = device
        self.gpu = device.seed.get("pci_address")
        self.minutes = GpuMinutes()
        self.outcome, self.reason = device.outcome or "ok", device.reason
        self.ended = self.stuck = self.lost = None
        self.errors_before, self.errors_after = {}, {}
        self.xids = []
        self.no_samples = ""
        self.rounds = {}
        self._first = {}  # {"digest", "as_computed"}: of the first round; of all rounds
        self._rounds = 0
        self._launch = launch
        self._folder = folder
        self._clock = clock
        self._worker = None
        self._facts = {}
        self._products = self._passes = 0
        # (when, products so far): the latest, the minute's first
        self._ticked = self._minute_from = None
        self._closed = False
        self._wrong = self._wrong_words = 0
        self._mismatches = []
        self._log = []

    @property
    def runs(self):
        return self._worker is not None and self._worker.runs

    @property
    def name(self):
        return self.device.seed.get("name")

    @property
    def is_ready(self):
        """Whether it has reported what it computes."""
        return bool(self._facts)

    @property
    def kind(self):
        """GPUs of one kind have equal results."""
        facts = [self._facts.get(name, "") for name in ("level", "call", "library_version")]
        return (self.name,) + tuple(facts)

    def open(self):
        if self.outcome != "ok":
            return
        try:
            pipe = LinePipe(self._folder)
        except OSError as error:
            self.outcome, self.reason = "error", "no pipe to hear it: %s" % error.strerror
            return
        child = self._launch(self.device, pipe.path)
        limits = Limits(start=BEGINNING, stage=SILENT)
        self._worker = Worker(child, limits, self.take, pipe, clock=self._clock)

    def look(self):
        """Take in what it has reported since."""
        if self.runs and not self._worker.step():
            self._end(self._worker)

    def stop(self):
        if self.runs:
            self._worker.stop()

    def minute(self, began, seconds):
        """The minute's record; None of a GPU that ended before it began, or was never begun."""
        if self._closed or self._worker is None:
            return None
        self._closed = self.ended is not None
        products, tflops = 0, None
        if self._ticked and self._minute_from and self._ticked[0] > self._minute_from[0]:
            products = self._ticked[1] - self._minute_from[1]
            took = self._ticked[0] - self._minute_from[0]
            tflops = products * self._facts.get("tflop", 0.0) / took
        self._minute_from = self._ticked
        return self.minutes.over(began, seconds, products, tflops)

    def mismatch(self, record):
        """Another wrong result."""
        self._wrong += 1
        self._wrong_words += record.get("words", 0)
        self.minutes.wrong()
        if len(self._mismatches) < _KEPT:
            self._mismatches.append(record)

    def _over(self, outcome, reason):
        if self.ended is None:
            self.outcome, self.reason, self.ended = outcome, one_line(reason), self._clock()

    def take(self, kind, value, name):
        """A message of the process. Raises ValueError, KeyError, … where it makes no sense."""
        if kind == "result":
            getattr(self, "_take_" + name)(value)

    def _take_tick(self, tick):
        when, products = float(tick["t"]), int(tick["products"])
        self._passes = int(tick["passes"])
        self._products = max(self._products, products)
        self._ticked = when, self._products
        self._minute_from = self._minute_from or self._ticked

    def _take_ready(self, ready):
        self._facts = _ready(ready)

    def _take_round(self, facts):
        number = int(facts["number"])
        found = {"digest": one_line(facts["digest"], 64), "product": int(facts["product"])}
        computed = facts.get("as_computed")
        if isinstance(computed, bool):
            found["as_computed"] = computed
            self._first["as_computed"] = self._first.get("as_computed", True) and computed
        self._first.setdefault("digest", found["digest"])
        self.rounds[number] = found
        self._rounds += 1

    def _take_wrong(self, wrong):
        self.mismatch(_mismatch(wrong))

    def _take_more(self, words):
        self._wrong_words += int(words)
        self._wrong += 1
        self.minutes.wrong()

    def _end(self, worker):
        self.stuck = worker.stuck
        self._log = [one_line(text) for text in framework.about_gpus(worker.log)]
        if worker.outcome == "timeout":
            patience = SILENT if worker.begun is not None else BEGINNING
            self._over("hung", "nothing came of it for %g s" % patience)
        elif worker.outcome == "crashed" or (worker.outcome == "died" and self._first):
            self._over("died" if self._first else "error", worker.reason)
        elif worker.outcome not in ("ok", "stopped"):
            self._over("error", worker.reason)
        elif worker.stuck or (worker.outcome == "ok" and not worker.was_stopped):
            words = "its process " + worker.result.describe()
            self._over("died" if self._first else "error", words)

    def gpu_facts(self, began):
        """The SoakGpu. began: when the soak began, by the clock."""
        seed = self.device.seed
        told = {"outcome": self.outcome, "reason": self.reason, "log": self._log}
        for name, key in (("gpu", "pci_address"), ("index", "index"), ("name", "name")):
            if seed.get(key) is not None:
                told[name] = seed[key]
        told.update(self._facts)
        told.update(self._first, rounds=self._rounds)
        if self.ended is not None:
            told["ended"] = round(self.ended - began, 3)
        if self.lost is not None:
            told.update(lost_at=round(self.lost[0] - began, 3), lost=one_line(self.lost[1]))
        told.update(
            passes=self._passes,
            products=self._products,
            wrong=self._wrong,
            wrong_words=self._wrong_words,
            mismatches=[
                dict(one, seconds=round(one["seconds"] - began, 3)) for one in self._mismatches
            ],
            xids=[
                {"seconds": round(when - began, 3), "number": int(number)}
                for when, number in self.xids[:_KEPT]
            ],
            errors_before=self.errors_before,
            errors_after=self.errors_after,
            no_samples=one_line(self.no_samples),
            minutes=self.minutes.all(),
        )
        return told


def _ready(told):
    facts = {
        name: one_line(told[name], 200) for name in ("mode", "call", "library", "library_version")
    }
    facts["level"] = told["level"] if told["level"] in ("driver", "cublas") else ""
    facts["tflop"] = float(told["tflop"])
    facts["words"], facts["memory_mib"] = int(told["words"]), int(told["memory_mib"])
    return facts


def _mismatch(told):
    """A Mismatch, whose seconds are the clock's."""
    what = told["what"] if told["what"] in ("product", "first", "computed", "memory") else "product"
    made = {"seconds": float(told["t"]), "what": what, "product": int(told["product"])}
    made["words"] = int(told["words"])
    if what == "memory":
        made["addresses"] = "0x%x to 0x%x" % (int(told["address"]), int(told["last_address"]))
        made["bits"] = "0x%016x" % int(told["bits"])
        return made
    made.update(row=int(told["row"]), column=int(told["column"]))
    made.update(found="0x%08x" % int(told["found"]), wanted="0x%08x" % int(told["wanted"]))
    if told["unit"] is not None:
        made["unit"] = int(told["unit"])
    return made
