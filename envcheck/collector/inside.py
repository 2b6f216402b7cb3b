"""Looks into a container: the same collector goes in as one file, through the engine's standard input."""

import binascii
import json
import os

from . import foreign, inside_troubles
from .inside_troubles import Failed, NotATarget
from .runtime import process, scratch
from .worker.messages import cookie_mark
from .worker.parent import Limits, Worker

OUTCOMES = ("ok", "timeout", "crashed", "refused")
DEADLINE = 240.0  # seconds: its start, all probes (each has a deadline of its own), and its end
KERNELS = 900.0 + 300.0  # seconds more: as in the campaign, none is started after the first
SYSTEMS = 600.0 + 420.0  # seconds more, the same of acceleration's runner
BEYOND_PROBES = 60.0  # seconds, where a deadline for every probe was given
SILENCE = 90.0  # seconds for the entrypoint to come to the command; podman may copy an image first
GRACE = 3.0  # seconds for the engine to pass on that it is to end
_ASKING = 10.0  # seconds for a signal to be sent inside
ENDING = 10.0  # seconds for the engine to remove a container

# What runs after the probes, and tells in both documents.
_AFTER_PROBES = ["micro_kernels", "acceleration", "bench"]
_PHASES = ("import", "build", "warm-up", "evidence", "measure", "over")

# Takes a cookie and the collector's arguments. The Python is the one that a user of the image gets by its
# name; it runs isolated here, and as the user has it in the probes that it starts.
FIND_PYTHON = r"""
cookie=$1; shift
say() { printf '\n@envcheck-%s {%s}\n' "$cookie" "$1"; }
say "\"begin\": {\"pid\": $$}"
why='"no-python"'
for name in python3 python; do
    python=$(command -v "$name") || continue
    "$python" -E -S -c 'import sys; sys.exit(sys.version_info[:2] < (3, 6) and 36 or 0)' \
        </dev/null >/dev/null 2>&1
    case $? in
        0) exec "$python" -I -S -B - --target "$python" "$@" ;;
        36) why="\"old\", \"reason\": \"$("$python" -E -S -c \
                'import sys; print("%d.%d.%d" % sys.version_info[:3])' </dev/null 2>&1) $python\"" ;;
        *) [ "$why" != '"no-python"' ] || why="\"broken\", \"reason\": \"$python\"" ;;
    esac
done
say "\"done\": {\"outcome\": $why}"
case $why in '"old'*) exit 94 ;; '"broken'*) exit 95 ;; *) exit 93 ;; esac
"""


