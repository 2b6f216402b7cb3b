"""What becomes of a dead process's children: adopted and ended here, or tied to it from the start."""

import os
import signal
import time

KILL_WAIT = 0.5  # seconds that a killed process may take to die before it counts as stuck
EXIT_WAIT = 5.0  # the same where it is dying: giving back the memory of several GPUs takes a while
_PF_EXITING = 0x4  # linux/sched.h
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt():
    """Make this process the parent of descendants that lose theirs, so that none can slip away."""
    prctl = _prctl()
    if prctl is not None:  # else only process groups are cleaned up
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """The process ids of this process's children, whoever started them."""
    listed = _listed_children()
    return _children_of(os.getpid()) if listed is None else listed


def sweep(spare=()):
    """Kill adopted orphans, and theirs.

    A list of those that would not die: (its session, ``stuck`` of a Result). spare: process ids of
    children to be left alone, such as those that this process had before it became this program.
    """
    began = time.monotonic()
    while True:
        orphans = [pid for pid in children() if pid not in spare]
        for pid in orphans:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass
        if not orphans:
            return []
        if all(is_stuck(pid, time.monotonic() - began) for pid in orphans):
            return [(_session(pid), describe(pid, _command(pid))) for pid in orphans]
        time.sleep(0.005)


def is_stuck(pid, waited):
    """Whether a process that was killed ``waited`` seconds ago will not die any more."""
    if waited < KILL_WAIT:
        return False
    fields = _stat(pid)
    dying = fields[:1] == ["Z"] or (len(fields) > 6 and bool(int(fields[6]) & _PF_EXITING))
    return not dying or waited >= EXIT_WAIT


def is_shared_ssh(pid):
    """Whether it is a connection that ssh keeps in the background for others (ControlPersist)."""
    return " ".join(_command(pid)).rstrip().startswith("ssh: ")


def describe(pid, argv):
    """What a Result's ``stuck`` tells of a process."""
    state = _stat(pid)[:1]
    words = [word if "\n" not in word else word.split("\n")[0] + "..." for word in argv]
    return {
        "pid": pid,
        "command": " ".join(words).strip()[:200],
        "state": state[0] if state else "",
    }


def _prctl():
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except Exception:  # none in this Python, or a module of the user's in its place
        return None


def tie(parent):
    """What a child is to call first, in order to die with ``parent``; None where that cannot be had."""
    prctl = _prctl()
    if prctl is None:
        return None

    def bind():
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it was too late for the signal
            os._exit(1)

    return bind


def _listed_children():
    """This process's children as the kernel lists them; None where it was built without that."""
    found = []
    try:
        for thread in os.listdir("/proc/self/task"):
            with open("/proc/self/task/%s/children" % thread) as listed:
                found += [int(pid) for pid in listed.read().split()]
    except (OSError, ValueError):
        return None
    return found


def _children_of(parent):
    found = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if name.isdecimal() and _stat(int(name))[1:2] == [str(parent)]:
            found.append(int(name))
    return found


def _session(pid):
    """The process id of the leader of its session, 0 where that is unknown."""
    fields = _stat(pid)
    return int(fields[3]) if len(fields) > 3 else 0


def _stat(pid):
    """The fields of /proc/PID/stat from the state on, as words; [] where there is no such process."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as stat:
            return stat.read().rpartition(b")")[2].decode("ascii", "replace").split()
    except OSError:
        return []


def _command(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as cmdline:
            return cmdline.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return ["?"]
