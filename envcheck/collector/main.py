"""The collector's command line, and its manners: what it started ends with it, however it ends."""

import argparse
import json
import os
import select
import signal
import sys

from . import options as kernel_options
from . import redact
from .documents import document, here, snapshot
from .facts import dumps
from .run import BadTarget, Run
from .runtime import guard, scratch
from .version import VERSION
from .worker import ROOT, messages, pipes

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# In the single file it comes along; envcheck itself names the one that is installed beside it.
BUNDLED_PYNVML = os.path.join(ROOT, "envcheck", "collector", "vendor", "pynvml.py")


class Request(object):
    """What is to be collected. Its fields are what envcheck sends its collector, as JSON.

    target: a path. inside: a file that says which container is the target. probes: names, None for all.
    probe_files: {name: path} of other packages' probes. deadline: seconds, instead of each probe's own.
    kernels: the fields of an Options, None where nothing is to run on a GPU. work: {"seconds", "bench" or
    "soak": what to do after all else}. network: what network.py is to test, instead of a Snapshot. seen: a
    file of documents whose sections need no second look. events: a pipe for what the work reports. frame:
    the cookie of a collector inside a container.
    """

    def __init__(self, **fields):
        self.target = self.inside = self.probes = self.deadline = None
        self.kernels = self.work = self.events = self.frame = self.network = None
        self.probe_files = {}
        self.seen = None
        self.pynvml = BUNDLED_PYNVML
        self.no_redact = False
        self.scratch = None
        for name in fields:
            if not hasattr(self, name):
                raise ValueError("a request has no %r" % name)
        vars(self).update(fields)
        self.pynvml = self.pynvml or BUNDLED_PYNVML
        if self.kernels is not None:
            self.kernels = kernel_options.Options(**self.kernels)
        self.seen = _seen(self.seen)

    @property
    def needs_scratch(self):
        systems = self.kernels is not None and self.kernels.systems
        return bool(self.target or self.inside or systems or self.work)


class Interrupted(BaseException):
    """A signal asked the collector to end, or the program that started it is gone."""

    def __init__(self, number):
        BaseException.__init__(self)
        self.number = number


class Unwritable(Exception):
    """Standard output takes no more: the system's words for why."""


def main(argv):
    if not _open_streams():
        return _refuse("standard output is closed: there is nowhere to write the snapshot")
    arguments = _arguments(argv)
    if arguments.nvidia_smi:
        look = lambda: ({"machine": _capture(arguments.nvidia_smi)}, [])  # noqa: E731
        return _report(arguments.request, arguments.parent, look)
    request = arguments.request
    request.scratch = scratch.make() if request.needs_scratch else None

    def work(parent, unblock):
        def look():
            unblock()
            return _look(request, arguments.parent, parent)

        return _report(request, arguments.parent, look)

    try:
        for number in ENDING:
            if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:  # nohup, "&"
                signal.signal(number, _interrupt)
        return guard.run(work, arguments.parent)
    except Interrupted as error:
        return 128 + error.number
    finally:
        scratch.remove(request.scratch)


def _report(request, parent, look):
    """Write the snapshot of the (documents, names to redact) of ``look()``: the exit status."""
    try:
        documents, names = look()
        if request.network:
            _write(dumps(redact.scrub(documents)).encode("ascii") + b"\n")
            return 0
        if request.frame:  # from inside a container, to be redacted outside
            whole, _values = snapshot(documents, keep=True)
            answer = {"result": {"snapshot": whole, "names": here()}}
            _write(messages.encode(answer, messages.cookie_mark(request.frame)))
            return 0
        whole, values = snapshot(documents, request.no_redact, names)
        answer = {"snapshot": whole, "values": values} if parent else whole
        _write(dumps(answer).encode("ascii") + b"\n")
    except BadTarget as error:
        return _refuse(str(error))
    except Interrupted as error:
        return 128 + error.number
    except Unwritable as error:
        return _refuse("could not write the snapshot: %s" % error)
    return 0


def _open_streams():
    """Put /dev/null where standard streams are closed, so that no other file gets their number."""
    number = -1
    while number < 2:  # it takes the lowest number that is free
        number = os.open(os.devnull, os.O_RDWR)
    if number > 2:
        os.close(number)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")
    return sys.stdout is not None


