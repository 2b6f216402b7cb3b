"""The collector's command line, and its manners: what it started ends with it, however it ends."""

import argparse
import json
import os
import select
import signal
import sys

from . import orphans
from .facts import dumps
from .run import ROOT, BadTarget, Run, document, snapshot
from .version import VERSION

# In the single file it comes along; envcheck itself names the one that is installed beside it.
BUNDLED_PYNVML = os.path.join(ROOT, "envcheck", "collector", "vendor", "pynvml.py")


class Interrupted(BaseException):
    """A signal asked the collector to end, or the program that started it is gone."""

    def __init__(self, number):
        BaseException.__init__(self)
        self.number = number


def main(argv):
    if not _open_streams():
        return _refuse("standard output is closed: there is nowhere to write the snapshot")
    options = _options(argv)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:  # nohup, "&"
            signal.signal(number, _interrupt)
    orphans.adopt()
    try:
        documents = _collect(options)
    except BadTarget as error:
        return _refuse(str(error))
    except Interrupted as error:
        return 128 + error.number
    whole, values = snapshot(documents, keep=options.no_redact)
    text = dumps({"snapshot": whole, "values": values} if options.parent else whole)
    try:
        _write(text + "\n")
    except OSError as error:
        return _refuse("could not write the snapshot: %s" % error.strerror)
    return 0


def _open_streams():
    """Put /dev/null where standard streams are closed, so that no other file gets their number.

    Whether there is a standard output to write to.
    """
    missing = [number for number in range(3) if not _is_open(number)]
    for number in missing:
        os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    return 1 not in missing


def _is_open(number):
    try:
        os.fstat(number)
        return True
    except OSError:
        return False


def _write(text):
    """Write ASCII text to standard output, past its buffer and its encoding. Raises OSError."""
    data = text.encode("ascii")
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:  # whoever started this made it so
            select.select([], [1], [])


def _collect(options):
    if options.nvidia_smi:
        return {"machine": _capture(options.nvidia_smi)}
    told = [None]

    def watch(running, total):
        if options.parent and os.getppid() != options.parent:
            raise Interrupted(signal.SIGTERM)
        if options.parent and told[0] != running:
            told[0] = running
            sys.stderr.write("@progress %s\n" % json.dumps({"running": running, "total": total}))
            sys.stderr.flush()

    run = Run(
        {"pynvml": options.pynvml or BUNDLED_PYNVML},
        deadline=options.deadline,
        on_progress=watch,
        scratch=options.scratch,
    )
    try:
        return run.collect(options.target)
    finally:
        run.close()


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
        "sources": {"*": "a file of nvidia-smi -q output"},
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
    parser.add_argument("--version", action="version", version="envcheck-collector " + VERSION)
    # Between envcheck and its collector: not for people.
    parser.add_argument("--pynvml", help=argparse.SUPPRESS)
    parser.add_argument("--parent", metavar="PID", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--scratch", metavar="DIRECTORY", help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _interrupt(number, frame):
    signal.signal(number, signal.SIG_IGN)  # the second one must not interrupt the cleaning up
    raise Interrupted(number)


def _refuse(sentence):
    sys.stderr.write("envcheck-collector: %s\n" % sentence)
    return 2
