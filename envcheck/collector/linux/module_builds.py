"""Where the driver's module could not be built: what DKMS, akmods or NVIDIA's installer wrote."""

import glob
import os
import re

from .. import files

# Where a build succeeds, the first is moved to the second's place, beside the module.
DKMS_LOGS = "/var/lib/dkms/nvidia*/*/build/make.log"
DKMS_KEPT = "/var/lib/dkms/nvidia*/*/*/*/log/make.log"
AKMODS_LOGS = "/var/cache/akmods/nvidia*/*.failed.log"
INSTALLER_LOG = "/var/log/nvidia-installer.log"
LIMIT = 256 << 10  # bytes, of the start and of the end: reasons stand in either
LOGS = 8  # files
LINES = 24
LINE = 300  # letters

# Lines that say why; a compiler's "error" is the user's language's, its option in brackets is not.
TELLING = re.compile(
    r"version check|compiler used to|does not match the compiler|^(gcc|clang|cc|x86_64-\S+) (version|\()"
    r"|unrecognized command.line|unknown argument|error:|\[-Werror|ERROR|FATAL|Error!|\*\*\* \["
    r"|No such file|not found|cannot be found|unable to find|No space left|Killed|implicit declaration"
    r"|kernel was built by|is needed by |[Uu]nmet build dep"
    r"|has no member|too (few|many) arguments|incompatible|GPL-only|PREEMPT_RT"
)
KERNEL = re.compile(
    r"for kernel:? (\S+)|--kernel-name=(\S+)|/lib/modules/([^/'\"\s]+)/(?:build|source)"
)


def build_logs(context):
    """The logs of builds that failed, newest first."""
    found = []
    for kind, pattern in (
        ("dkms", DKMS_LOGS),
        ("dkms", DKMS_KEPT),
        ("akmods", AKMODS_LOGS),
        ("installer", INSTALLER_LOG),
    ):
        for path in glob.glob(context.path(pattern)):
            if os.path.isdir(os.path.join(os.path.dirname(path), os.pardir, "module")):
                continue  # this one succeeded
            try:
                found.append((os.stat(path).st_mtime, kind, path))
            except OSError:
                continue
    logs = [_log(context, kind, path) for _time, kind, path in sorted(found, reverse=True)[:LOGS]]
    return [log for log in logs if log]


def _log(context, kind, path):
    shown = path[len(context.root.rstrip("/")) :]
    try:
        text = _ends(path)
    except OSError:
        return None  # root's own: missing modules show what could not be built
    if kind == "installer" and not re.search(r"^ERROR", text, re.M):
        return None
    named = os.path.basename(path).partition("-for-")[2].partition(".failed.log")[0]
    match = KERNEL.search(text)
    kernel = named or ("" if match is None else next(filter(None, match.groups())))
    log = {"path": shown, "lines": telling_lines(text)}
    if kernel:
        log["kernel"] = kernel
    return log


def _ends(path):
    """The start and the end of a text file."""
    with files.open_regular(path) as file:
        text = file.read(LIMIT)
        size = os.fstat(file.fileno()).st_size
        if size > LIMIT:
            file.seek(max(LIMIT, size - LIMIT))
            text += b"\n" + file.read(LIMIT)
    return text.decode("utf-8", "replace")


def telling_lines(text):
    """The lines that may hold the reason, the first and the last of them, else the last lines."""
    lines = [line.strip()[:LINE] for line in text.splitlines() if line.strip()]
    telling = list(dict.fromkeys(line for line in lines if TELLING.search(line)))
    if len(telling) > LINES:
        telling = telling[: LINES // 2] + telling[-LINES // 2 :]
    return telling or lines[-4:]
