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
_ENGINE_S_OWN = 125
# FIND_PYTHON's: an engine may lose the last words of a container that ends at once (podman 4.3 did).
_SHELL_S = {
    93: "there is no Python in it: neither python3 nor python is on its PATH",
    94: "its Python is older than 3.6, which envcheck needs there",
    95: "its Python does not start",
}
_KILLED = (137, -9)


def explain(location, worker):
    """The NotATarget or Failed for a worker.parent.Worker that is over without an answer."""
    result = worker.result
    errors = result.stderr.decode("utf-8", "replace")
    last = _last(errors)
    past = "; --entrypoint= looks without it" if location.startswith("image:") else ""

    def no_target(words):
        return NotATarget("%s: %s" % (location, words))

    def failed(outcome, words):
        return Failed(outcome, "%s: %s" % (location, words))

    if worker.outcome == "timeout" and result.outcome == "stopped":
        words = "its entrypoint has not started the command within %g s: it is a service, or waits"
        return no_target((words + " for something") % worker.limits.start + past)
    if result.outcome == "timeout":
        return failed("timeout", "no answer from inside within %g s" % round(result.seconds, 1))
    if result.outcome != "exited":
        who = "it" if result.outcome == "flooded" else "the engine"
        return failed("refused", "%s %s" % (who, result.describe()))
    if worker.outcome == "old":
        version, _space, path = worker.reason.partition(" ")
        words = "its %s is Python %s, and envcheck needs 3.6 or newer there"
        return no_target(words % (path, version))
    if worker.outcome == "broken":
        return no_target("its %s does not start" % worker.reason)
    if worker.outcome == "no-python" or result.code in _SHELL_S:
        return no_target(_SHELL_S.get(result.code, _SHELL_S[93]))
    if worker.begun is None:
        known = _words_of(errors)
        if known is not None and not re.search(_GPUS, errors, re.IGNORECASE):
            return no_target(known)
        if re.search(_GPUS, errors, re.IGNORECASE):
            return failed("refused", "the engine started nothing" + last)
        lines = errors.lower().splitlines()
        if result.code in (_ENGINE_S_OWN, 126, 127) and any(map(_not_executed, lines)):
            return no_target("its entrypoint cannot be started" + last + past)
        if result.code in (_ENGINE_S_OWN, 126) or _RUNTIME_S.search(errors):
            return failed("refused", "the engine started nothing" + last)
    if result.code in _KILLED:
        words = "it was killed while envcheck looked into it: memory ran out, or it was stopped"
        return failed("crashed", words)
    if worker.begun is None:
        words = "its entrypoint ended with status %d and did not run the command that it was given"
        return no_target(words % result.code + last + past)
    own = re.findall(r"envcheck-collector: (.*)", errors)
    if own and result.code == 2:
        return no_target(own[-1].strip())
    cut = b'{"result"' in result.stdout
    if not cut and result.code == 0:
        words = "no answer from inside: its entrypoint, or its Python, did not run what was sent"
        return failed("crashed", words + past)
    words = "the answer from inside is %s (status %d%s)"
    return failed("crashed", words % ("cut off" if cut else "missing", result.code, last))


def _words_of(errors):
    if isinstance(errors, bytes):
        errors = errors.decode("utf-8", "replace")
    found = (ending for pattern, ending in _WORDS if re.search(pattern, errors, re.IGNORECASE))
    return next(found, None)


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
