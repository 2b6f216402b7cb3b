"""The check that the GPUs which were asked for are really inside: a few lines of POSIX sh.

It runs in the same start as the command, in whatever shell the image has: podman before 5.0 accepts --gpus
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


def checked(gpus: int, command: Sequence[str]) -> list[str]:
    """The command with the check in front: 125 and one sentence on stderr where GPUs (device nodes) are
    missing."""
    text = _SCRIPT.replace("@WANT@", str(int(gpus))).replace("@CODE@", str(CODE))
    return ["sh", "-c", text, "envcheck", *command]
