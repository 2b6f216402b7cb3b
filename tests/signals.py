"""The tests' own signals, whoever started them: with nohup, "&" or a CI system, some are ignored.

What is ignored stays so in every process that is started, and then no test can interrupt one.
"""

from __future__ import annotations

import os
import signal

_OUTLIVES = "ENVCHECK_TESTS_OUTLIVE_HANGUP"  # for xdist's workers, which start with the default


def take_back() -> None:
    """Make SIGINT, SIGHUP and the rest reach the processes that tests start.

    A handler is not inherited by a program, so that the tests' own process still outlives the hangup that
    nohup protects it from.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        os.environ[_OUTLIVES] = "1"
    if os.environ.get(_OUTLIVES):
        signal.signal(signal.SIGHUP, lambda _number, _frame: None)
