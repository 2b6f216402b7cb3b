"""Why nothing came back from inside a container: one sentence, from the messages of engine and shell."""

import re


class NotATarget(Exception):
    """The container cannot be looked into, and never will be as it is: one sentence that says why."""


class Failed(Exception):
    """Looking into it did not work out this time. outcome: as of a probe."""

    def __init__(self, outcome, sentence):
        Exception.__init__(self, sentence)
        self.outcome = outcome


# What engines say, whatever the exit status: (pattern, the sentence's end). The first that is found counts.
_WORDS = (
    (
        r"exec format error",
        "its programs are for another processor architecture than this machine's",
    ),
    (
        r"no such image|image not known|unable to find image|no such object|initializing source"
        r"|manifest unknown|pull access denied|could not open image|does not resolve to an image",
        "the engine does not have that image",
    ),
    (r"no such container|no container with name", "the engine knows no such container"),
    (
        r"is not running|container state improper|only create exec sessions on running"
        r"|is paused|cannot exec in a stopped",
        "the container is not running",
    ),
    (
        r"exec: \\?\"?(/bin/)?sh\b.{0,500}(not found|no such file)"
        r"|\"?sh\"?: executable file not found|stat sh: no such file",
        "no shell (sh) is on its PATH",
    ),
)
# A runtime could not execute the first program itself: runc's words, and crun's. What it fails of before
# that (a mount, a hook, a control group) is the runtime's own, whatever the exit status.
_EXECUTES = re.compile(r"(?<!/)\bexec:? ")
_NOT_EXECUTED = ("no such file", "permission denied", "not a directory", "is a directory")
_RUNTIME_S = re.compile(
    r"OCI runtime|OCI permission denied|\b(?:runc|crun|conmon)\b[^\n]{0,40}:|error running hook"
    r"|container_linux\.go|failed to create (?:task|shim)|response from daemon",
    re.IGNORECASE,
)
_LONGEST_WORDS = 2000  # characters of an engine's output
# The words of an error in what brings GPUs into a container, which is none of the container's own.
_GPUS = r"nvidia-container-|nvidia-cdi-hook|\bCDI (?:device|host)|select device driver|runtime name: nvidia"
# FIND_PYTHON's: an engine may lose the last words of a container that ends at once (podman 4.3 did).
_SHELL_S = {
    93: "there is no Python in it: neither python3 nor python is on its PATH",
    94: "its Python is older than 3.6, which envcheck needs there",
    95: "its Python does not start",
}
_KILLED = (137, -9)


def explain(location, worker):
    """The NotATarget or Failed for a worker.parent.Worker that is over without an answer."""
    past = "; --entrypoint= looks without it" if location.startswith("image:") else ""
    outcome, words = _why(worker, past)
    sentence = "%s: %s" % (location, words)
    return Failed(outcome, sentence) if outcome else NotATarget(sentence)


def _why(worker, past):
    """(outcome of a Failed, "" of a NotATarget; the sentence's end)."""
    result = worker.result
    if worker.outcome == "timeout" and result.outcome == "stopped":
        words = "its entrypoint has not started the command within %g s: it is a service, or waits"
        return "", (words + " for something") % worker.limits.start + past
    if result.outcome == "timeout":
        return "timeout", "no answer from inside within %g s" % round(result.seconds, 1)
    if result.outcome != "exited":
        who = "it" if result.outcome == "flooded" else "the engine"
        return "refused", "%s %s" % (who, result.describe())
    if worker.outcome == "old":
        version, _space, path = worker.reason.partition(" ")
        return "", "its %s is Python %s, and envcheck needs 3.6 or newer there" % (path, version)
    if worker.outcome == "broken":
        return "", "its %s does not start" % worker.reason
    if worker.outcome == "no-python" or result.code in _SHELL_S:
        return "", _SHELL_S.get(result.code, _SHELL_S[93])
    errors = result.stderr.decode("utf-8", "replace")
    last = _last(errors)
    not_begun = _why_not_begun(result.code, errors, last, past) if worker.begun is None else None
    if not_begun:
        return not_begun
    if result.code in _KILLED:
        words = "it was killed while envcheck looked into it: memory ran out, or it was stopped"
        return "crashed", words
    if worker.begun is None:
        words = "its entrypoint ended with status %d and did not run the command that it was given"
        return "", words % result.code + last + past
    own = re.findall(r"envcheck-collector: (.*)", errors)
    if own and result.code == 2:
        return "", own[-1].strip()
    cut = b'{"result"' in result.stdout
    if not cut and result.code == 0:
        words = "no answer from inside: its entrypoint, or its Python, did not run what was sent"
        return "crashed", words + past
    words = "the answer from inside is %s (status %d%s)"
    return "crashed", words % ("cut off" if cut else "missing", result.code, last)


def _why_not_begun(code, errors, last, past):
    """The same where the shell did not run, by the engine's words; None where those do not say."""
    if re.search(_GPUS, errors, re.IGNORECASE):
        return "refused", "the engine started nothing" + last
    known = [words for pattern, words in _WORDS if re.search(pattern, errors, re.IGNORECASE)]
    if known:
        return "", known[0]
    if code in (125, 126, 127) and any(map(_not_executed, errors.lower().splitlines())):
        return "", "its entrypoint cannot be started" + last + past
    if code in (125, 126) or _RUNTIME_S.search(errors):
        return "refused", "the engine started nothing" + last
    return None


def _not_executed(line):
    """Whether a runtime says in this line that it could not execute the first program."""
    if "executable file" in line and "not found" in line:
        return True
    return bool(_EXECUTES.search(line)) and any(words in line for words in _NOT_EXECUTED)


def _last(errors):
    """The last line, whole."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("@envcheck", "Run 'docker "))]
    return ": " + lines[-1][:_LONGEST_WORDS] if lines else ""
