"""What people write for an image, understood as docker and podman understand it.

Source of the grammar: the reference package of github.com/distribution/distribution.
"""

from __future__ import annotations

import re

import msgspec

from ...exit_codes import UsageError

DOCKER_HUB = "docker.io"
LATEST = "latest"

_MOST = 255  # characters of the name, the registry's included
_HOST = re.compile(
    r"(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
    r"(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
)
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HEX = re.compile(r"[0-9a-f]{64}")

_EXAMPLE = "An image is written like nvcr.io/nvidia/tensorflow:23.03-tf1-py3."


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """An image's whole name, and which one of that name: a tag, a digest, or both."""

    registry: str  # "nvcr.io", "localhost:5000"
    repository: str  # "nvidia/tensorflow"
    tag: str = ""
    digest: str = ""  # "sha256:…"; where there is one, the tag decides nothing

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
    """ "ubuntu:22.04" is docker.io/library/ubuntu:22.04. Raises UsageError, which names what is wrong."""
    scheme, separator, rest = text.partition("://")
    if separator:
        # What a password would stand in is not repeated.
        shown = rest.rpartition("@")[2] if "@" in rest.partition("/")[0] else rest
        raise UsageError(f"an image is named without {scheme[:20]}://", f"Write {shown} alone.")
    named, at, digest = text.partition("@")
    head, slash, last = named.rpartition("/")
    last, colon, tag = last.partition(":")
    registry, repository = _parted(head + slash + last)
    part = next((p for p in repository.split("/") if not _PART.fullmatch(p)), None)
    for is_wrong, what in (
        (
            at and not _DIGEST.fullmatch(digest),
            f"{digest!r} is not sha256: and 64 digits of 0-9a-f",
        ),
        (
            colon and not _TAG.fullmatch(tag),
            f"{tag!r} is not a tag: letters, digits, ., - and _ (no . or - in front), at most 128",
        ),
        (not _HOST.fullmatch(registry), f"{registry!r} is not a registry's host name"),
        (
            part is not None,
            f"{part!r} is not a part of a name: a-z (no capital letters) and digits, with ., _ or - in"
            " between",
        ),
        (
            len(registry) + 1 + len(repository) > _MOST,
            f"the name has more than {_MOST} characters",
        ),
        (
            _HEX.fullmatch(repository.removeprefix("library/")),
            "this is an image's id, and registries find images by name only",
        ),
    ):
        if is_wrong:
            shown = text if len(text) <= 300 else f"{text[:300]}…"
            raise UsageError(f"{shown!r} is not an image's name: {what[:200]}", _EXAMPLE)
    tag = tag if tag or digest else LATEST
    return Reference(registry=registry, repository=repository, tag=tag, digest=digest)


def _parted(name: str) -> tuple[str, str]:
    """Registry and repository: the first part is a host where it looks like one, else Docker Hub is meant."""
    first, slash, rest = name.partition("/")
    if slash and (set(first) & set(".:[") or first == "localhost" or first != first.lower()):
        registry, repository = DOCKER_HUB if first == f"index.{DOCKER_HUB}" else first, rest
    else:
        registry, repository = DOCKER_HUB, name
    # The library stands for what has no owner, on Docker Hub alone.
    alone = registry == DOCKER_HUB and "/" not in repository
    return registry, f"library/{repository}" if alone else repository
