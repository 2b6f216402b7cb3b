"""What engines say when something goes wrong, and what it means: a table, one sentence each."""

from __future__ import annotations

import re

import msgspec

from ...safe_text import one_line

_MANY = 300  # characters of an engine's own words


class Trouble(msgspec.Struct, frozen=True):
    pattern: str  # of the engine's words; a group named "what" is shown
    sentence: str  # "{engine}", "{what}"
    hint: str = ""


TROUBLES = (
    Trouble(  # of a layer that is unpacked: paths in it are the image's
        r"(?:processing tar|untar|unpacking failed|apply(?:ing)? ?layer)[^\n]*: no space left on device",
        "there is no space left in {engine}'s storage",
        "make room (`{engine} system df` shows what its images take, `{engine} info` where they lie), or move"
        " its storage",
    ),
    Trouble(
        r"(?<![^\s:,\"'=(])(?P<what>/[^\s:,\"]*)(?=[\s:,\"])[^\n]*: no space left on device",
        "there is no space left for {engine} at {what}",
        "make room there (`{engine} system df` shows what its images take), or move its storage",
    ),
    Trouble(
        r"no space left on device|disk quota exceeded",
        "there is no space left in {engine}'s storage",
        "make room (`{engine} system df` shows what its images take), or move its storage",
    ),
    Trouble(
        r"permission denied while trying to connect to the docker(?: daemon|[^\n]*api)|"
        r"dial unix (?P<what>\S+): connect: permission denied",
        "this user may not talk to docker's server",
        "sudo usermod -aG docker $USER, and log in again (it amounts to giving the user root)",
    ),
    Trouble(
        r"cannot connect to the docker daemon",
        "docker's server does not answer",
        "sudo systemctl start docker",
    ),
    Trouble(
        r"error (?:acquiring|locking|retrieving)[^\n]*lock|layers\.lock|storage is locked|"
        r"resource temporarily unavailable",
        "{engine}'s storage is locked by another process",
        "wait until the other {engine} is done: ps -C {engine}",
    ),
    Trouble(
        r"image used by (?P<what>[0-9a-f]{12,64})|"
        r"container (?P<other>[0-9a-f]{12,64})(?: is using)?|image is in use by a container",
        "a container of {engine}'s uses the image ({what})",
        "remove the container first: {engine} rm {what}",
    ),
    Trouble(
        r"source image rejected: (?!running image)(?P<lower>[^\n]+)",
        "{engine}'s policy.json rejects the image: {what}",
        "allow it in /etc/containers/policy.json (or ~/.config/containers/policy.json)",
    ),
    Trouble(
        r"source image rejected|is rejected by policy|running image [^\n]* is rejected",
        "{engine}'s policy.json rejects the image",
        "allow it in /etc/containers/policy.json (or ~/.config/containers/policy.json)",
    ),
    Trouble(
        r"(?P<what>/\S*policy\.json): no such file|no policy\.json file found",
        "{engine} has no policy.json, and takes no images without one",
        "install the package containers-common (Debian: golang-github-containers-common)",
    ),
    Trouble(
        r"unsupported manifest (?:media )?type|unsupported docker v1|manifest type [^\n]*unknown|"
        r"unknown manifest type|no matching manifest",
        "{engine} does not know the format of this image's manifest",
        "a newer {engine} may; `{engine} --version` says what is here",
    ),
    Trouble(
        r"wrong diff id|digest (?:did not match|mismatch)|does not match its digest|"
        r"layers? (?:from manifest )?don't match|"
        r"gzip: invalid (?:checksum|header)|zstd: invalid|flate: corrupt",
        "what {engine} received does not match the digest",
    ),
    Trouble(
        r"registry (?P<what>\S+) is blocked in",
        "the registry {what} is blocked in registries.conf",
        "somebody decided so for this machine: /etc/containers/registries.conf and registries.conf.d say it",
    ),
    Trouble(
        r"toomanyrequests: (?P<what>[^\n]+)|(?:too many requests|StatusCode: 429|status: 429)",
        "the registry limits the number of requests: {what}",
        "try again later; a login raises the limit at many registries: {engine} login REGISTRY",
    ),
    Trouble(
        r"(?:unauthorized|(?<!permission )denied): (?P<what>[^\n]+)|invalid username/password[^\n]*",
        "the registry denies access: {what}",
        "log in with {engine} login REGISTRY; for nvcr.io an API key of NGC in NGC_API_KEY does, too",
    ),
    Trouble(
        r"(?:StatusCode|HTTP status|status code from registry):? (?P<what>40[13])",
        "the registry denies access ({what})",
        "log in with {engine} login REGISTRY; for nvcr.io an API key of NGC in NGC_API_KEY does, too",
    ),
    Trouble(
        r"(?:manifest|name|blob) unknown|manifest for \S+ not found|"
        r"(?:StatusCode|HTTP status|status code from registry):? 404",
        "the registry does not have it any more",
        "it was removed there, or a mirror is behind: start again, and it is looked up anew",
    ),
    Trouble(
        r"(?:HTTP status|status code from registry):? (?P<what>\d\d\d[^\n:,]*)|StatusCode: (?P<other>5\d\d)",
        "the registry answers {what}",
        "try again later",
    ),
    Trouble(
        r"lookup (?P<what>[^\s:]+)[^\n]*: (?:no such host|server misbehaving|temporary failure|i/o timeout)",
        "there is no address for {what}",
        "where the network has a proxy, {engine} has to know it (HTTPS_PROXY; docker: its daemon's settings)",
    ),
    Trouble(
        r"dial tcp (?P<what>\S+): (?:connect: )?(?P<lower>[^\n\"]+)",
        "{what} cannot be reached: {lower}",
        "where the network has a proxy, {engine} has to know it (HTTPS_PROXY; docker: its daemon's settings)",
    ),
    Trouble(
        r"x509: (?P<what>[^\n\"]+)",
        "{engine} does not trust the registry's certificate: {what}",
        "put the certificate authority of your network into /etc/containers/certs.d/REGISTRY/ca.crt (docker:"
        " /etc/docker/certs.d/REGISTRY/ca.crt), or into the system's store",
    ),
    Trouble(
        r"server gave HTTP response to HTTPS client",
        "the registry speaks plain http",
        'podman: --allow-insecure HOST allows it; docker: "insecure-registries" in /etc/docker/daemon.json',
    ),
    Trouble(
        r"unexpected EOF|connection reset by peer|TLS handshake timeout|context deadline exceeded",
        "the connection to the registry broke off",
        "the same command goes on with the layers that {engine} has",
    ),
    Trouble(
        r"potentially insufficient uids or gids|lchown [^\n]*: invalid argument",
        "this user has too few subordinate uids for the image",
        "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER, then"
        " podman system migrate",
    ),
    Trouble(
        r"unresolvable CDI devices? (?P<what>\S+)|stat (?P<other>nvidia\.com/gpu=\S+): no such file",
        "{engine} knows no CDI device {what}",
        # podman#26569: 5.5.1 does not read /run/cdi
        "nvidia-ctk cdi list shows the devices, `envcheck doctor` judges the specification; podman 5.5 reads"
        " those in /etc/cdi alone",
    ),
    Trouble(
        r"could not select device driver",
        "docker has no GPU runtime",
        "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
    ),
    Trouble(
        r"error setting rlimit|setrlimit[^\n]*operation not permitted",
        "{engine} may not raise resource limits here",
        "install again: envcheck then checks again what the engine may set",
    ),
)