def _write(data):
    """Write bytes to standard output, past its buffer and its encoding."""
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:  # the program that started this made it so
            select.select([], [1], [])
        except OSError as error:
            raise Unwritable(error.strerror)


def _look(request, reports, parent):
    """(documents of this machine and the target, names to redact); Interrupted when ``parent`` is gone.

    reports: whether somebody reads progress and events from standard error.
    """
    latest = [None]  # type: list
    progress = messages.Writer(2)
    events = progress
    if request.frame:
        events = messages.Writer(1, messages.cookie_mark(request.frame))
    elif request.events:
        events = messages.Writer(pipes.open_to_write(request.events, waits=False), loses=True)

    def watch(running, done, total):
        if os.getppid() != parent:
            raise Interrupted(signal.SIGTERM)
        if reports and latest[0] != (running, done):
            latest[0] = running, done
            progress.stage({"running": running, "done": done, "total": total})

    def event(record):
        if reports or request.frame or request.events:
            events.result(record, "event")

    run = Run(request, watch, event)
    if request.work is not None:
        signal.signal(signal.SIGINT, _stopping(run))
    try:
        if request.network:
            from . import network

            return network.collect(run), run.names
        return run.collect(), run.names
    finally:
        run.close()


def _stopping(run):
    """A handler: the first SIGINT lets the work end with what it has, the second ends all."""

    def stop(_number, _frame):
        signal.signal(signal.SIGINT, _interrupt)
        run.stop_work()

    return stop


def _seen(path):
    """The sections of the documents {"machine", "target"} in a file of envcheck's."""
    if path is None:
        return {}
    with open(path, "rb") as opened:
        return json.loads(opened.read().decode("utf-8"))


def _capture(path):
    """A machine's document from a file of nvidia-smi's output."""
    from .smi.document import read_file

    try:
        facts = read_file(path)
    except OSError as error:
        raise BadTarget("%s: %s" % (path, error.strerror or error))
    except ValueError as error:
        raise BadTarget("%s: %s" % (path, error))
    made = document("nvidia-smi", "machine")
    sources = {"*": "a file of nvidia-smi's output"}
    made["nvidia_smi"] = {"outcome": "ok", "facts": facts, "sources": sources}
    return made


def _arguments(argv):
    parser = argparse.ArgumentParser(
        prog="envcheck-collector",
        description="Print a Snapshot of this machine's GPU stack as JSON, for envcheck doctor --from.",
    )
    parser.add_argument(
        "--target",
        metavar="PATH",
        help="an interpreter, a virtual environment or a conda prefix to look into",
    )
    parser.add_argument(
        "--no-redact",
        action="store_true",
        help="keep host name, user name, serial numbers, UUIDs and home paths",
    )
    parser.add_argument(
        "--nvidia-smi",
        metavar="FILE",
        help="read this file of nvidia-smi -q (text) or -q -x (XML) output instead",
    )
    parser.add_argument("--version", action="version", version="envcheck-collector " + VERSION)
    kernel_options.add_arguments(parser)
    # Between envcheck and its collector: not for people.
    parser.add_argument("--parent", metavar="PID", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--request", metavar="JSON", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    fields = {"target": arguments.target, "no_redact": arguments.no_redact}
    if arguments.request is None or "kernels" not in arguments.request:
        fields["kernels"] = _kernels(parser, arguments)
    arguments.request = Request(**dict(fields, **(arguments.request or {})))
    return arguments


def _kernels(parser, arguments):
    """The fields of the Options, None where nothing is to run. Ends the program where options contradict."""
    given = kernel_options.given(arguments)
    level = ["--level"] if arguments.level else []
    if arguments.nvidia_smi and given + level:
        words = "%s and --nvidia-smi cannot be used together: nothing runs here then"
        parser.error(words % (given + level)[0])
    if arguments.level == "quick":
        if given:
            parser.error("%s and --level quick cannot be used together" % given[0])
        return None
    names = set()
    if arguments.level == "deep":
        from . import systems

        names = {one.name for one in systems.load()}
    return kernel_options.chosen(arguments, sorted(names))


def _interrupt(number, frame):
    for other in ENDING:  # the second one must not interrupt the cleaning up
        signal.signal(other, signal.SIG_IGN)
    raise Interrupted(number)


def _refuse(sentence):
    sys.stderr.write("envcheck-collector: %s\n" % sentence)
    return 2
