"""Resolves an image's name at its registry; every byte of the answer is verified.

Source: the OCI distribution specification 1.1.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import requests

from ...exit_codes import CouldNotLook, UsageError
from ..lockfile import LockedFile
from ..network.errors import HttpError
from . import documents
from .access import Registry
from .documents import LARGEST, ImageIndex
from .image import Image, PullOptions
from .logins import Logins
from .reference import Reference, parse

if TYPE_CHECKING:
    from ..network.session import Session


class RegistryClient:
    """Asks the registries that images are named by. Mirrors are the engine's, which pulls."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._logins = Logins(os.environ)
        self._registries: dict[str, Registry] = {}

    def resolve(self, reference: Reference, machine: str) -> Image:
        """What the registry has for this machine. machine: as ``uname -m`` prints it.

        Raises UsageError for an unknown tag or digest and for something other than a container image, Cannot
        if it has nothing for this machine, CouldNotLook if it does not answer or the content does not match
        its digest.
        """
        data, kind = self._manifest(reference, reference.wanted)
        digest = documents.digest_of(data)
        found = documents.read(reference, data, kind)
        if isinstance(found, ImageIndex):
            chosen = documents.chosen(reference, found, machine)
            data, kind = self._manifest(reference, chosen.digest)
            found = documents.read(reference, data, kind or chosen.media_type)
        if isinstance(found, ImageIndex):
            raise CouldNotLook(f"{reference.registry} sends an index within an index: {reference}")
        config = self._get(reference, "blobs", found.config.digest).content
        _verify(reference, "config", config, found.config.digest)
        return documents.image_of(reference, digest, found, config, machine)

    def options(self, engine: str, image: Image) -> PullOptions:
        """What the engine needs for the pull and does not find by itself."""
        name = parse(image.reference).registry
        registry = self.registry(name)
        login = registry.login
        if login is None or engine in login.engines:
            return PullOptions(insecure=registry.is_insecure, registry=name)
        return PullOptions(
            insecure=registry.is_insecure, registry=name, user=login.user, password=login.password
        )

    def layers(self, image: Image) -> list[LockedFile]:
        """The files to fetch of an image, each once."""
        place = parse(image.reference)
        base = f"{self.registry(place.registry).base}/v2/{place.repository}/blobs"
        return [
            LockedFile(
                name=f"layer {blob.sha256[:12]} of {image.name}",
                url=f"{base}/{blob.digest}",
                sha256=blob.sha256,
                size=blob.size,
            )
            for blob in image.unique_layers
        ]

    def registry_of(self, image: Image) -> Registry:
        return self.registry(parse(image.reference).registry)

    def registry(self, name: str) -> Registry:
        if name not in self._registries:
            self._registries[name] = Registry(self._session, name, self._logins)
        return self._registries[name]

    def _manifest(self, reference: Reference, wanted: str) -> tuple[bytes, str]:
        """The bytes of a manifest or an index, and the media type that the registry gives."""
        answer = self._get(reference, "manifests", wanted)
        for digest in (wanted, answer.headers.get("Docker-Content-Digest", "")):
            if digest.startswith("sha256:"):
                _verify(reference, "manifest", answer.content, digest)
        return answer.content, answer.headers.get("Content-Type", "")

    def _get(self, reference: Reference, kind: str, wanted: str) -> requests.Response:
        registry = self.registry(reference.registry)
        headers = {"Accept": documents.ACCEPT} if kind == "manifests" else {}
        url = f"{registry.base}/v2/{reference.repository}/{kind}/{wanted}"
        try:
            return registry.get(url, headers=headers, limit=LARGEST)
        except HttpError as error:
            if error.status == 404 and kind == "manifests":
                raise _unknown(reference, wanted, error.reason) from None
            if reference.registry in str(error):
                raise
            # The host that failed may be one that the registry redirects to.
            sentence = f"{reference.registry} does not give {reference}: {error}"
            raise CouldNotLook(sentence, error.hint) from None


def _unknown(reference: Reference, wanted: str, reason: str) -> UsageError:
    kind = "digest" if wanted.startswith("sha256:") else "tag"
    reasons = f" ({reason})" if reason else ""
    return UsageError(
        f"{reference.registry} has no {kind} {wanted} of {reference.repository}{reasons}",
        "the name or the tag is mistyped, or it was removed; envcheck releases --mode container lists"
        " NVIDIA's",
    )


def _verify(reference: Reference, what: str, data: bytes, wanted: str) -> None:
    found = documents.digest_of(data)
    if found != wanted:
        raise CouldNotLook(
            f"{reference.registry}: the {what} of {reference} should have the digest {wanted}, and has"
            f" {found}",
            "The registry is broken, or somebody in between changed it. Nothing of it is used.",
        )
