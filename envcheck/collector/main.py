"""The collector's command line, and its manners: what it started ends with it, however it ends."""

import argparse
import contextlib
import json
import os
import select
import signal
import sys

from . import health, inside
from . import options as kernel_options
from .documents import document, here, snapshot
from .facts import dumps
from .run import ROOT, BadTarget, Run
from .runtime import guard, line_pipe, scratch
from .version import VERSION

# In the single file it comes along; envcheck itself names the one that is installed beside it.
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
BUNDLED_PYNVML = os.path.join(ROOT, "envcheck", "collector", "vendor", "pynvml.py")


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
    options = _options(argv)
    if options.health:
        return health.run(ROOT, options.pynvml or BUNDLED_PYNVML)
    if options.nvidia_smi:
        return _report(options, lambda: ({"machine": _capture(options.nvidia_smi)}, []))
    systems = options.kernels is not None and options.kernels.systems
    works = options.target is not None or options.inside is not None or systems or options.work
    folder = scratch.make() if works else None

    def work(parent, unblock):
        def look():
            unblock()
            return _look(options, parent, folder)

        return _report(options, look)

    try:
        for number in ENDING:
            if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:  # nohup, "&"
                signal.signal(number, _interrupt)
        return guard.run(work, options.parent)
    except Interrupted as error:
        return 128 + error.number
    finally:
        scratch.remove(folder)


def _report(options, look):
    """Write the snapshot of the (documents, names to redact) of ``look()``: the exit status."""
    try:
        documents, names = look()
        if options.frame:  # from inside a container, to be redacted outside
            whole, _values = snapshot(documents, keep=True)
            answer = dumps({"snapshot": whole, "names": here()})
            _write(inside.begin(options.frame) + answer + inside.end(options.frame))
            return 0
        whole, values = snapshot(documents, options.no_redact, names)
        _write(dumps({"snapshot": whole, "values": values} if options.parent else whole) + "\n")
    except BadTarget as error:
        return _refuse(str(error))
    except Interrupted as error:
        return 128 + error.number
    except Unwritable as error:
        return _refuse("could not write the snapshot: %s" % error)
    return 0


def _open_streams():
    """Put /dev/null where standard streams are closed, so that no other file gets their number.

    Whether there is a standard output to write to.
    """
    number = -1
    while number < 2:  # it takes the lowest number that is free
        number = os.open(os.devnull, os.O_RDWR)
    if number > 2:
        os.close(number)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")
    return sys.stdout is not None


def _write(text):
    """Write ASCII text to standard output, past its buffer and its encoding."""
    data = text.encode("ascii")
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:  # whoever started this made it so
            select.select([], [1], [])
        except OSError as error:
            raise Unwritable(error.strerror)


def _look(options, parent, folder):
    """(documents of this machine and the target, names to redact); Interrupted when ``parent`` is gone."""
    told = [None]

    def watch(running, done, total):
        if os.getppid() != parent:
            raise Interrupted(signal.SIGTERM)
        if options.parent and told[0] != (running, done):
            told[0] = running, done
            words = json.dumps({"running": running, "done": done, "total": total})
            sys.stderr.write("@progress %s\n" % words)
            sys.stderr.flush()

    events = line_pipe.open_to_write(options.events, waits=False) if options.events else None

    def event(record):
        if events is not None:
            with contextlib.suppress(OSError):  # nobody reads it: the pipe is full
                os.write(events, dumps(record).encode("ascii") + b"\n")
        elif options.parent or options.frame:
            sys.stderr.write("@event %s\n" % dumps(record))
            sys.stderr.flush()

    run = Run(
        {"pynvml": options.pynvml or BUNDLED_PYNVML},
        deadline=options.deadline,
        on_progress=watch,
        scratch=folder,
        kernels=options.kernels,
        only=options.probes,
        probe_files=dict(options.probe_file),
        seen=_seen(options.seen),
        work=options.work,
        on_event=event,
    )
    if options.work is not None:
        signal.signal(signal.SIGINT, _stopping(run))
    try:
        look = None if options.inside is None else inside.Look(options.inside)
        return run.collect(options.target, look=look), run.names
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
    told = document("nvidia-smi", "machine")
    told["nvidia_smi"] = {
        "outcome": "ok",
        "facts": facts,
        "sources": {"*": "a file of nvidia-smi's output"},
    }
    return told


def _options(argv):
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
    parser.add_argument(
        "--health",
        action="store_true",
        help="one line and an exit status for a container's health check: 1 where NVML lost its GPUs",
    )
    parser.add_argument("--version", action="version", version="envcheck-collector " + VERSION)
    kernel_options.add_arguments(parser)
    # Between envcheck and its collector: not for people.
    parser.add_argument("--pynvml", help=argparse.SUPPRESS)
    parser.add_argument("--parent", metavar="PID", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--inside", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--seen", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--events", metavar="PIPE", help=argparse.SUPPRESS)
    parser.add_argument("--work", metavar="JSON", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument(
        "--probe-file",
        action="append",
        default=[],
        type=lambda text: text.partition("=")[::2],
        help=argparse.SUPPRESS,
    )
    # Between a collector and the one that it sends into a container.
    parser.add_argument("--frame", metavar="COOKIE", help=argparse.SUPPRESS)
    parser.add_argument("--probes", type=lambda text: text.split(","), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    options.kernels = kernel_options.from_arguments(parser, options)
    return options


def _interrupt(number, frame):
    for other in ENDING:  # the second one must not interrupt the cleaning up
        signal.signal(other, signal.SIG_IGN)
    raise Interrupted(number)


def _refuse(sentence):
    sys.stderr.write("envcheck-collector: %s\n" % sentence)
    return 2
