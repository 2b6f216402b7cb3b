"""Horovod's ranks on this machine, without ssh: by a rendezvous on the loopback, or by mpirun."""

import functools
import http.server
import os
import re
import shutil
import socketserver
import tempfile
import threading
import time

from .... import worker
from ....runtime import process
from ....worker import messages
from ...running import ranks, records
from ...running.work import MODULE
from ..transfers import by_size
from . import loopback

DEADLINE = 60.0  # an mpirun after that has its imports to do
_SECONDS = 40.0
_PATIENCE = 3.0
_MOST = 8
_TIMELINE = "timeline.json"
_OPERATIONS = re.compile(r"\b[A-Z]{2,8}_[A-Z_]{0,20}?ALLREDUCE\b")
_TIMELINE_SIZE = 4 << 20  # bytes that are read
_ROUNDS = 5  # of one size
_ON_CPU = 16  # MiB at most; on a GPU an eighth of what is free, too
_ENOUGH = 0.1  # seconds of one all-reduce, after which no larger one is begun
_BUILT = ("nccl", "mpi", "gloo", "cuda")
# Where mpirun runs as root, more ranks than cores, and none but those of this machine.
_OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_plm": "isolated",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def run(params, tell):
    """What ``run`` of a system's file does: all ranks' work, and each one's alone."""
    loopback.need()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    number = min(_MOST, len(visible)) if params["device"] == "gpu" else 2
    with tempfile.TemporaryDirectory() as folder:
        answers = []
        with tell.trial("ranks") as trial:
            trial["ranks"] = number
            answers += _by_gloo(params, number, folder, tell)
            _put_built(trial, answers[0])
            trial["controller"] = "gloo"
            if not answers[0]["gloo"]:
                trial["controller"] = "mpi"
                answers[:] = _by_mpi(params, number, folder)
            _put(trial, answers)
            trial["operations"] = operations(os.path.join(folder, _TIMELINE))
        if params.get("sweep"):
            with tell.trial("all-reduce" + by_size.SUFFIX) as trial:
                trial["ranks"] = number
                by_size.of_ranks(trial, [one.get("by_size", {}) for one in answers])
        with tell.trial("one rank", control=True) as trial:
            if not answers or "alone" not in answers[0]:
                raise RuntimeError("no rank has come so far")
            for name in ("size", "sum"):
                trial[name] = answers[0]["alone"][name]


def _put_built(trial, answer):
    for name in ("version",) + _BUILT:
        trial[name] = answer[name]


def _put(trial, answers):
    """What the ranks saw: sums and weights must be those of all of them."""
    first = answers[0]
    for name in ("size", "sum", "expected", "broadcast", "step", "gpu"):
        trial[name] = first[name]
    trial["numbers"] = sorted(str(one["rank"]) for one in answers)
    trial["wrong"] = sum(one["sum"] != one["expected"] for one in answers)
    trial["weights"] = sorted({str(one["weight"]) for one in answers})


def operations(path):
    """What summed, by the timeline's own names: ["NCCL_ALLREDUCE"]."""
    try:
        with open(path, "rb") as timeline:
            text = timeline.read(_TIMELINE_SIZE).decode("utf-8", "replace")
    except OSError:
        return []
    return sorted(set(_OPERATIONS.findall(text)))


def _by_gloo(params, number, folder, tell):
    with Rendezvous() as port:

        def environ(rank):
            timeline = os.path.join(folder, _TIMELINE)
            return dict(gloo_environ(rank, number, port, _SECONDS), HOROVOD_TIMELINE=timeline)

        found = ranks.run(params, number, _SECONDS, environ, patience=_PATIENCE, tell=tell)
    return ranks.answers(found)


def gloo_environ(rank, number, port, seconds):
    """The variables by which a rank finds the others. port: of the Rendezvous. seconds: it waits so long."""
    return {
        "HOROVOD_RANK": str(rank),
        "HOROVOD_SIZE": str(number),
        "HOROVOD_LOCAL_RANK": str(rank),
        "HOROVOD_LOCAL_SIZE": str(number),
        "HOROVOD_CROSS_RANK": "0",
        "HOROVOD_CROSS_SIZE": "1",
        "HOROVOD_HOSTNAME": loopback.HOST,
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": loopback.HOST,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_GLOO_IFACE": "lo",
        "HOROVOD_GLOO_TIMEOUT_SECONDS": "%d" % seconds,
    }


