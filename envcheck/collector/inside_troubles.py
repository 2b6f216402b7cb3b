"""Why nothing came back from inside a container: one sentence, from what the engine and the shell said."""

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
_LONGEST_WORDS = 2000  # characters of what an engine said
# The words of an error in what brings GPUs into a container, which is none of the container's own.
_GPUS = r"nvidia-container-|nvidia-cdi-hook|\bCDI (?:device|host)|select device driver|runtime name: nvidia"
_ENGINE_S_OWN = 125
# FIND_PYTHON's: an engine may lose the last words of a container that ends at once (podman 4.3 did).
_SHELL_S = {
    93: "there is no Python in it: neither python3 nor python is on its PATH",
    94: "its Python is older than 3.6, which envcheck needs there",
    95: "its Python does not start",
}
_PYTHON_S = ("old", "broken", "no-python")
_KILLED = (137, -9)


def silent(location, seconds):
    """The NotATarget for a container whose entrypoint does not come to the command."""
    return NotATarget(
        "%s: its entrypoint has not started the command within %g s: it is a service, or waits for"
        " something%s" % (location, seconds, _past(location))
    )


def _past(location):
    """The remedy where an entrypoint is in the way."""
    return "; --entrypoint= looks without it" if location.startswith("image:") else ""


def explain(location, worker):
    """The NotATarget or Failed for a worker.parent.Worker that is over without an answer."""
    result = worker.result
    errors = result.stderr.decode("utf-8", "replace")
    if worker.outcome == "timeout" and result.outcome == "stopped":
        return silent(location, worker.limits.start)
    if result.outcome == "timeout":
        words = "%s: no answer from inside within %g s"
        return Failed("timeout", words % (location, round(result.seconds, 1)))
    if result.outcome == "flooded":
        return Failed("refused", "%s: it %s without an answer" % (location, result.describe()))
    if result.outcome != "exited":
        return Failed("refused", "%s: the engine %s" % (location, result.describe()))
    if worker.outcome in _PYTHON_S:
        return NotATarget("%s: %s" % (location, _python_s(worker.outcome, worker.reason)))
    if result.code in _SHELL_S:
        return NotATarget("%s: %s" % (location, _SHELL_S[result.code]))
    if worker.begun is None:
        refused = _engine_s(location, result.code, errors)
        if refused is not None:
            return refused
    if result.code in _KILLED:
        return Failed(
            "crashed",
            "%s: it was killed while envcheck looked into it, as the kernel does where memory runs out,"
            " and an engine that stops the container" % location,
        )
    if worker.begun is not None:
        return _without_answer(location, result, errors)
    return NotATarget(
        "%s: its entrypoint ended with status %d and did not run the command that it was given%s%s"
        % (location, result.code, _last(errors), _past(location))
    )


def _without_answer(location, result, errors):
    """The same where the shell inside has begun."""
    own = re.findall(r"envcheck-collector: (.*)", errors)
    if own and result.code == 2:
        return NotATarget("%s: %s" % (location, own[-1].strip()))
    if b'{"result"' not in result.stdout and result.code == 0:
        return Failed(
            "crashed",
            "%s: no answer from inside: its entrypoint, or its Python, took in what envcheck sent by"
            " standard input and did not run it%s" % (location, _past(location)),
        )
    how = "cut off" if b'{"result"' in result.stdout else "missing"
    words = "%s: the answer from inside is %s (status %d%s)"
    return Failed("crashed", words % (location, how, result.code, _last(errors)))


def _python_s(outcome, reason):
    if outcome == "old":
        version, _space, path = reason.partition(" ")
        return "its %s is Python %s, and envcheck needs 3.6 or newer there" % (path, version)
    return "its %s does not start" % reason if outcome == "broken" else _SHELL_S[93]


def _engine_s(location, code, errors):
    """NotATarget or Failed by the engine, before anything of ours ran; None where it was not the engine."""
    if re.search(_GPUS, errors, re.IGNORECASE):
        return Failed("refused", "%s: the engine started nothing%s" % (location, _last(errors)))
    ending = _words_of(errors)
    if ending is not None:
        return NotATarget("%s: %s" % (location, ending))
    last = _last(errors)
    if code in (125, 126, 127) and any(map(_not_executed, errors.lower().splitlines())):
        return NotATarget(
            "%s: its entrypoint cannot be started%s%s" % (location, last, _past(location))
        )
    if code in (_ENGINE_S_OWN, 126) or _RUNTIME_S.search(errors):
        return Failed("refused", "%s: the engine started nothing%s" % (location, last))
    return None


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
