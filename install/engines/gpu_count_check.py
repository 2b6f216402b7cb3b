"""Checks in the container, before the command starts, that the GPUs are there.

podman before 5.0 accepts --gpus and does nothing, a CDI specification may name fewer GPUs than the machine
has, a hook may have been skipped. The check runs in the image's Python, which the doctor has used before: an
image without one is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence

CODE = 125  # as engines have it for their own failures

_SCRIPT = """\
import ctypes, glob, os, stat, sys
def is_device(path):
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)
    except OSError:
        return False
def end(code, text):
    sys.stderr.write("envcheck: %s\\n" % text)
    sys.exit(code)
have = sum(map(is_device, glob.glob("/dev/nvidia[0-9]*")))
why = ""
if not is_device("/dev/dxg") and have < @WANT@:
    why = "%d of @WANT@ GPUs are in the container (device nodes in /dev)" % have
elif not is_device("/dev/dxg") and not is_device("/dev/nvidiactl"):
    why = "the GPUs' device nodes are in the container, but /dev/nvidiactl is not"
else:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        if "No such file" in str(error):
            why = "the GPUs' device nodes are in the container, but the driver's libcuda.so.1 is not"
if why:
    end(@CODE@, why + "; the command was not started")
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except FileNotFoundError:
    end(127, sys.argv[1] + ": there is no such command in the image")
except OSError as error:
    end(126, "%s: %s" % (sys.argv[1], error.strerror))
"""


def checked(gpus: int, command: Sequence[str]) -> list[str]:
    """The command with the check in front. gpus: device nodes that have to be there."""
    script = _SCRIPT.replace("@WANT@", str(int(gpus))).replace("@CODE@", str(CODE))
    return ["python3", "-I", "-S", "-c", script, *command]
