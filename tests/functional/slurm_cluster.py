"""A real Slurm: munged, slurmctld, and a slurmd for each node, whose names and views are their own.

with serve_cluster(usual_nodes()) as cluster:
    cluster.slurm("srun", "-w", "gpu01", "hostname")
    cluster.variables                  # environment variables with which envcheck, too, uses this cluster

Its programs come from PATH, or from where .ci/fleet unpacks Debian's packages: nothing need be installed, and
no user is made. It knows no cgroups. All of it runs in a process namespace that ends with this process.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import pytest
from leftovers import mounts_below
from processes import wait_for
from ssh_hosts import PLACES, UNPACKED

# What is wrong with a node. drained, down: Slurm says so, with a reason. The others: what its python3 does.
DRAINED = 'GPU 3 fell off the bus | "Xid" 79'
DOWN = "the board is at the vendor's"
_PYTHONS = {
    "sleeping": "exec sleep 1000",
    "garbage": 'printf \'Traceback\\033[2J\\033]0;owned\\007 {"schema": "\'; exit 0',
    "flood": "exec head -c 120000000 /dev/zero",
}

# What stands for GPUs in gres.conf: any device will do.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")

_CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
GresTypes=gpu
AuthType=auth/munge
AuthInfo=socket={scratch}/munge.sock
PluginDir={plugins}
StateSaveLocation={scratch}/state
SlurmdSpoolDir={scratch}/spool/%n
SlurmctldPidFile={scratch}/slurmctld.pid
SlurmdPidFile={scratch}/spool/%n.pid
SlurmctldLogFile={scratch}/logs/slurmctld
SlurmdLogFile={scratch}/logs/%n
Prolog={scratch}/prolog
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=1
MessageTimeout=5
"""

_START = """\
set -e
cd {scratch}
[ ! -f hosts ] || mount --bind hosts /etc/hosts
{libraries}
{munged} --foreground --force --key-file={scratch}/munge.key --socket={scratch}/munge.sock \\
    --pid-file={scratch}/munge.pid --log-file={scratch}/logs/munged --seed-file={scratch}/munge.seed \\
    --num-threads=4 >logs/munged.out 2>&1 &
while ! [ -S munge.sock ]; do sleep 0.05; done
{slurmctld} -D -f {scratch}/slurm.conf >logs/slurmctld.out 2>&1 &
for node in {nodes}; do
    SLURMD_NODE=$node unshare --uts --mount sh -ec '
        hostname "$SLURMD_NODE"
        mount --bind "{scratch}/nodes/$SLURMD_NODE" {scratch}/here
        exec {slurmd} -D -N "$SLURMD_NODE" -f {scratch}/slurm.conf -d {slurmstepd}' >logs/$node.out 2>&1 &
done
wait
"""


@dataclass(frozen=True)
class SlurmNode:
    """kind: "well", or what is wrong with it. python: its only interpreter."""

    name: str
    kind: str = "well"
    partition: str = "a100"
    python: str = sys.executable
    gpus: int = 0  # as Slurm has it (GRES); no device need be there
    address: str = "127.0.0.1"  # or its name, which the cluster then has in its hosts file


def usual_nodes() -> list[SlurmNode]:
    kinds = ["well", "well", "well", "well", "drained", "down", "sleeping", "flood", "garbage"]
    return [
        SlurmNode(f"gpu{n:02d}", kind, "a100" if n <= 8 else "h100")
        for n, kind in enumerate(kinds, 1)
    ]


class NoCluster(Exception):
    """This machine cannot have one; says why."""


@dataclass(frozen=True)
class SlurmPrograms:
    """root: below which they are, with their libraries and plugins."""

    found: dict[str, Path]
    plugins: Path
    version: tuple[int, int]

    @property
    def libraries(self) -> str:
        """A line for a shell: where libraries of programs that are only unpacked lie."""
        places = f"{self.plugins.parent}:{self.plugins}"
        return "" if self.plugins.is_relative_to("/usr") else f"export LD_LIBRARY_PATH={places}"


