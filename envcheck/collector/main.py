"""The collector's command line, and its manners: what it started ends with it, however it ends."""

import argparse
import json
import os
import signal
import sys

from . import process
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
    options = _options(argv)
    parent = os.getppid() if options.parent else None
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _interrupt)
    process.adopt_orphans()
    try:
        documents = _collect(options, parent)
    except BadTarget as error:
        return _refuse(str(error))
    except Interrupted as error:
        return 128 + error.number
    whole, values = snapshot(documents, keep=options.no_redact)
    text = dumps({"snapshot": whole, "values": values} if options.parent else whole)
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        return _refuse("could not write the snapshot: %s" % error.strerror)
    return 0


def _collect(options, parent):
    if options.nvidia_smi:
        return {"machine": _capture(options.nvidia_smi)}
    told = [None]

    def watch(running, total):
        if parent is not None and os.getppid() != parent:
            raise Interrupted(signal.SIGTERM)
        if options.parent and told[0] != running:
            told[0] = running
            sys.stderr.write("@progress %s\n" % json.dumps({"running": running, "total": total}))
            sys.stderr.flush()

    run = Run(
        {"pynvml": options.pynvml or BUNDLED_PYNVML}, deadline=options.deadline, on_progress=watch
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
    parser.add_argument("--parent", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _interrupt(number, frame):
    signal.signal(number, signal.SIG_IGN)  # the second one must not interrupt the cleaning up
    raise Interrupted(number)


def _refuse(sentence):
    sys.stderr.write("envcheck-collector: %s\n" % sentence)
    return 2
