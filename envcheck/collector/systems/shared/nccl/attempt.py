"""All ranks of NCCL together, once: started, watched, and what came of it."""

import contextlib
import os
import tempfile

from ...running import ranks
from ..transfers import by_size
from . import log as nccl_log
from .words import COUNT, HANGS, SEGMENT, SEGMENTS, STAGE, content

_PATIENCE = 5.0  # seconds that the others still get once a rank has failed


class NcclAttempt(object):
    """All ranks together, once."""

    def __init__(self, params, number, seconds, settings):
        self._params = params
        self._number = number
        self._seconds = seconds
        self._settings = settings
        self._ranks = []
        self.log = {}
        self.wrong = self.hung = self.right = False

    def go(self, trial):
        """Run the ranks, and tell; raises RuntimeError where one did not come to its end."""
        trial["ranks"] = self._number
        with tempfile.TemporaryDirectory(prefix="nccl-") as folder:
            environ = dict(nccl_log.ENVIRON, **self._settings)
            self._ranks = ranks.run(
                dict(self._params, folder=folder, until=self._seconds),
                self._number,
                self._seconds,
                lambda rank: dict(environ, NCCL_DEBUG_FILE=_log_of(folder, rank)),
                patience=_PATIENCE,
            )
            self._read(folder)
        _remove(self._ranks)
        trial.update(self.log)
        self._tell_sums(trial)
        self._tell_rates(trial)
        self._raise(trial)
        self.right = not self.wrong

    def alone(self, trial):
        """What each rank got in a communicator of its own."""
        trial["ranks"] = 1
        told = [one.answer["alone"] for one in self._ranks if one.answer]
        told = told or [_said(one, "alone") for one in self._ranks if _said(one, "alone")]
        if not told:
            raise RuntimeError(_failed(self._ranks) or "no rank came so far")
        trial["own_numbers"] = sum(one == "own" for one in told)

    def needs(self, words):
        """Whether it failed, and its warnings name one of these."""
        lines = self.log.get("warnings", []) + [one.reason for one in self._ranks]
        return not self.right and any(word in line for line in lines for word in words)

    def has(self, variable):
        """Whether NCCL found it set."""
        return any(one.startswith(variable + "=") for one in self.log.get("settings", []))

    def _read(self, folder):
        whole, together = "", ""
        for one in self._ranks:
            text = content(_log_of(folder, one.number)) + one.stderr
            since = _said(one, "join")
            whole += text
            together += text[int(since) :] if since.isdecimal() else ""
        self.log = nccl_log.read(together)
        for name in ("version", "built_cuda", "settings", "warnings"):
            found = nccl_log.read(whole).get(name)
            if found:
                self.log[name] = found

    def _tell_sums(self, trial):
        answers = [one for one in self._ranks if one.answer]
        wrong = [
            "rank %d, %s: %d of %d" % (one.number, kind, count, COUNT)
            for one in answers
            for kind, count in sorted(one.answer["wrong"].items())
            if count
        ]
        self.wrong = bool(wrong)
        if answers:
            trial["compared"] = sum(len(one.answer["wrong"]) * COUNT for one in answers)
            trial["wrong"] = sum(sum(one.answer["wrong"].values()) for one in answers)
        if wrong:
            trial["wrong_in"] = wrong

    def _tell_rates(self, trial):
        """Bus bandwidth in GB/s: the slowest rank's time in the best round."""
        times = [one.answer["seconds"] for one in self._ranks if one.answer]
        if len(times) < self._number:
            return
        for size in sorted(times[0], key=int):
            rounds = zip(*[one[size] for one in times if size in one])
            best = min(max(of_all) for of_all in rounds)
            if best > 0:
                rate = int(size) / best * 2 * (self._number - 1) / self._number
                trial["bus_%d_mib" % (int(size) >> 20)] = round(rate / 1e9, 2)
        by_size.of_ranks(trial, [one.answer.get("by_size", {}) for one in self._ranks])

    def _raise(self, trial):
        lacking = [one for one in self._ranks if one.answer is None]
        if not lacking:
            return
        trial["stages"] = ["rank %d: %s" % (one.number, _stage(one)) for one in lacking]
        reason = _failed(self._ranks)
        if not reason:
            self.hung = trial["hung"] = True
            reason = "no end within %g s" % self._seconds
        raise RuntimeError(reason)


def _failed(found):
    """The first reason of a rank that failed by itself; "" where those without an answer just hung."""
    for one in found:
        if one.answer is None and not _was_stopped(one):
            return "rank %d: %s" % (one.number, one.reason)
    return ""


def _was_stopped(one):
    return one.stopped or HANGS in one.reason


def _stage(one):
    lines = [line for line in one.stderr.splitlines() if line.startswith(STAGE)]
    return lines[-1][len(STAGE) :].split(" ", 1)[0] if lines else "start"


def _said(one, stage):
    """What a rank told with that stage; "" where it did not come to it."""
    for line in one.stderr.splitlines():
        name, _space, told = line[len(STAGE) :].partition(" ")
        if line.startswith(STAGE) and name == stage:
            return told.strip()
    return ""


def _log_of(folder, rank):
    return os.path.join(folder, "log.%d" % rank)


def _remove(found):
    """Shared memory that killed ranks left behind: of those files that they themselves had mapped."""
    for one in found:
        for line in one.stderr.splitlines():
            path = line[len(SEGMENT) :].strip()
            if line.startswith(SEGMENT) and path.startswith(SEGMENTS) and ".." not in path:
                with contextlib.suppress(OSError):
                    os.unlink(path)