@dataclass(frozen=True)
class SlurmCluster:
    """A cluster that is up; ``scratch`` goes with it."""

    scratch: Path
    nodes: list[SlurmNode]
    keeper: subprocess.Popen[bytes]

    @property
    def variables(self) -> dict[str, str]:
        """``here`` is a folder that each node has of its own."""
        path = f"{self.scratch}/here:{self.scratch}/bin:/usr/bin:/bin"
        return {"SLURM_CONF": f"{self.scratch}/slurm.conf", "PATH": path}

    def of(self, *kinds: str) -> list[str]:
        return [node.name for node in self.nodes if node.kind in kinds]

    def slurm(self, *command: str, code: int | None = 0, seconds: float = 20.0) -> str:
        """What one of Slurm's commands says; it has to end with that exit code (None: with any)."""
        done = subprocess.run(
            [self.scratch / "bin" / command[0], *command[1:]],
            capture_output=True, text=True, errors="backslashreplace", stdin=subprocess.DEVNULL,
            env={**os.environ, **self.variables}, timeout=seconds, check=False,
        )  # fmt: skip
        if code is not None and done.returncode != code:
            raise NoCluster(f"{' '.join(command)}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout + (done.stderr if code != 0 else "")

    @property
    def busy(self) -> str:
        """The name of the job that ``job`` starts."""
        return f"busy-{self.keeper.pid}"

    @contextmanager
    def job(self, *options: str) -> Iterator[None]:
        """A job that runs until this is left."""
        name = self.busy
        self.slurm(
            "sbatch", f"--job-name={name}", "--output=/dev/null", *options, "--wrap=exec sleep 600"
        )
        started = wait_for(lambda: "R" in self.slurm("squeue", "-h", "-n", name, "-o", "%t"))
        try:
            assert started, self.slurm("squeue")
            yield
        finally:
            self.cancel(name)

    def cancel(self, name: str = "") -> None:
        """Again and again: one whose prolog fails meanwhile is put back into the queue."""

        def is_over() -> bool:
            self.slurm("scancel", "--user=root", *([f"--jobname={name}"] if name else []))
            return not self.queued(name)

        assert wait_for(is_over), self.queued(name)

    def queued(self, name: str = "") -> str:
        """Jobs that wait, run or come to their end."""
        return self.slurm("squeue", "-h", "-o", "%j %T %R", *(["-n", name] if name else [])).strip()

    def node(self, name: str) -> tuple[str, str]:
        """Its state and the reason."""
        shown = self.slurm("sinfo", "-h", "-N", "-n", name, "-o", "%T|%E").splitlines()[0]
        state, _, reason = shown.partition("|")
        return state, reason

    def set_prolog(self, script: str) -> None:
        """What every node runs before a job's first process."""
        new = self.scratch / "prolog.new"
        new.write_text(script)
        new.chmod(0o755)
        new.rename(self.scratch / "prolog")

    @contextmanager
    def slurmctld_stopped(self) -> Iterator[None]:
        """The controller is there and answers nothing."""
        (pid,) = (
            pid
            for pid, text in _members(self.keeper.pid)
            if "slurmctld -D" in text or "slurmctld-wlm -D" in text
        )
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def log(self, name: str) -> str:
        return (self.scratch / "logs" / name).read_text(errors="replace")

    def processes(self) -> list[str]:
        """Command lines of what runs in the cluster's namespace, but for the cluster."""
        return [text for _, text in _members(self.keeper.pid) if "slurm" not in text]


@contextmanager
def serve_cluster(nodes: Sequence[SlurmNode]) -> Iterator[SlurmCluster]:
    """A cluster whose nodes have registered. Skips the test where this machine cannot have one."""
    try:
        programs = _needed()
    except NoCluster as error:
        pytest.skip(str(error))
    scratch = Path(tempfile.mkdtemp(prefix="ec-slurm-", dir="/tmp"))  # a short path: sockets
    keeper = None
    try:
        _write(scratch, nodes, programs)
        keeper = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--fork", "--pid", "--kill-child=KILL",
             "--mount", "--mount-proc", "sh", scratch / "start"],
            stdin=subprocess.DEVNULL, stdout=(scratch / "logs/start").open("wb"),
            stderr=subprocess.STDOUT, start_new_session=True,
            env={"PATH": PLACES, "SLURM_CONF": f"{scratch}/slurm.conf"},
        )  # fmt: skip
        cluster = SlurmCluster(scratch, list(nodes), keeper)
        _wait(cluster)
        yield cluster
    except NoCluster as error:
        pytest.skip(f"no Slurm of the tests' own: {error}")
    finally:
        left = _end(scratch, keeper)
        assert not left, f"the cluster leaves behind: {left}"


