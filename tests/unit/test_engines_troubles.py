"""What engines' words mean, and what they print of an image."""

from __future__ import annotations

import pytest

from envcheck.install.engines import image_inspect
from envcheck.install.engines.troubles import TROUBLES, told

# (engine, what it said, what it means, a word of the hint)
SAID = [
    (
        "podman",
        'Error: writing blob: storing blob to file "/var/tmp/storage123/1": write'
        " /var/tmp/storage123/1: no space left on device",
        "there is no space left for podman at /var/tmp/storage123/1",
        "podman system df",
    ),
    (
        "podman",
        'Error: writing blob: adding layer with blob "sha256:0a": Error processing tar file(exit status 1):'
        " open /etc/group: no space left on device",
        "there is no space left in podman's storage",
        "podman info",
    ),
    (
        "docker",
        "failed to register layer: Error processing tar file(exit status 1): no space left on device",
        "there is no space left in docker's storage",
        "docker system df",
    ),
    (
        "docker",
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/…",
        "this user may not talk to docker's server",
        "usermod",
    ),
    (
        "docker",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?",
        "docker's server does not answer",
        "systemctl start docker",
    ),
    (
        "podman",
        "Error: image used by 3e4ffee635c1d1a31453810e1c3c88276a20a572a149ea56138e148bbc30d188: image"
        " is in use by a container: consider listing external containers",
        "a container of podman's uses the image (3e4ffee635c1d1a31453810e1c3c88276a20a572",
        "podman rm 3e4ffee635c1",
    ),
    (
        "docker",
        "Error response from daemon: conflict: unable to remove repository reference"
        ' "localhost/x:1" (must force) - container 0123456789ab is using its referenced image 9e9b',
        "a container of docker's uses the image (0123456789ab)",
        "docker rm 0123456789ab",
    ),
    (
        "podman",
        "Error: Source image rejected: Running image docker://x is rejected by policy.",
        "podman's policy.json rejects the image",
        "policy.json",
    ),
    (
        "podman",
        "Error: Source image rejected: A signature was required, but no signature exists",
        "podman's policy.json rejects the image: a signature was required, but no signature exists",
        "policy.json",
    ),
    (
        "podman",
        "Error: initializing source docker://nvcr.io/x@sha256:1: registry nvcr.io is blocked in"
        " /etc/containers/registries.conf or /etc/containers/registries.conf.d",
        "the registry nvcr.io is blocked in registries.conf",
        "registries.conf",
    ),
    (
        "podman",
        'Trying to pull nvcr.io/x...\nCopying blob sha256:12\ntime="2" level=warning msg="Failed, retrying'
        ' in 1s"\nError: reading blob sha256:ab: fetching blob: denied: You must accept the terms of use of'
        " team/image\x1b[2J\\u202e at the web site.",
        "the registry denies access: You must accept the terms of use of team/image",
        "podman login",
    ),
    (
        "docker",
        "Error response from daemon: unauthorized: authentication required",
        "the registry denies access: authentication required",
        "docker login",
    ),
    (
        "podman",
        "Error: parsing image configuration: fetching blob: StatusCode: 403, <html>no way</html>",
        "the registry denies access (403)",
        "podman login",
    ),
    (
        "podman",
        "Error: reading blob sha256:ab: fetching blob: toomanyrequests: You have reached your"
        " pull rate limit.",
        "the registry limits the number of requests: You have reached your pull rate limit",
        "later",
    ),
    (
        "podman",
        "Error: writing blob: fetching blob: received unexpected HTTP status: 503 Service Unavailable",
        "the registry answers 503 Service Unavailable",
        "later",
    ),
    (
        "docker",
        "Error response from daemon: manifest for nvcr.io/x@sha256:1 not found: manifest unknown: gone",
        "the registry does not have it any more",
        "",
    ),
    (
        "podman",
        'Error: pinging container registry x.test: Get "https://x.test/v2/": dial tcp: lookup x.test: no such'
        " host",
        "there is no address for x.test",
        "proxy",
    ),
    (
        "podman",
        'Error: pinging container registry x.test:1: Get "https://x.test:1/v2/": dial tcp 10.0.0.1:1:'
        " connect: connection refused",
        "10.0.0.1:1 cannot be reached: connection refused",
        "proxy",
    ),
    (
        "podman",
        'Error: pinging container registry x: Get "https://x/v2/": x509: certificate signed by unknown'
        " authority",
        "podman does not trust the registry's certificate: certificate signed by unknown authority",
        "certs.d",
    ),
    (
        "docker",
        "Error response from daemon: Get https://x/v2/: http: server gave HTTP response to HTTPS client",
        "the registry speaks plain http",
        "insecure",
    ),
    (
        "podman",
        "Error: writing blob: happened during read: unexpected EOF",
        "the connection to the registry broke off",
        "same command",
    ),
    (
        "podman",
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
        "podman knows no CDI device nvidia.com/gpu=all",
        "nvidia-ctk cdi list",
    ),
    (
        "podman",
        "Error: runc: runc create failed: error setting rlimit type 7: operation not permitted",
        "podman may not raise resource limits here",
        "install again",
    ),
    (
        "podman",
        'Error: unsupported manifest media type "application/x"',
        "podman does not know the format of this image's manifest",
        "newer podman",
    ),
]


@pytest.mark.parametrize(("engine", "said", "meaning", "hint"), SAID)
def test_an_engines_words_become_a_sentence(
    engine: str, said: str, meaning: str, hint: str
) -> None:
    sentence, advice = told(engine, said)
    assert sentence.startswith(meaning), sentence
    assert hint in advice


def test_every_pattern_leaves_no_brace_behind() -> None:
    for trouble in TROUBLES:
        fill = {"engine": "podman", "what": "", "lower": ""}
        assert "{" not in trouble.sentence.format_map(fill) + trouble.hint.format_map(fill)


def test_words_that_nobody_knows_are_the_engines_own_last_ones_and_safe() -> None:
    said = "Trying to pull x...\nError: \x1b[31mit\u202e went wrong\n\n"
    sentence, hint = told("podman", said)
    assert sentence.startswith("podman says: ") and sentence.isprintable() and not hint
    assert "went wrong" in sentence
    assert told("podman", "") == ("podman says: it said nothing", "")
    assert len(told("podman", "x" * 5000)[0]) < 400


def test_what_an_engine_prints_of_an_image() -> None:
    podman = '[{"Id": "03dd", "RepoTags": ["localhost/base:1"], "RepoDigests": null}]'
    docker = '[{"Id": "sha256:03dd", "RepoTags": [], "RepoDigests": ["a@sha256:1"]}]'
    assert image_inspect.read(podman) == image_inspect.Stored(
        id="sha256:03dd", tags=["localhost/base:1"]
    )
    assert image_inspect.read(docker) == image_inspect.Stored(
        id="sha256:03dd", digests=["a@sha256:1"]
    )
    for nothing in ("[]", "", "{}", "[1]"):
        assert image_inspect.read(nothing) is None