LOOKED_AT = 4000  # characters of what an engine said, the last ones


def told(engine: str, words: str) -> tuple[str, str]:
    """(a sentence's end, a hint) for what an engine said; its own last line where nobody knows it.

    What is quoted of its words is printable.
    """
    text = words[-LOOKED_AT:]
    for trouble in TROUBLES:
        found = re.search(trouble.pattern, text, re.IGNORECASE)
        if found:
            groups = {name: _shown(value or "") for name, value in found.groupdict().items()}
            lower = groups.get("lower", "")
            lower = lower[:1].lower() + lower[1:]
            what = groups.get("what") or groups.get("other") or lower
            fill = {"engine": engine, "what": what, "lower": lower}
            sentence = trouble.sentence.format_map(fill).replace(" ()", "").removesuffix(": ")
            return sentence, trouble.hint.format_map(fill)
    return _own(engine, text), ""


def _shown(words: str) -> str:
    return one_line(words)[:_MANY].strip().rstrip(".")


def _own(engine: str, text: str) -> str:
    """Its last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    speaking = [
        line for line in lines if re.match(r"(error|fatal|docker):?\b", line, re.IGNORECASE)
    ]
    last = (speaking or lines or ["it said nothing"])[-1]
    last = re.sub(r"^(?:Error|FATAL|docker|Error response from daemon):\s*", "", last)
    return f"{engine} says: {_shown(last)}"
