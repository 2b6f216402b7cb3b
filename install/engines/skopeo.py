"""Asks a registry with skopeo what an image is: by the engines' own mirrors, logins and certificates.

Every byte is verified again. Source: skopeo-inspect(1).
"""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from ... import scratch
from ...checks.system_commands import on_system
from ...exit_codes import Cannot, CouldNotLook, UsageError
from ...facts.snapshot import Snapshot
from ...facts.view import SnapshotView
from ..network import addresses
from ..registry import documents
from ..registry.documents import ImageIndex
from ..registry.image import Image, PullOptions
from ..registry.reference import Reference
from .client import ask, explained, words

LOGIN = "config.json"  # in the format of `podman login` and `docker login`
_NGC = "nvcr.io"
_SECONDS = 120.0  # for one document
_FATAL = re.compile(r'level=fatal msg="((?:[^"\\]|\\.)*)"')
_PREFIX = re.compile(r'^Error [\w ]+ ".*?": ')
_UNKNOWN = re.compile(r"(?:manifest|name) unknown|repository name not known|StatusCode: 404")

Inspect = Callable[..., bytes]  # what skopeo says of a reference, with these options


def program(snapshot: Snapshot) -> str:
    """skopeo's path. Raises Cannot, with the command that installs it."""
    if found := shutil.which("skopeo"):
        return found
    commands = on_system(SnapshotView(snapshot), "skopeo") or ["install skopeo"]
    raise Cannot(
        "skopeo, which asks registries for images before they are pulled, is not installed here",
        "; ".join(commands),
    )


def options_of(reference: Reference, allow_insecure: list[str]) -> PullOptions:
    """What skopeo and the engine need beside their own settings: NGC_API_KEY, and leave to go without TLS."""
    url = f"https://{reference.registry}"
    names = {reference.registry, reference.registry.partition(":")[0]}
    insecure = bool(names & {*allow_insecure}) or addresses.is_loopback(url)
    found = PullOptions(insecure=insecure, registry=reference.registry)
    key = os.environ.get("NGC_API_KEY", "").strip()
    if reference.registry != _NGC or not key:
        return found
    return msgspec.structs.replace(found, user="$oauthtoken", password=key)


def write_login(options: PullOptions, folder: Path) -> bool:
    """Whether there is one to write. folder: the user's alone."""
    if not options.user:
        return False
    pair = base64.b64encode(f"{options.user}:{options.password}".encode()).decode()
    content = msgspec.json.encode({"auths": {options.registry: {"auth": pair}}})
    (folder / LOGIN).write_bytes(content)
    return True


def resolve(
    skopeo: str, reference: Reference, machine: str, options: PullOptions, engine: str
) -> Image:
    """What the registry has for this machine. machine: as ``uname -m`` prints it. engine: for the hints.

    Raises UsageError for an unknown tag or digest and for something other than a container image, Cannot if
    it has nothing for this machine, CouldNotLook if it does not answer or the content does not match its
    digest.
    """
    with scratch.directory() as folder:
        flags = ["--tls-verify=false"] if options.insecure else []
        flags += ["--authfile", str(folder / LOGIN)] if write_login(options, folder) else []

        def inspect(wanted: str, *more: str) -> bytes:
            tail = f"@{wanted}" if wanted.startswith("sha256:") else f":{wanted}"
            argv = ["inspect", "--raw", *flags, *more, f"docker://{reference.name}{tail}"]
            result = ask(skopeo, argv, deadline=_SECONDS)
            if result.ok:
                return bytes(result.stdout)
            if result.outcome != "exited":
                raise CouldNotLook(
                    f"{reference.registry} does not answer: skopeo {result.describe()}"
                )
            raise _refusal(reference, wanted, words(result), engine)

        return _resolved(reference, machine, inspect)


def _resolved(reference: Reference, machine: str, inspect: Inspect) -> Image:
    data = inspect(reference.wanted)
    digest = documents.digest_of(data)
    if reference.digest:
        _verify(reference, "manifest", data, reference.digest)
    found = documents.read(reference, data)
    if isinstance(found, ImageIndex):
        chosen = documents.chosen(reference, found, machine)
        data = inspect(chosen)
        _verify(reference, "manifest", data, chosen)
        found = documents.read(reference, data)
    if isinstance(found, ImageIndex):
        raise CouldNotLook(f"{reference.registry} sends an index within an index: {reference}")
    config = inspect(documents.digest_of(data), "--config")
    _verify(reference, "config", config, found.config.digest)
    return documents.image_of(reference, digest, data, found, config, machine)


def _refusal(
    reference: Reference, wanted: str, text: str, engine: str
) -> UsageError | CouldNotLook:
    fatal = _FATAL.search(text)
    text = re.sub(r"\\(.)", r"\1", fatal[1].replace("\\n", " ")) if fatal else text
    if _UNKNOWN.search(text):
        kind = "digest" if wanted.startswith("sha256:") else "tag"
        return UsageError(
            f"{reference.registry} has no {kind} {wanted} of {reference.repository}",
            "the name or the tag is mistyped, or it was removed; envcheck releases --mode container lists"
            " NVIDIA's",
        )
    reason, hint = explained(engine, _PREFIX.sub("", text))
    return CouldNotLook(f"{reference.registry} does not give {reference}: {reason}", hint)


def _verify(reference: Reference, what: str, data: bytes, wanted: str) -> None:
    found = documents.digest_of(data)
    if found != wanted:
        raise CouldNotLook(
            f"{reference.registry}: the {what} of {reference} should have the digest {wanted}, and has"
            f" {found}",
            "The registry is broken, or somebody in between changed it. Nothing of it is used.",
        )
