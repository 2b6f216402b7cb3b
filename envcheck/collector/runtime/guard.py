"""Two processes that watch each other: one does the work, the other cleans up should it be killed."""

import os
import signal
import sys
import traceback

from . import orphans
from .process import keep_statuses, signal_name

_LOOK = 0.2  # seconds between two looks at whether whoever started this is still there


def run(work, parent=None):
    """The exit status of ``work(guard, unblock)``, which runs in a child.

    guard: this process's id. unblock: to be called once handlers may run. The child gets this process's
    SIGTERM, SIGINT and SIGHUP, and a SIGTERM when this process's parent is no longer ``parent``.
    """
    keep_statuses()
    watched = {signal.SIGCHLD, signal.SIGTERM} | {
        number
        for number in (signal.SIGINT, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN  # nohup, "&"
    }
    # Children that came along with the process id (`server & exec python3 ...`) are none of ours.
    not_ours = set(orphans.children())
    orphans.adopt()
    guard = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, watched)

    def unblock():
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        pid = os.fork()
    except OSError:  # no room for another process
        return work(os.getppid(), unblock)
    if pid == 0:
        _work(work, guard, unblock)
    status = _attend(pid, watched, parent)
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    orphans.sweep(spare=not_ours)
    number = os.WTERMSIG(status)
    sys.stderr.write("envcheck-collector: died by signal %d (%s)\n" % (number, signal_name(number)))
    return 128 + number


def _work(work, guard, unblock):
    """In the child, which never comes back from here."""
    code = 1
    try:
        os.setsid()  # what ends a whole process group must not end both
        orphans.adopt()
        code = work(guard, unblock)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stderr.flush()
        finally:
            os._exit(code)


def _attend(pid, watched, parent):
    """The wait status of the child, to which the signals are passed on."""
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        came = signal.sigtimedwait(watched, _LOOK)
        if came is not None and came.si_signo != signal.SIGCHLD:
            os.kill(pid, came.si_signo)
        elif parent and os.getppid() != parent:
            os.kill(pid, signal.SIGTERM)