def _needed() -> SlurmPrograms:
    if sys.platform != "linux" or os.geteuid():
        raise NoCluster("a Slurm of the tests' own needs root")
    found = {}
    for program in ("munged", "slurmctld", "slurmd", "slurmstepd", "srun", "sinfo", "scontrol",
                    "squeue", "scancel", "sbatch", "unshare", "setpriv"):  # fmt: skip
        names = (program, f"{program}-wlm")  # Debian's own, before its links are made
        place = next(
            (p for n in names if (p := shutil.which(n, path=f"{PLACES}:{UNPACKED}/usr/bin"))), None
        )
        if place is None:
            raise NoCluster(f"there is no {program} on this machine")
        found[program] = Path(place)
    if subprocess.run(["unshare", "-mupf", "true"], capture_output=True, check=False).returncode:
        raise NoCluster("no namespaces for this user")
    root = found["slurmctld"].resolve().parents[1]
    plugins = next(iter(root.glob("lib/*/slurm-wlm")), None) or next(
        iter(root.glob("lib*/slurm")), None
    )
    if plugins is None:
        raise NoCluster(f"Slurm's plugins are not below {root}")
    bare = SlurmPrograms(found, plugins, (0, 0))
    shown = _said(f"{bare.libraries}\nexec {quote(str(found['slurmctld']))} -V")
    version = re.search(r"(\d+)\.(\d+)", shown)
    if version is None:
        raise NoCluster(f"slurmctld does not start: {shown.strip()[-300:]}")
    return SlurmPrograms(found, plugins, (int(version[1]), int(version[2])))


