"""What goes wrong with the store and with fetching into it."""

from __future__ import annotations

import errno
import math
import shutil
from pathlib import Path

from ...exit_codes import EnvcheckError, ExitCode

_FULL = (errno.ENOSPC, errno.EDQUOT)


class FetchError(EnvcheckError):
    """A file that could not be fetched or kept; whoever knows what else was touched wraps it."""

    exit_code = ExitCode.PUT_BACK

    @property
    def sentence(self) -> str:
        return str(self)


def of_disk(error: OSError, folder: Path, what: str, missing: int | None = None) -> FetchError:
    """The error of a write. missing: bytes that are still to be written there, as far as is known."""
    if error.errno not in _FULL:
        reason = error.strerror or str(error)
        return FetchError(
            f"{what} cannot be written to {folder}: {reason}",
            "XDG_CACHE_HOME names another place for the store",
        )
    needed = ""
    if missing is not None:
        lacking = max(0, missing - _free(folder))
        needed = f": {math.ceil(lacking / (1 << 20))} MiB more are needed there"
    why = "the quota is used up" if error.errno == errno.EDQUOT else "the disk is full"
    return FetchError(
        f"{what} does not fit into {folder}, {why}{needed}",
        "make room (envcheck prune removes what is not used), or name another place in"
        " XDG_CACHE_HOME; downloads are kept, and the next run continues from there",
    )


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0
