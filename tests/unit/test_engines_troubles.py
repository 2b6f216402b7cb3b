"""What engines' words mean, and what they print of an image."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from envcheck.install.engines.client import explained
from envcheck.install.engines.engine_storage import Stored, read_inspected

# (engine, what it printed, a word of the hint)
SAID = [
    ("podman", "Error: payload does not match any of the supported image formats", "its digest"),
    ("podman", "Error: write /var/tmp/storage1/1: no space left on device", "podman system df"),
    ("docker", "permission denied while trying to connect to the Docker daemon socket", "usermod"),
    ("docker", "Cannot connect to the Docker daemon at unix:///x.", "systemctl start docker"),
    ("podman", "Error: image used by 3e4ffee635c1: image is in use by a container", "podman rm"),
    (
        "docker",
        "Error response from daemon: container 0123456789ab is using its image",
        "docker rm",
    ),
    ("podman", "Error: Source image rejected: A signature was required", "policy.json"),
    ("docker", "Error response from daemon: unauthorized: required", "docker login"),
    ("podman", "Error: fetching blob: StatusCode: 403, <html>no way</html>", "podman login"),
    ("podman", "Error: reading blob sha256:ab: fetching blob: toomanyrequests: limit", "later"),
    ("podman", "Error: fetching blob: received unexpected HTTP status: 503 Unavailable", "later"),
    ("podman", 'Error: Get "https://x.test/v2/": dial tcp: lookup x.test: no such host', "proxy"),
    ("podman", 'Error: Get "https://x/v2/": x509: certificate signed by unknown', "certs.d"),
]


@pytest.mark.parametrize(("engine", "text", "hint"), SAID)
def test_an_engine_s_words_are_shown_with_what_helps(engine: str, text: str, hint: str) -> None:
    words, advice = explained(engine, text)
    assert words.rstrip(".") in " ".join(text.split())
    assert hint in advice and "{" not in advice


def test_words_that_nobody_knows_are_the_engines_own_last_ones_and_safe() -> None:
    text = "Trying to pull x...\nError: \x1b[31mit\u202e went wrong\n\n"
    sentence, hint = explained("podman", text)
    assert "went wrong" in sentence and sentence.isprintable() and not hint
    assert explained("podman", "") == ("no output", "")


def test_what_an_engine_prints_of_an_image() -> None:
    digest = f"sha256:{'1' * 64}"
    podman = f'[{{"Id": "03dd", "RepoTags": ["localhost/base:1"], "Digest": "{digest}"}}]'
    docker = f'[{{"Id": "sha256:03dd", "RepoDigests": ["a@sha256:1", "a@{digest}"]}}]'
    base = Stored(id="sha256:03dd", digest=digest)
    assert read_inspected(podman.encode()) == replace(base, tags=["localhost/base:1"])
    assert read_inspected(docker.encode()) == replace(base, digests=["a@sha256:1", f"a@{digest}"])
    for nothing in ("[]", "", "{}", "[1]"):
        assert read_inspected(nothing.encode()) is None
