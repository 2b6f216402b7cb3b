"""What ranks of NCCL tell while they work, a line each on standard error, for who waits for them."""

import contextlib
import glob
import os
import time

STAGE = "@nccl-stage "
SEGMENT = "@nccl-segment "
SEGMENTS = "/dev/shm/nccl-"
HANGS = "no end of"
COUNT = 1 << 20  # elements of each type that are summed


def watch_segments():
    while True:
        time.sleep(0.5)
        tell_segments()


def tell_segments():
    """Tell which of NCCL's files in /dev/shm this process has mapped."""
    if not glob.glob(SEGMENTS + "*"):
        return
    with contextlib.suppress(OSError), open("/proc/self/maps", errors="replace") as file:
        lines = [line for line in file if SEGMENTS in line and "(deleted)" not in line]
        for path in sorted({line[line.index(SEGMENTS) :].strip() for line in lines}):
            _write(SEGMENT + path)


def say(stage, told=""):
    _write("%s%s %s" % (STAGE, stage, told))


def _write(line):
    os.write(2, ("\n%s\n" % line).encode("utf-8"))


def content(path):
    try:
        with open(path, "rb") as file:
            return file.read(8 << 20).decode("utf-8", "replace")
    except OSError:
        return ""
