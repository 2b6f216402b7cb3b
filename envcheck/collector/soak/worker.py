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
_WORDS = ("mode", "call", "library", "library_version")


class SoakWorker(object):
    """``open`` it, ``look`` again and again, ``stop`` it; ``gpu_facts`` at the end.

    ended: when it died or hung. rounds: by their number, those not yet compared with other GPUs'.
    """

    def __init__(self, device, launch, clock=time.monotonic, folder=None):
        """device: of kernels.selection. launch(device, path of its pipe): a process.Child."""
        self.device = device
        self.gpu = device.seed.get("pci_address")
        self.name = device.seed.get("name")
        self.minutes = GpuMinutes()
        self.outcome, self.reason = device.outcome or "ok", device.reason
        self.ended = self.stuck = self.lost = None
        self.errors_before, self.errors_after = {}, {}
        self.xids = []
        self.no_samples = ""
        self.rounds = {}
        self._launch, self._folder, self._clock = launch, folder, clock
        self._worker = None
        self._ready = {}  # what it computes
        self._counts = {"products": 0, "passes": 0, "rounds": 0, "wrong": 0, "wrong_words": 0}
        self._digest = ""
        self._tick = self._minute_from = (
            None  # (when, products so far): the latest, the minute's first
        )
        self._closed = False
        self._mismatches, self._log = [], []

    @property
    def runs(self):
        return self._worker is not None and self._worker.runs

    @property
    def is_ready(self):
        """Whether it has reported what it computes."""
        return bool(self._ready)

    @property
    def kind(self):
        """GPUs of one kind have equal results."""
        facts = [self._ready.get(name, "") for name in ("level", "call", "library_version")]
        return (self.name,) + tuple(facts)

    def open(self):
        if self.outcome != "ok":
            return
        try:
            pipe = LinePipe(self._folder)
        except OSError as error:
            self.outcome, self.reason = "error", "no pipe for its messages: %s" % error.strerror
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
        if self._tick and self._minute_from and self._tick[0] > self._minute_from[0]:
            products = self._tick[1] - self._minute_from[1]
            took = self._tick[0] - self._minute_from[0]
            tflops = products * self._ready.get("tflop", 0.0) / took
        self._minute_from = self._tick
        return self.minutes.over(began, seconds, products, tflops)

    def mismatch(self, record):
        """Another wrong result."""
        self._count_wrong(record.get("words", 0))
        if len(self._mismatches) < _KEPT:
            self._mismatches.append(record)

    def _count_wrong(self, words):
        self._counts["wrong"] += 1
        self._counts["wrong_words"] += words
        self.minutes.wrong()

    def take(self, kind, value, name):
        """A message of the process. Raises ValueError, KeyError, … where it makes no sense."""
        if kind != "result":
            return
        if name == "tick":
            when, products = float(value["t"]), int(value["products"])
            self._counts["passes"] = int(value["passes"])
            self._counts["products"] = max(self._counts["products"], products)
            self._tick = when, self._counts["products"]
            self._minute_from = self._minute_from or self._tick
        elif name == "ready":
            self._ready = _ready(value)
        elif name == "round":
            number, product = int(value["number"]), int(value["product"])
            digest = one_line(value["digest"], 64)
            self.rounds[number] = {"digest": digest, "product": product}
            self._digest = self._digest or digest
            self._counts["rounds"] += 1
        elif name == "wrong":
            self.mismatch(_mismatch(value))
        elif name == "more":
            self._count_wrong(int(value))

    def _end(self, worker):
        self.stuck = worker.stuck
        self._log = [one_line(text) for text in framework.about_gpus(worker.log)]
        outcome, reason = worker.outcome, worker.reason
        if outcome == "timeout":
            patience = SILENT if worker.begun is not None else BEGINNING
            self._over("hung", "nothing came of it for %g s" % patience)
        elif outcome in ("crashed", "died") and self._digest:
            self._over("died", reason)
        elif outcome not in ("ok", "stopped"):
            self._over("error", reason)
        elif worker.stuck or (outcome == "ok" and not worker.was_stopped):
            words = "its process " + worker.result.describe()
            self._over("died" if self._digest else "error", words)

    def _over(self, outcome, reason):
        if self.ended is None:
            self.outcome, self.reason, self.ended = outcome, one_line(reason), self._clock()

    def gpu_facts(self, began):
        """The SoakGpu. began: when the soak began, by the clock."""

        def since(when):
            return round(when - began, 3)

        seed = {"gpu": self.gpu, "index": self.device.seed.get("index"), "name": self.name}
        facts = {name: value for name, value in seed.items() if value is not None}
        facts.update(self._ready)
        facts.update(self._counts, outcome=self.outcome, reason=self.reason, digest=self._digest)
        if self.ended is not None:
            facts["ended"] = since(self.ended)
        if self.lost is not None:
            facts.update(lost_at=since(self.lost[0]), lost=one_line(self.lost[1]))
        seen = [dict(one, seconds=since(one["seconds"])) for one in self._mismatches]
        xids = [{"seconds": since(t), "number": int(number)} for t, number in self.xids[:_KEPT]]
        facts.update(mismatches=seen, xids=xids, minutes=self.minutes.records, log=self._log)
        facts.update(errors_before=self.errors_before, errors_after=self.errors_after)
        facts["no_samples"] = one_line(self.no_samples)
        return facts


def _ready(given):
    facts = {name: one_line(given[name], 200) for name in _WORDS}
    facts["level"] = given["level"] if given["level"] in ("driver", "cublas") else ""
    facts["tflop"] = float(given["tflop"])
    facts["words"], facts["memory_mib"] = int(given["words"]), int(given["memory_mib"])
    return facts


def _mismatch(given):
    """A Mismatch, whose seconds are the clock's."""
    what = given["what"] if given["what"] in ("product", "first", "memory") else "product"
    made = {"seconds": float(given["t"]), "what": what, "product": int(given["product"])}
    made["words"] = int(given["words"])
    if what == "memory":
        made["addresses"] = "0x%x to 0x%x" % (int(given["address"]), int(given["last_address"]))
        made["bits"] = "0x%016x" % int(given["bits"])
        return made
    made.update(row=int(given["row"]), column=int(given["column"]))
    made.update(found="0x%08x" % int(given["found"]), wanted="0x%08x" % int(given["wanted"]))
    if given["unit"] is not None:
        made["unit"] = int(given["unit"])
    return made
