"""The parent's side of a GPU's process: what it tells, and whether it still tells anything."""

import json
import time

from .. import framework
from ..acceleration.telling import line
from ..runtime.line_pipe import LinePipe
from .minutes import GpuMinutes

BEGINNING = 180.0  # seconds until it computes: compilers, and memory to be filled
SILENT = 60.0  # seconds without a word, after which it hangs
GRACE = 5.0  # seconds for it to end what it is at
_KEPT = 100  # mismatches, and Xids


class SoakWorker(object):
    """``open`` it, ``look`` again and again, ``stop`` it; ``told`` at the end."""

    def __init__(self, device, launch, clock=time.monotonic, folder=None):
        """device: of kernels.selection. launch(device, path of its pipe): a process.Child."""
        self.device = device
        self.gpu = device.seed.get("pci_address")
        self.minutes = GpuMinutes()
        self.outcome, self.reason = device.outcome or "ok", device.reason
        self.ended = None  # when, where it died or hung
        self.stuck = None
        self.lost = None
        self.errors_before, self.errors_after = {}, {}
        self.xids = []
        self.no_samples = ""
        self.rounds = {}  # by their number, those not yet compared with other GPUs': what their records say
        self._first = {}  # {"digest", "as_computed"}: of the first round; of all rounds
        self._rounds = 0
        self._launch = launch
        self._folder = folder
        self._clock = clock
        self._child = self._pipe = None
        self._facts = {}
        self._heard = None
        self._products = self._passes = 0
        self._ticked = self._minute_from = (
            None  # (when, products so far): the latest, the minute's first
        )
        self._closed = False
        self._wrong = self._wrong_words = 0
        self._mismatches = []
        self._stopping = False
        self._log = []

    @property
    def runs(self):
        return self._child is not None and self._child.result is None

    @property
    def kind(self):
        """GPUs of one kind have equal results."""
        told = [self._facts.get(name, "") for name in ("level", "call", "library_version")]
        return (self.device.seed.get("name"),) + tuple(told)

    def open(self):
        if self.outcome != "ok":
            return
        try:
            self._pipe = LinePipe(self._folder)
        except OSError as error:
            self.outcome, self.reason = "error", "no pipe to hear it: %s" % error.strerror
            return
        self._heard = self._clock()
        self._child = self._launch(self.device, self._pipe.path)

    def look(self):
        """Take in what it has told since."""
        if self._child is None:
            return
        over = self._child.result is None and self._child.poll() is not None
        for text in self._pipe.lines():
            self._heard = self._clock()
            try:
                self._take(json.loads(text.decode("ascii")))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # cut off by its death
        if over:
            self._end()
        elif self.runs and not self._stopping:
            patience = SILENT if self._first else BEGINNING
            if self._clock() - self._heard > patience:
                self._over("hung", "nothing came of it for %g s" % patience)
                self._child.stop()

    def stop(self):
        if self.runs and not self._stopping:
            self._stopping = True
            self._child.stop()

    def minute(self, began, seconds):
        """The minute's record; None of a GPU that ended before it began, or was never begun."""
        if self._closed or self._child is None:
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
            self.outcome, self.reason, self.ended = outcome, line(reason), self._clock()

    def _take(self, record):
        if "tick" in record:
            told = record["tick"]
            when, products, passes = float(told["t"]), int(told["products"]), int(told["passes"])
            self._products, self._passes = max(self._products, products), passes
            self._ticked = when, self._products
            self._minute_from = self._minute_from or self._ticked
        elif "ready" in record:
            self._facts = _ready(record["ready"])
        elif "round" in record:
            told = record["round"]
            number, product = int(told["number"]), int(told["product"])
            found = {"digest": line(told["digest"], 64), "product": product}
            if isinstance(told.get("as_computed"), bool):
                found["as_computed"] = told["as_computed"]
                self._first["as_computed"] = (
                    self._first.get("as_computed", True) and told["as_computed"]
                )
            self._first.setdefault("digest", found["digest"])
            self.rounds[number] = found
            self._rounds += 1
        elif "wrong" in record:
            self.mismatch(_mismatch(record["wrong"]))
        elif "more" in record:
            self._wrong_words += int(record["more"]["words"])
            self._wrong += 1
            self.minutes.wrong()
        elif "failed" in record:
            died = record["failed"]["outcome"] == "died" and self._first
            self._over("died" if died else "error", record["failed"]["reason"])

    def _end(self):
        result = self._child.result
        self.stuck = result.stuck
        log = framework.about_gpus(result.stderr.decode("utf-8", "replace"))
        self._log = [line(text) for text in log]
        self._pipe.close()
        asked = self._stopping and result.outcome in ("stopped", "exited")
        if not asked or (result.stuck and self.ended is None):
            self._over("died" if self._first else "error", "its process " + result.describe())

    def told(self, began):
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
            told.update(lost_at=round(self.lost[0] - began, 3), lost=line(self.lost[1]))
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
            no_samples=line(self.no_samples),
            minutes=self.minutes.all(),
        )
        return told


def _ready(told):
    facts = {name: line(told[name], 200) for name in ("mode", "call", "library", "library_version")}
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