class Look(object):
    """One look into one container."""

    def __init__(self, file, launch):
        """file: the path of {location, argv, environment, script, ending}. Raises ValueError, OSError.

        With {"once": true} the file's directory is removed as soon as all of it is read. launch(argv,
        deadline, cwd, env, …): a process.Child.
        """
        with open(file, "rb") as opened:
            found = json.loads(opened.read().decode("utf-8"))
        self.location = found["location"]
        self.worker = None
        self._launch = launch
        self._ending = found.get("ending") or []
        self._argv = found["argv"]
        self._environment = found.get("environment")
        self._script = found["script"]
        self._folder = os.path.dirname(file) if found.get("once") else None
        self._cookie = binascii.hexlify(os.urandom(8)).decode("ascii")
        self._into_running = self.location.startswith("container:")  # not the first process inside
        self._answer = self._pid = None  # pid: of the collector inside, as it is numbered there
        self._events = []

    @property
    def child(self):
        return self.worker.child

    def start(self, request, machine, target):
        """machine, target: the names of the probes to run inside: what a container sees of the machine

        below it, and its own. The engine works in the request's scratch: podman's conmon may leave a file
        "oom" there.
        """
        self._machine, self._target = machine, target
        kernels, work, deadline = request.kernels, request.work, request.deadline
        asked = {
            "frame": self._cookie,
            "probes": list(machine) + list(target),
            "kernels": None if kernels is None else vars(kernels),
            "deadline": deadline,
            "work": work,
        }
        bound = DEADLINE if deadline is None else deadline + BEYOND_PROBES
        if kernels is not None:
            bound += KERNELS if kernels.levels else 0.0
            bound += SYSTEMS if kernels.systems else 0.0
        bound += work["seconds"] if work is not None else 0.0
        env = None if self._environment is None else dict(self._environment)
        shell = ["sh", "-c", FIND_PYTHON, "envcheck", self._cookie, "--request", json.dumps(asked)]
        self._cwd = request.scratch or "/"
        argv = self._argv + shell
        child = self._launch(argv, bound, self._cwd, env, grace=GRACE, stdin=self._script)
        mark = cookie_mark(self._cookie)
        self.worker = Worker(child, Limits(start=SILENCE), self._take, mark=mark)
        scratch.remove(self._folder)  # the process that made it may be gone when this ends

    def step(self, event):
        """Look once, without waiting; hand on what the work inside reports. Whether it still runs."""
        runs = self.worker.step()
        for record in self._events:
            event(record)
        self._events = []
        return runs

    def _take(self, kind, value, key):
        if kind == "begin":
            self._pid = int(value["pid"])
        elif key == "event":
            self._events += [record for record in [_event(value)] if record]
        else:
            self._answer = value

    def interrupt(self):
        """Ask the collector inside to end its work with what it has."""
        if not self._into_running:
            self.child.interrupt()  # which the engine passes on to the first process inside
        elif self._pid:
            shell = ["sh", "-c", "kill -INT %d" % self._pid]
            self._launch(self._argv + shell, _ASKING, self._cwd, self._environment)

    def close(self):
        """Remove the container where the engine's client did not end by itself."""
        if self.worker is None or not self._ending:
            return
        if self.child.result is None or self.child.result.outcome != "exited":
            process.run(self._ending, ENDING, cwd="/")

    def put(self, documents, where):
        """Put what came back into the documents; the names to redact, [(host, user, home)].

        where: the target's document so far. Raises NotATarget where that container cannot be a target.
        """
        documents["target"] = where
        try:
            machine, target = self._documents()
        except Failed as error:
            result = self.worker.result
            seconds = round(result.seconds, 3)
            section = {"outcome": error.outcome, "seconds": seconds, "reason": str(error)}
            where["interpreter"] = section
            if result.stuck:
                section["stuck"] = [result.stuck]
            return []
        parts = ((machine, self._machine), (target, list(self._target) + _AFTER_PROBES))
        for document, names in parts:
            extensions = document.get("extensions")
            for name in names:
                if document.get(name) is not None:
                    where[name] = self._section(name, document[name])
                elif isinstance(extensions, dict) and name in extensions:
                    made = foreign.bounded(_section(extensions[name]))
                    where.setdefault("extensions", {})[name] = made
        for name in _AFTER_PROBES:
            if machine.get(name) is not None:
                documents["machine"][name] = self._section(name, machine[name], True)
        return [_names(self._answer.get("names"))]

    def _section(self, name, value, of_machine=False):
        """A section from inside; one that tells of the machine's GPUs says where it ran."""
        section = _section(value)
        if (of_machine or name == "bench") and isinstance(section.get("facts"), dict):
            section["facts"]["inside"] = self.location
        return section

    def _documents(self):
        """The documents (machine, target) from inside. Raises NotATarget or Failed, with one sentence."""
        if self._answer is None:
            raise inside_troubles.explain(self.location, self.worker)
        try:
            whole = self._answer["snapshot"]
            found = whole["machine"], whole["target"]
        except (TypeError, KeyError):
            found = None, None
        if not all(isinstance(one, dict) for one in found):
            words = "%s: what came back from inside is no answer of envcheck's"
            raise Failed("crashed", words % self.location)
        return found


def _section(given):
    """A probe's section as the Snapshot has it; one that is none counts as crashed."""
    if not isinstance(given, dict) or given.get("outcome") not in OUTCOMES:
        return {"outcome": "crashed", "reason": "what came back from inside is no probe's answer"}
    kinds = {"reason": str, "evidence": str, "sources": dict, "facts": dict, "stuck": list}
    section = {
        name: given[name] for name, kind in kinds.items() if isinstance(given.get(name), kind)
    }
    seconds = given.get("seconds", 0.0)
    section["seconds"] = seconds if isinstance(seconds, (int, float)) else 0.0
    return dict(section, outcome=given["outcome"])


def _event(given):
    """An event's record, as the BenchRunner reports it; None of another phase."""
    record = {
        "row": str(given["row"])[:200],
        "phase": given["phase"],
        "rate": None if given["rate"] is None else float(given["rate"]),
    }
    if "round" in given:
        record["round"] = int(given["round"])
    record.update((name, str(given[name])[:500]) for name in ("outcome", "reason") if name in given)
    return record if record["phase"] in _PHASES else None


def _names(given):
    names = given if isinstance(given, list) and len(given) == 3 else []
    names = [name for name in names if isinstance(name, str)]
    return tuple(names) if len(names) == 3 else ("", "", "")


__all__ = ["Failed", "Look", "NotATarget"]
