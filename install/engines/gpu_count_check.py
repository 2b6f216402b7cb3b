"""The check that the GPUs which were asked for are really inside: a few lines of POSIX sh, or of Python.

It runs in the same start as the command, in whatever shell the image has, or in its Python where it has no
shell: podman before 5.0 accepts --gpus
and does nothing, a CDI specification may name fewer GPUs than the machine has, a hook may have been skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

CODE = 125  # as engines have it for their own failures

# In a subshell: the command's environment stays as it was given. The files are where the loader finds libcuda
# without its cache, and where engines put it; the image's own compat copy counts where LD_LIBRARY_PATH or the
# cache lead to it, and nowhere else.
_SCRIPT = """\
(
want=@WANT@ have=0
say() {
  echo "envcheck: $1; the command was not started" >&2
  exit 1
}
for node in /dev/nvidia[0-9]*; do
  if [ -c "$node" ]; then have=$((have + 1)); fi
done
if [ -c /dev/dxg ]; then have=$want
elif [ "$have" -lt "$want" ]; then
  say "$have of $want GPUs arrived in the container (device nodes in /dev)"
elif [ ! -c /dev/nvidiactl ]; then
  say "the GPUs' device nodes arrived in the container, and /dev/nvidiactl did not"
fi
IFS=:
for folder in ${LD_LIBRARY_PATH-}; do
  if [ -e "$folder/libcuda.so.1" ]; then exit 0; fi
done
unset IFS
for folder in /lib* /lib/*-linux-gnu /usr/lib* /usr/lib/*-linux-gnu /usr/lib/wsl/lib \\
  /usr/lib/wsl/drivers/* /usr/local/nvidia/lib* /.singularity.d/libs; do
  if [ -e "$folder/libcuda.so.1" ]; then exit 0; fi
done
for tool in ldconfig /sbin/ldconfig; do
  case "$("$tool" -p 2>/dev/null)" in *libcuda.so.1*) exit 0 ;; esac
done
say "the GPUs' device nodes arrived in the container, and the driver's libcuda.so.1 did not"
) || exit @CODE@
exec "$@"
"""


# The same for an image without sh. Its loader says itself whether libcuda is there.
_PYTHON = """\
import ctypes, glob, os, stat, sys
def there(path):
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)
    except OSError:
        return False
def end(code, text):
    sys.stderr.write("envcheck: %s\\n" % text)
    sys.exit(code)
have = sum(map(there, glob.glob("/dev/nvidia[0-9]*")))
why = ""
if not there("/dev/dxg") and have < @WANT@:
    why = "%d of @WANT@ GPUs arrived in the container (device nodes in /dev)" % have
elif not there("/dev/dxg") and not there("/dev/nvidiactl"):
    why = "the GPUs' device nodes arrived in the container, and /dev/nvidiactl did not"
else:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        why = "the GPUs' device nodes arrived in the container, and the driver's libcuda.so.1 did not"
if why:
    end(@CODE@, why + "; the command was not started")
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except FileNotFoundError:
    end(127, sys.argv[1] + ": there is no such command in the image")
except OSError as error:
    end(126, "%s: %s" % (sys.argv[1], error.strerror))
"""


def checked(gpus: int, command: Sequence[str], *, shell: bool = True) -> list[str]:
    """The command with the check in front: 125 and one sentence on stderr where GPUs (device nodes) are
    missing. shell: the image has sh; else it is its Python's, which the doctor has been in."""
    if not shell:
        text = _PYTHON.replace("@WANT@", str(int(gpus))).replace("@CODE@", str(CODE))
        return ["python3", "-I", "-S", "-c", text, *command]
    text = _SCRIPT.replace("@WANT@", str(int(gpus))).replace("@CODE@", str(CODE))
    return ["sh", "-c", text, "envcheck", *command]
