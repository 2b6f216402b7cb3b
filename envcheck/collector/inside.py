"""Looks into a container: the same collector goes in as one file, through the engine's standard input.

Nothing is written inside. What comes back stands between marks with a cookie, whatever the image's
entrypoint, its shell or a chatty library prints around it; it is unredacted, and so one set of tokens
serves both documents.
"""

import binascii
import functools
import json
import os
import time

from . import foreign, inside_troubles
from . import options as kernel_options
from .inside_troubles import Failed, NotATarget
from .runtime import scratch

OUTCOMES = ("ok", "timeout", "crashed", "refused")
DEADLINE = 240.0  # seconds: its start, all probes (each has a deadline of its own), and its end
KERNELS = 900.0 + 300.0  # seconds more: as in the campaign, none is started after the first
SYSTEMS = 600.0 + 420.0  # seconds more, the same of acceleration's runner
BEYOND_PROBES = 60.0  # seconds, where a deadline for every probe was given
SILENCE = (
    90.0  # seconds until the entrypoint has come to the command; podman may copy an image first
)
GRACE = 3.0  # seconds for the engine to pass on that it is to end
_ASKING = 10.0  # seconds for a signal to be sent inside
ENDING = 10.0  # seconds for the engine to remove a container

# What runs after the probes, and tells in both documents.
_AFTER_PROBES = ["micro_kernels", "acceleration", "bench"]
_PHASES = ("import", "build", "warm-up", "measure", "losses", "batch")

# Takes a cookie and the collector's arguments. The Python is the one that a user of the image gets by its
# name; it runs isolated here, and as the user has it in the probes that it starts.
FIND_PYTHON = r"""
cookie=$1; shift
say() { printf '\n<<<envcheck %s %s\n' "$cookie" "$1"; }
say "started $$"
why=no-python
for name in python3 python; do
    python=$(command -v "$name") || continue
    "$python" -E -S -c 'import sys; sys.exit(sys.version_info[:2] < (3, 6) and 36 or 0)' \
        </dev/null >/dev/null 2>&1
    case $? in
        0) exec "$python" -I -S -B - --frame "$cookie" --target "$python" "$@" ;;
        36) why="old $("$python" -E -S -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' \
                </dev/null 2>&1) $python" ;;
        *) [ "$why" != no-python ] || why="broken $? $python" ;;
    esac
done
say "$why"
case $why in old*) exit 94 ;; broken*) exit 95 ;; *) exit 93 ;; esac
"""


# In the place of the shell's script, where an image has no shell.
DIRECTLY = (
    "import sys; sys.argv += ['--target', sys.executable];"
    " exec(compile(sys.stdin.buffer.read(), '<envcheck>', 'exec'))"
)


