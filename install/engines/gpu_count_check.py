"""The check that the GPUs which were asked for are really inside: a few lines of POSIX sh.

It runs in the same start as the command, in whatever shell the image has: podman before 5.0 accepts --gpus
and does nothing, a CDI specification may name fewer GPUs than the machine has, a hook may have been skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

CODE = 125  # as engines have it for their own failures

# Where the loader finds libcuda without its cache, and where engines put it. The image's own compat copy
# counts where LD_LIBRARY_PATH or the cache lead to it, and nowhere else.
_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib64",
    "/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/usr/lib/wsl/drivers/*",
    "/.singularity.d/libs",
)

# In a subshell: the command's environment stays as it was given.
_SCRIPT = """\
(
want=@WANT@ have=0
for node in /dev/nvidia[0-9]*; do
  if [ -c "$node" ]; then have=$((have + 1)); fi
done
if [ -c /dev/dxg ]; then have=$want
elif [ "$have" -ge "$want" ] && [ ! -c /dev/nvidiactl ]; then
  echo "envcheck: the GPUs' device nodes arrived in the container, and /dev/nvidiactl did not;" \\
    "the command was not started" >&2
  exit 1
fi
if [ "$have" -lt "$want" ]; then
  echo "envcheck: $have of $want GPUs arrived in the container (device nodes in /dev);" \
    "the command was not started" >&2
  exit 1
fi
IFS=:
for folder in ${LD_LIBRARY_PATH-}; do
  if [ -e "$folder/libcuda.so.1" ]; then exit 0; fi
done
unset IFS
for folder in @FOLDERS@; do
  if [ -e "$folder/libcuda.so.1" ]; then exit 0; fi
done
for tool in ldconfig /sbin/ldconfig; do
  case "$("$tool" -p 2>/dev/null)" in *libcuda.so.1*) exit 0 ;; esac
done
echo "envcheck: the GPUs' device nodes arrived in the container, and the driver's libcuda.so.1" \
  "did not; the command was not started" >&2
exit 1
) || exit @CODE@
exec "$@"
"""


def script(gpus: int) -> str:
    """The text for `sh -c`; the command's words are its arguments from "$1" on.

    gpus: how many must arrive (device nodes).
    """
    text = _SCRIPT.replace("@WANT@", str(int(gpus))).replace("@CODE@", str(CODE))
    return text.replace("@FOLDERS@", " ".join(_FOLDERS))


def checked(gpus: int, command: Sequence[str]) -> list[str]:
    """The command with the check in front: 125 and one sentence on stderr where GPUs are missing."""
    return ["sh", "-c", script(gpus), "envcheck", *command]
