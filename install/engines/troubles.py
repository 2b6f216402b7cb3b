"""What helps where an engine reports an error. What went wrong, it says itself: its words are shown."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...safe_text import one_line

LOOKED_AT = 4000  # characters of what an engine said, the last ones
_SHOWN = 1500  # of its last line, from the end: Go puts the cause there

_LOGIN = (
    "log in with {engine} login REGISTRY; for nvcr.io an API key of NGC in NGC_API_KEY does, too"
)
_PROXY = "where the network has a proxy, {engine} has to know it (HTTPS_PROXY; docker: its daemon's settings)"


_ERROR = re.compile(r"(?:error|fatal|docker)\b", re.IGNORECASE)


class Trouble(NamedTuple):
    pattern: str  # of the engine's words
    hint: str


# The first that matches counts.
TROUBLES = (
    Trouble(
        r"no space left on device|disk quota exceeded",
        "make room (`{engine} system df` shows what its images take, `{engine} info` where they lie), or move"
        " its storage",
    ),
    Trouble(
        r"permission denied while trying to connect to the docker|"
        r"dial unix \S+: connect: permission denied",
        "sudo usermod -aG docker $USER, and log in again (it amounts to giving the user root)",
    ),
    Trouble(r"cannot connect to the docker daemon", "sudo systemctl start docker"),
    Trouble(
        r"error (?:acquiring|locking|retrieving)[^\n]*lock|layers\.lock|storage is locked|"
        r"resource temporarily unavailable",
        "wait until the other {engine} is done: ps -C {engine}",
    ),
    Trouble(
        r"image used by [0-9a-f]{12}|container [0-9a-f]{12}|image is in use by a container",
        "remove that container first: {engine} rm CONTAINER",
    ),
    Trouble(
        r"source image rejected|is rejected by policy|running image [^\n]* is rejected",
        "allow it in /etc/containers/policy.json (or ~/.config/containers/policy.json)",
    ),
    Trouble(
        r"policy\.json: no such file|no policy\.json file found",
        "install the package containers-common (Debian: golang-github-containers-common)",
    ),
    Trouble(
        r"toomanyrequests|too many requests|StatusCode: 429|status: 429",
        "try again later; a login raises the limit at many registries: {engine} login REGISTRY",
    ),
    Trouble(
        r"unauthorized: |(?<!permission )denied: |invalid username/password|"
        r"(?:StatusCode|HTTP status|status code from registry):? 40[13]",
        _LOGIN,
    ),
    Trouble(
        r"(?:manifest|name|blob) unknown|manifest for \S+ not found|"
        r"(?:StatusCode|HTTP status|status code from registry):? 404",
        "it was removed from the registry, or a mirror is behind: start again, and it is looked up anew",
    ),
    Trouble(r"(?:HTTP status|status code from registry|StatusCode):? 5\d\d", "try again later"),
    Trouble(
        r"wrong diff id|digest (?:did not match|mismatch)|does not match its digest|"
        r"layers? (?:from manifest )?don't match|gzip: invalid|"
        r"payload does not match any of the supported image formats",
        "a layer is not what its digest says: copy the archive, or fetch the image, again",
    ),
    Trouble(r"dial tcp|no such host", _PROXY),
    Trouble(
        r"x509: certificate is (?:valid|not valid) for|doesn't contain any IP SANs",
        "the registry's certificate is for another name: write the name that is in it, or have its owner"
        " add this one",
    ),
    Trouble(
        r"x509: certificate has expired or is not yet valid",
        "look at this machine's clock (timedatectl); if it is right, the registry's owner has to renew the"
        " certificate",
    ),
    Trouble(
        r"x509: ",
        "put the certificate authority of your network into /etc/containers/certs.d/REGISTRY/ca.crt (docker:"
        " /etc/docker/certs.d/REGISTRY/ca.crt), or into the system's store",
    ),
    Trouble(
        r"server gave HTTP response to HTTPS client",
        'podman: --allow-insecure HOST allows it; docker: "insecure-registries" in /etc/docker/daemon.json',
    ),
    Trouble(
        r"unexpected EOF|connection reset by peer|TLS handshake timeout|context deadline exceeded",
        "the same command goes on with the layers that {engine} has",
    ),
    Trouble(
        r"potentially insufficient uids or gids|lchown [^\n]*: invalid argument",
        "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER, then"
        " podman system migrate",
    ),
)


def told(engine: str, words: str) -> tuple[str, str]:
    """(the engine's own last words, printable; a hint, or "")."""
    text = words[-LOOKED_AT:]
    found = (one.hint for one in TROUBLES if re.search(one.pattern, text, re.IGNORECASE))
    return _last(text), next(found, "").format(engine=engine)


def _last(text: str) -> str:
    """The last line that begins as an error does, else the last that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it said nothing"]
    errors = [n for n, line in enumerate(lines) if _ERROR.match(line)]
    place = errors[-1] if errors else -1
    # podman lists below such a line what each format of an archive failed of
    last = " ".join(lines[place:]) if lines[place].endswith(":") else lines[place]
    last = re.sub(r"^(?:Error|FATAL|docker|Error response from daemon):\s*", "", last)
    cut = f"…{last[-_SHOWN:]}" if len(last) > _SHOWN else last
    return one_line(cut).strip().rstrip(".")
