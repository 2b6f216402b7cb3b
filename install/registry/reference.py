"""Names of images, parsed as docker and podman parse them.

Source of the grammar: the reference package of github.com/distribution/distribution.
"""

from __future__ import annotations

import re

import msgspec

from ...exit_codes import UsageError

DOCKER_HUB = "docker.io"
LATEST = "latest"

_LONGEST = 255  # characters of the name, with the registry's
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_IMAGE_ID = re.compile(r"(?:library/)?[0-9a-f]{64}")  # no registry finds an image by it
_HINT = (
    "An image is written like nvcr.io/nvidia/tensorflow:23.03-tf1-py3: its name in small letters, digits and"
    " . _ -, then :TAG, @sha256:DIGEST or both."
)


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """An image's full name, with a tag, a digest, or both."""

    registry: str  # "nvcr.io", "localhost:5000"
    repository: str  # "nvidia/tensorflow"
    tag: str = ""
    digest: str = ""  # "sha256:…"; it takes precedence over the tag

    @property
    def name(self) -> str:
        """ "nvcr.io/nvidia/tensorflow"."""
        return f"{self.registry}/{self.repository}"

    @property
    def wanted(self) -> str:
        """What its registry is asked for."""
        return self.digest or self.tag

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.name}{tag}" + (f"@{self.digest}" if self.digest else "")


def parse(text: str) -> Reference:
    """Parse a name: "ubuntu:22.04" is docker.io/library/ubuntu:22.04. Raises UsageError."""
    scheme, separator, rest = text.partition("://")
    if separator:
        shown = rest.rpartition("@")[2] if "@" in rest.partition("/")[0] else rest  # no password
        raise UsageError(f"an image is named without {scheme[:20]}://", f"Write {shown}.")
    named, at, digest = text.partition("@")
    head, slash, last = named.rpartition("/")
    last, colon, tag = last.partition(":")
    registry, repository = _split(head + slash + last)
    if not (
        _HOST.fullmatch(registry)
        and _REPOSITORY.fullmatch(repository)
        and not _IMAGE_ID.fullmatch(repository)
        and len(registry) + len(repository) < _LONGEST
        and (_TAG.fullmatch(tag) or not colon)
        and (_DIGEST.fullmatch(digest) or not at)
    ):
        lowered = _REPOSITORY.fullmatch(repository.lower()) and repository != repository.lower()
        why = ": it may have no capital letters" if lowered else ""
        raise UsageError(f"{text[:300]!r} is not an image's name{why}", _HINT)
    tag = tag if tag or digest else LATEST
    return Reference(registry=registry, repository=repository, tag=tag, digest=digest)


def _split(name: str) -> tuple[str, str]:
    """Registry and repository. The first part is a host if it looks like one; the default is Docker Hub."""
    first, slash, rest = name.partition("/")
    if slash and (set(first) & set(".:[") or first == "localhost" or first != first.lower()):
        registry, repository = DOCKER_HUB if first == f"index.{DOCKER_HUB}" else first, rest
    else:
        registry, repository = DOCKER_HUB, name
    official = registry == DOCKER_HUB and "/" not in repository
    return registry, f"library/{repository}" if official else repository
