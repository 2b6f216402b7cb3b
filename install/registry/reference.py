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
    _refuse_other_notations(text)
    named, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise _wrong(text, f"{digest!r} is not a digest: sha256: and 64 digits of 0-9a-f", "")
    head, slash, last = named.rpartition("/")
    last, colon, tag = last.partition(":")
    if colon and not _TAG.fullmatch(tag):
        raise _wrong(
            text,
            f"{tag!r} is not a tag: letters, digits, ., - and _ (no . or - in front), at most 128",
        )
    registry, repository = _parted(head + slash + last)
    if not _HOST.fullmatch(registry):
        raise _wrong(text, f"{registry!r} is not a registry's host name")
    _check_repository(text, repository)
    if len(registry) + 1 + len(repository) > _MOST:
        raise _wrong(text, f"the name has more than {_MOST} characters")
    if not (tag or digest):
        tag = LATEST
    return Reference(registry=registry, repository=repository, tag=tag, digest=digest)


def _parted(name: str) -> tuple[str, str]:
    """Registry and repository: the first part is a host where it looks like one, else Docker Hub is meant."""
    first, slash, rest = name.partition("/")
    if slash and (set(first) & set(".:[") or first == "localhost" or first != first.lower()):
        registry = DOCKER_HUB if first == f"index.{DOCKER_HUB}" else first
        # The library stands for what has no owner, on Docker Hub alone.
        if registry == DOCKER_HUB and "/" not in rest:
            return registry, f"library/{rest}"
        return registry, rest
    return DOCKER_HUB, name if slash else f"library/{name}"


def _check_repository(text: str, repository: str) -> None:
    for part in repository.split("/"):
        if _PART.fullmatch(part):
            continue
        if not part:
            raise _wrong(text, "a part of the name is empty")
        if _PART.fullmatch(part.lower()):
            raise _wrong(text, f"{part!r} has capital letters, which an image's name may not have")
        raise _wrong(
            text,
            f"{part!r} is not a part of a name: letters a-z and digits, with ., _ or - in between",
        )
    if _HEX.fullmatch(repository.removeprefix("library/")):
        raise _wrong(text, "this is an image's id, and registries find images by name only")


def _refuse_other_notations(text: str) -> None:
    if not text:
        raise UsageError("an image's name is missing", _EXAMPLE)
    scheme, separator, rest = text.partition("://")
    if separator:
        # What a password would stand in is not repeated.
        shown = rest.rpartition("@")[2] if "@" in rest.partition("/")[0] else rest
        raise UsageError(
            f"an image is named without {scheme[:20]}://",
            f"Write {shown} alone." if shown else _EXAMPLE,
        )
    if "#" in text:
        raise _wrong(text, "it has a #", f"Write {text.replace('#', '/', 1)}: with / for it.")
    odd = next((c for c in text if c.isspace() or not c.isprintable()), "")
    if odd:
        raise _wrong(text, f"it holds {odd!r}")


def _wrong(text: str, what: str, hint: str = _EXAMPLE) -> UsageError:
    shown = text if len(text) <= 300 else f"{text[:300]}…"
    return UsageError(f"{shown!r} is not an image's name: {what}", hint)