def _by_mpi(params, number, folder):
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise RuntimeError("it is built with MPI alone, and there is no mpirun in PATH")
    own = dict(params, rank=-1, ranks=number, mpi=True)
    argv = [mpirun, "-np", str(number)] + worker.command(ranks.python(), MODULE, own)
    env = dict(os.environ, HOROVOD_TIMELINE=os.path.join(folder, _TIMELINE), **_OPEN_MPI)
    result = process.run(argv, _SECONDS, env=env, own_session=False)
    answers = []
    reasons = []
    for message in messages.read(result.stdout.split(b"\n")):  # of all ranks
        if message.get("of") == records.RANK:
            answers.append(message["result"])
        elif isinstance(message.get("done"), dict) and message["done"].get("reason"):
            reasons.append(messages.one_line(message["done"]["reason"]))
    if len(answers) != number:
        last = [line.strip() for line in result.tail(1, 400).splitlines() if line.strip()]
        words = "%d of %d ranks answered, and mpirun %s" % (
            len(answers),
            number,
            result.describe(),
        )
        raise RuntimeError(": ".join([words] + (reasons[:1] or last)))
    return sorted(answers, key=lambda one: one["rank"])


def rank(name, params, work, prepared):
    """What ``rank`` of a file does. work(hvd, local rank or None): {"sum", "gpu", "broadcast", "weight"}.

    prepared(hvd, local rank or None, numbers, value): a function that sums so many float32 of that value over
    all ranks, waits for it, and returns the first sum.
    """
    import importlib

    hvd = importlib.import_module(name)
    answer = {"version": str(getattr(importlib.import_module("horovod"), "__version__", ""))}
    for one in _BUILT:
        answer[one] = _built(hvd, one)
    if not answer["gloo"] and not params.get("mpi"):
        return answer
    hvd.init()
    on_gpu = params["device"] == "gpu"
    size = hvd.size()
    answer.update(rank=hvd.rank(), size=size, expected=float(sum(range(1, size + 1))))
    answer.update(work(hvd, hvd.local_rank() if on_gpu else None))
    if params.get("sweep"):
        local = hvd.local_rank() if on_gpu else None
        most = min((params.get("memory_mib") or 8 * _ON_CPU) // 8, _ON_CPU if not on_gpu else 1024)
        answer["by_size"] = _by_size(functools.partial(prepared, hvd, local), most << 20, size)
    answer["step"] = 1.0 - (size + 1) / 2.0  # from rank 0's weight, 1, by the mean of all gradients
    hvd.shutdown()  # which writes the timeline
    if not params.get("mpi"):
        for variable in list(os.environ):
            if variable.startswith("HOROVOD_"):
                del os.environ[variable]
        hvd.init()
        answer["alone"] = {"size": hvd.size(), "sum": work(hvd, None, whole=False)["sum"]}
    else:
        answer["alone"] = {"size": 1, "sum": float(answer["rank"] + 1)}
    return answer


def _by_size(prepared, most, ranks_):
    """{bytes: [seconds of one all-reduce, as this rank's host waits for it, a round each]}."""
    found = {}
    for size in by_size.SIZES:
        if size > most:
            break
        once = prepared(size // 4, 1.0)
        once()
        times = []
        for _ in range(_ROUNDS):
            began = time.monotonic()
            once()
            times.append(time.monotonic() - began)
        found[size] = times
        # All go on, or none: by a sum that all of them have.
        if prepared(1, min(times))() > _ENOUGH * ranks_:
            break
    return found


def _built(hvd, name):
    ask = getattr(hvd, name + "_built", None)
    return bool(ask and ask())


class Rendezvous(object):
    """Where ranks find each other: what one puts under /SCOPE/KEY, the others get."""

    def __enter__(self):
        self._server = _Server((loopback.HOST, 0), _Handler)
        self._server.kept = {}
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self._server.server_address[1]

    def __exit__(self, *_error):
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # HTTPServer's looks up the host's name
        self.server_name, self.server_port = self.server_address


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = 5

    def do_GET(self):
        self._answer(self.server.kept.get(self.path))

    def do_PUT(self):
        length = min(int(self.headers.get("Content-Length") or 0), 1 << 20)
        self.server.kept[self.path] = self.rfile.read(length)
        self._answer(b"")

    def do_DELETE(self):
        self.server.kept.pop(self.path, None)
        self._answer(b"")

    def _answer(self, content):
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_words):
        pass
