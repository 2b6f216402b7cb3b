"""Runs a command in a network of its own, in which there is loopback and no route to anywhere."""

from __future__ import annotations

import os
import sys

import pytest
from processes import ran

# Root keeps the user that it is: an engine's storage is of no use to another.
ALONE = [
    "unshare",
    "-n" if os.geteuid() == 0 else "-rn",
    sys.executable,
    "-c",
    "import fcntl, os, socket, struct, sys\n"
    "with socket.socket() as s:\n"
    "    fcntl.ioctl(s, 0x8914, struct.pack('16sh', b'lo', 0x1 | 0x40))\n"  # SIOCSIFFLAGS: up
    "os.execvp(sys.argv[1], sys.argv[1:])",
]


@pytest.fixture(scope="session")
def no_network() -> None:
    if ran([*ALONE, "true"]).returncode:
        pytest.skip("no network namespaces for this user")
