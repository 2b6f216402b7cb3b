"""Ctrl-C and the signals that end a process, in a transaction: they undo it, and the undoing is not cut."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Terminated(SystemExit):
    """SIGTERM or SIGHUP came; ends the process with the shell's code for it, 128 + the number."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number

    def __str__(self) -> str:
        return f"ended by {signal.Signals(self.number).name}"


@contextmanager
def ending_raises() -> Iterator[None]:
    """In this block SIGTERM and SIGHUP raise Terminated where they would have ended the process.

    Where they are ignored (nohup) or handled elsewhere, that stays.
    """
    before: dict[signal.Signals, Any] = {}
    try:
        for number in _ENDING if _is_main_thread() else ():
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, _raise)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[None]:
    """In this block neither Ctrl-C nor the signals that end a process count.

    They do at its end, unless that is an exception, which says enough. Handlers are exchanged, for a
    mask would be the main thread's alone, and the kernel would hand the signal to another one.
    """
    came: list[int] = []
    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, *_ENDING) if _is_main_thread() else ():
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated(number)
