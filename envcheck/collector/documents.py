"""The documents that a Snapshot is made of, and their redaction."""

import json
import os
import sys
import time

from . import account, redact
from .facts import dumps, plain
from .runtime.context import Context
from .version import VERSION
from .worker.probe import parse

SCHEMA = 1


def document(origin, location):
    return {
        "origin": origin,
        "location": location,
        "collected_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "collector": {"version": VERSION, "python": "%d.%d.%d" % sys.version_info[:3]},
    }


def section(probe, result):
    """A Probe's section of the Snapshot, from what became of its process."""
    outcome = {"timeout": "timeout", "not-started": "refused"}.get(result.outcome, "crashed")
    answer = None
    reason = ""
    if result.ok:
        try:
            answer = parse(result)
            outcome = "ok"
        except ValueError as error:
            reason = "the probe answered nonsense: %s" % error
    else:
        reason = "the probe %s" % result.describe()
    part = {"outcome": outcome, "seconds": round(result.seconds, 3)}
    if reason:
        part["reason"] = reason
        part["evidence"] = result.tail()
    if result.stuck:
        part["stuck"] = [result.stuck]
    if answer is not None:
        if probe.imports is not None and "log" in answer["facts"]:
            from . import framework

            stderr = result.stderr.decode("utf-8", "replace")
            answer["facts"]["log"] = framework.about_gpus(stderr)
        part["facts"] = answer["facts"]
        part["sources"] = answer.get("sources", {})
    return part


def here():
    """(host, user, home) of this process: the names that a document of this machine may hold."""
    context = Context(dict(os.environ))
    names = os.uname().nodename, account.name(context), account.home(context)
    return tuple(plain(name) for name in names)


def snapshot(documents, keep=False, names=()):
    """(Snapshot, what its tokens stand for) of unredacted documents; ``keep``: credentials alone go.

    names: what ``here`` gave elsewhere, where a document comes from somewhere else.
    """
    whole = json.loads(dumps({"machine": documents["machine"], "target": documents.get("target")}))
    if keep:
        whole, values = redact.scrub(whole), {}
    else:
        others = [tuple(map(plain, one)) for one in account.others(Context(dict(os.environ)))]
        host, user, home = here()
        redactor = redact.Redactor(host, user, home, list(names) + others)
        whole, values = redactor.redact(whole), redactor.values
    whole["schema"] = SCHEMA
    whole["redacted"] = not keep
    return whole, values
