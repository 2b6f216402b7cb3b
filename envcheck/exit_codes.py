"""The exit codes, and the exceptions that stand for them: the only place that knows the numbers."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    HEALTHY = 0  # or done
    PROBLEMS = 1  # problems were found
    USAGE = 2  # wrong usage or unreadable input
    CANNOT = 3  # this machine cannot: refused before anything was touched
    COULD_NOT_LOOK = 4
    PUT_BACK = 5  # failed, and put back as it was
    NOT_PUT_BACK = 6  # failed, and could not be put back
    # Of `envcheck run` and `envcheck shell`, whose other codes are the command's own; as engines have them:
    NOT_STARTED = 125
    NOT_EXECUTABLE = 126
    NOT_FOUND = 127
    INTERRUPTED = 130


class EnvcheckError(Exception):
    """An error that is shown to the user in one sentence: what, where, and what to do."""

    exit_code: ExitCode

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.hint = hint


class UsageError(EnvcheckError):
    exit_code = ExitCode.USAGE


class CouldNotLook(EnvcheckError):
    exit_code = ExitCode.COULD_NOT_LOOK


class Cannot(EnvcheckError):
    """This machine cannot: refused before anything was touched."""

    exit_code = ExitCode.CANNOT


class PutBack(EnvcheckError):
    """It failed on the way, and everything is as it was."""

    exit_code = ExitCode.PUT_BACK


class NotPutBack(EnvcheckError):
    """It failed, and something is left that the sentence names."""

    exit_code = ExitCode.NOT_PUT_BACK


class NotStarted(EnvcheckError):
    """`envcheck run` did not get as far as the command."""

    exit_code = ExitCode.NOT_STARTED


class NotExecutable(EnvcheckError):
    """The command is there, and cannot be executed."""

    exit_code = ExitCode.NOT_EXECUTABLE


class NotFound(EnvcheckError):
    """The command is not there."""

    exit_code = ExitCode.NOT_FOUND