def _said(script: str) -> str:
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _write(scratch: Path, nodes: Sequence[SlurmNode], programs: SlurmPrograms) -> None:
    scratch.chmod(0o755)
    for folder in ("state", "spool", "logs", "bin", "sbin", "nodes", "here"):
        (scratch / folder).mkdir()
    (scratch / "munge.key").write_bytes(os.urandom(1024))
    (scratch / "munge.key").chmod(0o600)
    up = [node for node in nodes if node.kind != "down"]
    if any(node.address == node.name for node in nodes):
        names = " ".join(["localhost", socket.gethostname(), *(node.name for node in nodes)])
        (scratch / "hosts").write_text(f"127.0.0.1 {names}\n")
    with ExitStack() as held:  # all at once, so that none gets another's
        ports = [_free_port(held) for _ in range(len(nodes) + 1)]
    lines = [
        _CONFIGURATION.format(
            host=socket.gethostname(), port=ports[0], scratch=scratch, plugins=programs.plugins
        )
    ]
    for node, port in zip(nodes, ports[1:], strict=True):
        state = f'State=DOWN Reason="{DOWN}"' if node.kind == "down" else "State=UNKNOWN"
        lines.append(
            f"NodeName={node.name} NodeHostname={node.name} NodeAddr={node.address} Port={port}"
            f" CPUs=2 RealMemory=1000 Feature={node.partition},ib {state}"
            + (f" Gres=gpu:{node.gpus}" if node.gpus else "")
        )
        home = scratch / "nodes" / node.name
        home.mkdir()
        (home / "node").write_text(node.name)
        program = _PYTHONS.get(node.kind, f'exec {quote(node.python)} "$@"')
        _executable(home / "python3", program)
        (scratch / "spool" / node.name).mkdir()
    partitions = sorted({node.partition for node in nodes})
    for partition in partitions:
        members = ",".join(node.name for node in nodes if node.partition == partition)
        default = "YES" if partition == partitions[0] else "NO"
        lines.append(f"PartitionName={partition} Nodes={members} Default={default} State=UP")
    lines.append("PartitionName=all Nodes=ALL MaxTime=60 State=UP")
    gres = [
        f"NodeName={node.name} Name=gpu File={','.join(_DEVICES[: node.gpus])}"
        for node in nodes
        if node.gpus
    ]
    (scratch / "gres.conf").write_text("\n".join([*gres, ""]))
    (scratch / "slurm.conf").write_text("\n".join([*lines, ""]))
    kind = "disabled" if programs.version >= (23, 2) else "cgroup/v1"
    (scratch / "cgroup.conf").write_text(
        f"CgroupPlugin={kind}\nCgroupMountpoint={scratch}/cgroup\n"
    )
    _executable(scratch / "prolog", "exit 0")
    for name in ("srun", "sinfo", "scontrol", "squeue", "scancel", "sbatch"):
        settings = f"{programs.libraries}\nexport SLURM_CONF={scratch}/slurm.conf\n"
        _executable(scratch / "bin" / name, f'{settings}exec {programs.found[name]} "$@"')
    # By their own names: a daemon that is called slurmctld-wlm leaves out the nodes' GRES.
    places = {name: scratch / "sbin" / name for name in ("slurmctld", "slurmd", "slurmstepd")}
    for name, place in places.items():
        place.symlink_to(programs.found[name])
    places["munged"] = programs.found["munged"]
    start = _START.format(
        scratch=scratch, libraries=programs.libraries, nodes=" ".join(n.name for n in up), **places
    )
    (scratch / "start").write_text(start)


def _free_port(held: ExitStack) -> int:
    listening = held.enter_context(socket.socket())
    listening.bind(("127.0.0.1", 0))
    return int(listening.getsockname()[1])


def _executable(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def _wait(cluster: SlurmCluster) -> None:
    """Until every node that is to be up has registered, and those to be drained are."""
    up = {node.name for node in cluster.nodes if node.kind != "down"}

    def registered() -> bool:
        shown = cluster.slurm("sinfo", "-h", "-N", "-p", "all", "-o", "%N %T", code=None)
        return up <= {line.split()[0] for line in shown.splitlines() if line.endswith(" idle")}

    if not wait_for(registered):  # without a cluster its tests skip
        words = cluster.log("slurmctld.out")[-300:] + cluster.log("start")[-300:]
        raise NoCluster(f"its nodes do not come up: {words}")
    for name in cluster.of("drained"):
        reason = f"reason={DRAINED}"
        cluster.slurm("scontrol", "update", f"nodename={name}", "state=drain", reason)


def _end(scratch: Path, keeper: subprocess.Popen[bytes] | None) -> list[str]:
    """What is left."""
    left = _members(keeper.pid) if keeper else []
    if keeper is not None:
        keeper.kill()
        keeper.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid, _ in left))
    still = [text for pid, text in left if Path(f"/proc/{pid}").exists()]
    mounts = mounts_below(scratch)
    for _ in range(3):
        shutil.rmtree(scratch, ignore_errors=True)
    return [*still, *mounts, *([str(scratch)] if scratch.exists() else [])]


def _members(keeper: int) -> list[tuple[int, str]]:
    """(process id, command line) of the processes in the namespace that a process has made."""
    with suppress(OSError):
        ours = Path(f"/proc/{keeper}/ns/pid_for_children").readlink()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (entry / "ns/pid").readlink() == ours:
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append((int(entry.name), words.decode(errors="replace").strip()))
        return found
    return []
