"""nvidia-smi, as the machine's users would run it: what it says, or how it failed."""

import os

from ..facts import Facts
from ..runtime import programs
from ..smi.document import OF_A_DOCUMENT, read_document, without_document

DOCUMENT = "machine"
IN_CONTAINER = True
DEADLINE = 12
RUN_DEADLINE = 10  # seconds for nvidia-smi itself

WSL = "/usr/lib/wsl/lib/nvidia-smi"  # not on every PATH there
QUERY = ("-q", "-x")
END = "</nvidia_smi_log>"


def collect(context):
    facts = Facts("nvidia-smi " + " ".join(QUERY))
    path = find(context)
    if path is None:
        detail = "no nvidia-smi on PATH, in the usual directories, or in " + os.path.dirname(WSL)
        for name in ("path", "exit_code") + OF_A_DOCUMENT:
            facts.missing(name, "absent", detail, "search of PATH")
        return facts
    facts.put("path", path, "search of PATH")
    result = context.run([context.path(path)] + list(QUERY), RUN_DEADLINE)
    if result.outcome == "exited":
        _exited(facts, result)
    else:
        _failed(facts, result)
    return facts


def find(context):
    path = programs.find(context, "nvidia-smi")
    if path is None and os.access(context.path(WSL), os.X_OK):
        return WSL
    return path


def _exited(facts, result):
    facts.put("exit_code", result.code)
    try:
        for name, value in read_document(_text(result.stdout)).items():
            facts.put(name, value)
    except ValueError as error:
        _no_document(facts, result, error)
        return
    if result.code != 0:
        facts.put("message", _words(result) or "nvidia-smi " + result.describe())


def _no_document(facts, result, error):
    """It came to its end without a document: its own words are the fact."""
    words = _words(result) or ("half a document" if result.stdout.strip() else "nothing")
    if result.code != 0:
        detail = "nvidia-smi %s: %s" % (result.describe(), words)
    else:
        detail = "nvidia-smi's output: %s" % error
    for name, value in without_document(words, detail, died=result.code < 0).items():
        facts.put(name, value)


def _failed(facts, result):
    """It never came to its end by itself."""
    detail = "nvidia-smi " + result.describe()
    if result.stuck is not None:
        facts.put("stuck", [result.stuck])
        detail += "; process %d is stuck in the kernel" % result.stuck["pid"]
        if result.stuck.get("state"):
            detail += " (state %s)" % result.stuck["state"]
    facts.put("message", detail)
    reason = "timeout" if result.outcome == "timeout" else "error"
    for name in ("exit_code",) + OF_A_DOCUMENT:
        facts.missing(name, reason, detail)


def _words(result, lines=10):
    """What it printed apart from a document: the beginning of it, stdout before stderr."""
    before, _start, document = _text(result.stdout).partition("<?xml")
    after = document.rpartition(END)[2] if END in document else ""
    printed = [
        line.strip()[:300]
        for text in (before, after, _text(result.stderr))
        for line in text[:65536].splitlines()
    ]
    return "\n".join([line for line in printed if line and not line.startswith("<")][:lines])


def _text(data):
    return data.decode("utf-8", "replace")
