"""Calls that may hang in the kernel (a statvfs on a dead NFS mount), each in a forked child."""

import json
import os
import select
import signal
import time

from ..facts import from_error

REAP_WAIT = 0.1  # seconds that killed children may take to die; then they are left behind


def call_all(functions, deadline):
    """Call them side by side, each in a child of its own, and come back after ``deadline`` seconds.

    What a function returns must be JSON. A list of (outcome, value) in the functions' order: ("ok",
    what it returned), ("error", the unavailable fact that its exception stands for) or
    ("timeout", None). A child stuck in the kernel is left behind: whoever started this process
    sweeps it up and names it.
    """
    children = []
    for function in functions:
        try:
            children.append(_start(function))
        except OSError as error:  # no room for another process or pipe
            children.append((None, error))
    started = [child for child in children if child[0] is not None]
    answers = _listen(started, deadline)
    for _pid, pipe in started:
        os.close(pipe)
    _reap([pid for pid, _pipe in started])
    return [
        ("error", from_error(pipe)) if pid is None else _outcome(answers[pipe])
        for pid, pipe in children
    ]


def _start(function):
    reader, writer = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        raise
    if pid == 0:
        _child(function, writer)
    os.close(writer)
    return pid, reader


def _child(function, writer):
    try:
        if writer > 2:
            os.closerange(0, 3)  # stuck, it would keep whoever reads them waiting for their end
        try:
            answer = ["ok", function()]
        except Exception as error:
            answer = ["error", from_error(error)]
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(json.dumps(answer).encode("ascii"))
    finally:
        os._exit(0)  # nothing of the parent's (its buffers, its exit handlers) is the child's


def _listen(children, deadline):
    """What each pipe said, or None for one that had not come to its end at the deadline."""
    end = time.monotonic() + deadline
    heard = {pipe: b"" for _pid, pipe in children}
    waiting = set(heard)
    while waiting:
        left = end - time.monotonic()
        ready = select.select(list(waiting), [], [], left)[0] if left > 0 else []
        if not ready:
            break
        for pipe in ready:
            chunk = os.read(pipe, 1 << 16)
            heard[pipe] += chunk
            if not chunk:
                waiting.discard(pipe)
    return {pipe: None if pipe in waiting else said for pipe, said in heard.items()}


def _reap(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    end = time.monotonic() + REAP_WAIT
    left = list(pids)
    while left:
        left = [pid for pid in left if _runs(pid)]
        if not left or time.monotonic() > end:
            return
        time.sleep(0.001)


def _runs(pid):
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except OSError:
        return False


def _outcome(said):
    if said is None:
        return "timeout", None
    try:
        outcome, value = json.loads(said.decode("ascii"))
    except ValueError:
        return "error", from_error(RuntimeError("the child that looked died"))
    return outcome, value
