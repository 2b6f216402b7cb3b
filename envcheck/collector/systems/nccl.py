"""NCCL: a process for each GPU, an all-reduce whose sum is exact, how fast it is, and by which way it went.

Control: the same all-reduce in a communicator of one rank, which gives each GPU's own numbers back. Where
the GPUs fail together, the likely causes are taken away one at a time: multicast, then direct transfers.
"""

import contextlib
import glob
import os
import tempfile

from .. import files
from .running import ranks, records
from .shared.nccl import log as nccl_log
from .shared.nccl import rank as nccl_rank

SYSTEM = "nccl"
GPUS = 2
ALONE = True
LIBRARIES = ("libnccl",)
DEADLINE = 85.0
rank = nccl_rank.work

_FIRST, _AGAIN = 0.36, 0.24  # of the whole time, for all ranks of a trial
_PATIENCE = 5.0  # seconds that the others still get once a rank has failed
_SEGMENTS = "/dev/shm/nccl-*"
_DIRECT = ("P2P", "p2p", "IPC", "Ipc", "CUMEM", "peer access")
_MULTICAST = ("NVLS", "nvls", "ulticast")


def run(_framework, params, tell):
    paths = (params.get("libraries") or {}).get("libnccl")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    number = len(visible.split(","))
    if not paths:
        raise records.NotApplicable("the target has no libnccl")
    if "MIG-" in visible:
        raise records.NotApplicable("MIG instances: NCCL joins whole GPUs")
    if number < 2:
        raise records.NotApplicable("one GPU")
    params = dict(params, library=paths[0])
    first, again = params["seconds"] * _FIRST, params["seconds"] * _AGAIN
    with tell.trial("all-reduce") as together:
        together["library"], together["others"] = paths[0], paths[1:] or None
        found = _start(together, params, number, first)
        _judge(together, found, first)
    with tell.trial("one rank", control=True) as trial:
        trial["ranks"] = 1
        alone = [one for rank in found for one in rank.reader.trials if one["outcome"] == "ok"]
        if not alone:
            raise RuntimeError(_failed(found) or "no rank came so far")
        trial["own_numbers"] = sum(one["evidence"].get("own") is True for one in alone)
    words = "\n".join(together.get("warnings", []) + [one.reason for one in found])

    def is_right_with(name, value, params):
        with tell.trial("%s=%s" % (name, value)) as trial:
            _judge(trial, _start(trial, params, number, again, **{name: value}), again)
        return _is_right(trial)

    right = _is_right(together)
    if together.get("nvls") if right else _names(words, _MULTICAST):
        right = is_right_with("NCCL_NVLS_ENABLE", "0", params) or right
    is_set = any(one.startswith("NCCL_P2P_DISABLE=") for one in together.get("settings", []))
    direct = together.get("wrong") or together.get("hung") or _names(words, _DIRECT)
    if direct and not right and not is_set:
        is_right_with("NCCL_P2P_DISABLE", "1", dict(params, rates=False))


def _is_right(trial):
    return trial.get("wrong") == 0 and "stages" not in trial


def _names(text, words):
    return any(word in text for word in words)


def _start(trial, params, number, seconds, **settings):
    """The Ranks, once all of them are over; what they logged is evidence."""
    trial["ranks"] = number
    before = set(glob.glob(_SEGMENTS))
    with tempfile.TemporaryDirectory(prefix="nccl-") as folder:
        logs = [os.path.join(folder, "log.%d" % rank) for rank in range(number)]
        found = ranks.run(
            dict(params, folder=folder, until=seconds),
            number,
            seconds,
            lambda rank: dict(nccl_log.ENVIRON, NCCL_DEBUG_FILE=logs[rank], **settings),
            patience=_PATIENCE,
        )
        text = "".join(_content(path) for path in logs) + "".join(one.worker.log for one in found)
    trial.update(nccl_log.read(text))
    _remove(set(glob.glob(_SEGMENTS)) - before)
    return found


def _content(path):
    try:
        return files.read(path, 8 << 20).decode("utf-8", "replace")
    except OSError:
        return ""


def _remove(segments):
    """Shared memory that killed ranks left behind: files that no process of this user has mapped."""
    for maps in glob.glob("/proc/[0-9]*/maps") if segments else ():
        text = _content(maps)
        segments = {path for path in segments if path not in text}
    for path in segments:
        with contextlib.suppress(OSError):
            if os.stat(path).st_uid == os.getuid():
                os.unlink(path)


def _judge(trial, found, seconds):
    """Sums and rates; raises RuntimeError where a rank did not come to its end."""
    wrong = [
        (one.number, kind, count)
        for one in found
        for kind, count in sorted((one.answer or {"wrong": {}})["wrong"].items())
    ]
    if wrong:
        trial["compared"] = len(wrong) * nccl_rank.COUNT
        trial["wrong"] = sum(count for _number, _kind, count in wrong)
        lines = ["rank %d, %s: %d of %d" % (*one, nccl_rank.COUNT) for one in wrong if one[2]]
        trial["wrong_in"] = lines or None
    lacking = [one for one in found if one.answer is None]
    if lacking:
        stages = [(one.number, (one.worker.stage or ("start",))[0]) for one in lacking]
        trial["stages"] = ["rank %d: %s" % one for one in stages]
        reason = _failed(found)
        trial["hung"] = None if reason else True
        raise RuntimeError(reason or "no end within %g s" % seconds)
    for size, best in _slowest_rank([one.answer["seconds"] for one in found]):
        rate = size / best * 2 * (len(found) - 1) / len(found)  # bus bandwidth
        trial["bus_%d_mib" % (size >> 20)] = round(rate / 1e9, 2)


def _slowest_rank(ranks):
    """[(bytes, seconds)]: the slowest rank in the best round. ranks: of each, {bytes: [seconds]}."""
    for size in sorted(ranks[0], key=int):
        if all(size in one for one in ranks):
            best = min(max(of_all) for of_all in zip(*[one[size] for one in ranks]))
            if best > 0:
                yield int(size), best


def _failed(found):
    """The first reason of a rank that failed by itself; "" where those without an answer just hung."""
    for one in found:
        if one.answer is None and not one.stopped and nccl_rank.HANGS not in one.reason:
            return "rank %d: %s" % (one.number, one.reason)
    return ""
