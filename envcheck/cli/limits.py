"""What is said where the system gives this process no more files or memory."""

from __future__ import annotations

import errno
import resource

_MIB = 1 << 20


def explained(error: BaseException) -> tuple[str, str] | None:
    """(sentence, hint) of an error that a limit is to blame for; None for any other."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EMFILE, errno.ENFILE):
        files = _limit(resource.RLIMIT_NOFILE)
        if number == errno.ENFILE or files is None:
            return "this machine has too many open files", "close other programs, and try again"
        return (
            f"envcheck may open only {files} files at once, and needs more",
            "raise the limit for this shell: ulimit -n 1024",
        )
    no_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    no_mapping = isinstance(error, ImportError) and "failed to map" in str(error)
    if isinstance(error, MemoryError) or number == errno.ENOMEM or no_thread or no_mapping:
        memory = _limit(resource.RLIMIT_AS)
        if memory is None:
            return (
                "there is not enough memory left" + ", or not one thread" * no_thread,
                "close other programs, and try again",
            )
        return (
            f"envcheck may use only {memory // _MIB} MiB of memory, and needs more",
            "lift the limit for this shell: ulimit -v unlimited",
        )
    return None


def _limit(what: int) -> int | None:
    soft = resource.getrlimit(what)[0]
    return None if soft == resource.RLIM_INFINITY else soft