class Look(object):
    """One look into one container."""

    def __init__(self, file):
        """file: the path of {location, argv, environment, script, ending}. Raises ValueError, OSError.

        With {"once": true} the file's directory is removed as soon as all of it is read.
        """
        with open(file, "rb") as opened:
            told = json.loads(opened.read().decode("utf-8"))
        self.location = told["location"]
        self.ending = told.get("ending") or []
        self.child = None
        self._argv = told["argv"]
        self._environment = told.get("environment")
        self._script = told["script"]
        self._folder = os.path.dirname(file) if told.get("once") else None
        self._machine = self._target = ()  # names of probes
        self._arguments = []  # the collector's, inside
        self._launch = self._open_script = None
        self._began = self._silent = False
        self._directly = False
        self._into_running = self.location.startswith("container:")  # not the first process inside
        self._pid = None  # of the collector inside, as it is numbered there
        self._cookie = binascii.hexlify(os.urandom(8)).decode("ascii")

    def start(self, launch, deadline, kernels, cwd, machine, target, work=None):
        """launch(argv, deadline, cwd, env, …): a process.Child. deadline, kernels: as Run has them.

        cwd: the engine's: podman's conmon may leave a file "oom" there. machine, target: the names of the
        probes to run inside: what a container sees of the machine below it, and its own. work: as Run has it.
        """
        self._machine, self._target = machine, target
        probes = ",".join(list(machine) + list(target))
        arguments = ["--probes", probes] + kernel_options.arguments(kernels)
        if deadline is not None:
            arguments += ["--deadline", "%g" % deadline]
        bound = DEADLINE if deadline is None else deadline + BEYOND_PROBES
        if kernels is not None:
            bound += (KERNELS if kernels.levels else 0.0) + (SYSTEMS if kernels.systems else 0.0)
        if work is not None:
            arguments += ["--work", json.dumps(work)]
            bound += work["seconds"]
        env = None if self._environment is None else dict(self._environment)
        self._arguments = arguments
        self._launch = functools.partial(launch, deadline=bound, cwd=cwd, env=env, grace=GRACE)
        shell = ["sh", "-c", FIND_PYTHON, "envcheck", self._cookie]
        self._open_script = open(self._script, "rb")  # noqa: SIM115 - for a second start
        self.child = self._launch(self._argv + shell + arguments, stdin=self._script)
        scratch.remove(self._folder)  # whoever made it may be gone when this ends

    def again(self):
        """Start Python by its name where the image has no shell; whether that was done."""
        if self._directly or not inside_troubles.has_no_shell(self.child.result):
            return False
        self._directly = self._began = True  # nothing says that it has begun
        python = ["python3", "-I", "-S", "-B", "-c", DIRECTLY, "--frame", self._cookie]
        script = "/proc/self/fd/%d" % self._open_script.fileno()
        self.child = self._launch(self._argv + python + self._arguments, stdin=script)
        return True

    def watch(self):
        """Stop a container whose entrypoint does not come to the command."""
        if self._began or self.child.result is not None:
            return
        said = self.child.new_stdout()
        self._began = self._cookie.encode("ascii") in said
        number = said.partition(b"started ")[2].split(b"\n")[0]
        self._pid = int(number) if number.isdigit() else None
        if not self._began and time.monotonic() - self.child.started > SILENCE:
            self._silent = True
            self.child.stop()

    def events(self):
        """What the work inside has told since the last call: as on_event of Run gets it."""
        lines = [] if self.child.result is not None else self.child.new_stderr()
        told = [_event(line) for line in lines if line.startswith("@event ")]
        return [record for record in told if record]

    def interrupt(self):
        """Ask the collector inside to end its work with what it has."""
        if not self._into_running:
            self.child.interrupt()  # which the engine passes on to the first process inside
        elif self._pid:
            shell = ["sh", "-c", "kill -INT %d" % self._pid]
            self._launch(self._argv + shell, deadline=_ASKING)

    @property
    def left_behind(self):
        """Whether the engine's client did not end by itself, so that the container may still be there."""
        return self.child is not None and (
            self.child.result is None or self.child.result.outcome != "exited"
        )

    def put(self, documents, where):
        """Put what came back into the documents; the names to redact, [(host, user, home)].

        where: the target's document so far. Raises NotATarget where that container cannot be a target.
        """
        documents["target"] = where
        seconds = round(self.child.result.seconds, 3)
        try:
            answer = self._answer()
        except Failed as error:
            where["interpreter"] = {
                "outcome": error.outcome,
                "seconds": seconds,
                "reason": str(error),
            }
            if self.child.result.stuck:
                where["interpreter"]["stuck"] = [self.child.result.stuck]
            return []
        machine, target = answer["snapshot"]["machine"], answer["snapshot"]["target"]
        parts = ((machine, self._machine), (target, list(self._target) + _AFTER_PROBES))
        extensions = {}
        for document, names in parts:
            if isinstance(document.get("extensions"), dict):
                extensions.update(document["extensions"])
            for name in names:
                if document.get(name) is not None:
                    where[name] = _section(document[name])
                    if name == "bench" and isinstance(where[name].get("facts"), dict):
                        where[name]["facts"]["inside"] = self.location
                elif name in extensions:
                    told = foreign.bounded(_section(extensions[name]))
                    where.setdefault("extensions", {})[name] = told
        for name in _AFTER_PROBES:
            if machine.get(name) is not None:
                told = _section(machine[name])
                if isinstance(told.get("facts"), dict):
                    told["facts"]["inside"] = self.location
                documents["machine"][name] = told
        return [_names(answer.get("names"))]

    def _answer(self):
        """What the collector inside told. Raises NotATarget or Failed, with one sentence."""
        framed = _between(self.child.result.stdout, self._cookie)
        if framed is None and self._silent:
            raise inside_troubles.silent(self.location, SILENCE)
        if framed is None:
            raise inside_troubles.explain(self.location, self.child.result, self._cookie)
        try:
            answer = json.loads(framed.decode("utf-8"))
            whole = answer["snapshot"]
            right = isinstance(whole["machine"], dict) and isinstance(whole["target"], dict)
        except (ValueError, TypeError, KeyError, RecursionError):
            right = False
        if not right:
            raise Failed(
                "crashed",
                "%s: what came back from inside is no answer of envcheck's" % self.location,
            )
        return answer


def begin(cookie):
    """The line before an answer."""
    return "\n<<<envcheck %s answer\n" % cookie


def end(cookie):
    """The line after an answer."""
    return "\nenvcheck %s>>>\n" % cookie


def _between(stdout, cookie):
    first, last = begin(cookie).encode("ascii"), end(cookie).encode("ascii")
    start = stdout.find(first)
    stop = stdout.find(last, start)
    return None if start < 0 or stop < 0 else stdout[start + len(first) : stop]


def _section(told):
    """A probe's section as the Snapshot has it; one that is none counts as crashed."""
    if not isinstance(told, dict) or told.get("outcome") not in OUTCOMES:
        return {"outcome": "crashed", "reason": "what came back from inside is no probe's answer"}
    section = {"outcome": told["outcome"]}
    for name, kind in (("reason", str), ("evidence", str), ("sources", dict), ("facts", dict)):
        if isinstance(told.get(name), kind):
            section[name] = told[name]
    seconds = told.get("seconds", 0.0)
    section["seconds"] = seconds if isinstance(seconds, (int, float)) else 0.0
    if isinstance(told.get("stuck"), list):
        section["stuck"] = told["stuck"]
    return section


def _event(line):
    """An event's record, as the BenchRunner tells it; None where it is none."""
    try:
        told = json.loads(line[len("@event ") :])
        record = {
            "row": str(told["row"])[:200],
            "phase": told["phase"],
            "round": int(told["round"]),
            "rounds": int(told["rounds"]),
            "rate": None if told["rate"] is None else float(told["rate"]),
            "left": float(told["left"]),
        }
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return record if record["phase"] in _PHASES else None


def _names(told):
    names = told if isinstance(told, list) and len(told) == 3 else []
    names = [name for name in names if isinstance(name, str)]
    return tuple(names) if len(names) == 3 else ("", "", "")


__all__ = ["Failed", "Look", "NotATarget", "begin", "end"]
