"""Resolves an image's name at its registry; every byte of the answer is verified.

Source: the OCI distribution specification 1.1.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import requests

from ...exit_codes import CouldNotLook, EnvcheckError, UsageError
from ..lockfile import LockedFile
from ..network.errors import HttpError
from . import documents
from .access import RegistryAccess
from .documents import LARGEST, ImageIndex
from .image import Image, PullOptions
from .logins import Logins
from .reference import Reference, parse
from .registries_conf import RegistriesConf, Source

if TYPE_CHECKING:
    from ..network.session import Session


class RegistryClient:
    """Asks registries, and the mirrors that the engine would use."""

    def __init__(self, session: Session, conf: RegistriesConf | None = None) -> None:
        self._session = session
        self._conf = conf or RegistriesConf()
        self._logins = Logins(os.environ)
        self._accesses: dict[str, RegistryAccess] = {}
        self._answered: Source | None = None

    def resolve(self, reference: Reference, machine: str) -> Image:
        """What the first mirror that answers, or the registry, has for this machine.

        machine: as ``uname -m`` prints it. Raises UsageError for an unknown tag or digest and for something
        other than a container image, Cannot if the registry is blocked or has nothing for this machine,
        CouldNotLook if no registry answers or the content does not match its digest.
        """
        sources = [
            source
            for source in self._conf.sources(reference)
            if (source.digests if reference.digest else source.tags)
        ]
        for source in sources:
            if source.insecure:
                self._session.allow_insecure(source.registry)
            try:
                image = self._resolve(_at(source, reference), machine)
            except (CouldNotLook, UsageError):
                if source is sources[-1]:
                    raise
                continue
            self._answered = source
            return msgspec.structs.replace(image, reference=str(reference))
        raise CouldNotLook(f"{reference}: registries.conf lists no place for it")

    def options(self, engine: str, image: Image) -> PullOptions:
        """What the engine needs for the pull and does not find by itself."""
        source, asked = self._answered, parse(image.reference)
        if source is None:
            return PullOptions()
        mirrored = (source.registry, source.repository) != (asked.registry, asked.repository)
        access = self._access(source.registry)
        plain = access.base.startswith("http:") or self._session.is_insecure(access.base)
        login = access.login
        if login is None or engine in login.engines:
            login = None
        return PullOptions(
            insecure=plain and not source.insecure and not mirrored,
            registry=source.registry,
            user=login.user if login else "",
            password=login.password if login else "",
        )

    def moved(self, image: Image, machine: str) -> str:
        """A note if the image was requested by tag and digest, and the tag is another image today."""
        asked = parse(image.reference)
        if not (asked.tag and asked.digest):
            return ""
        tagged = msgspec.structs.replace(asked, digest="")
        try:
            today = RegistryClient(self._session, self._conf).resolve(tagged, machine)
        except EnvcheckError as error:
            return f"It is not known whether {tagged} is still this image: {error}."
        if today.manifest.digest == image.manifest.digest:
            return ""
        return f"{tagged} is another image today, {today.digest}; the digest that you named is installed."

    def layers(self, image: Image) -> list[LockedFile]:
        """The files to fetch of an image that this client has resolved, each once."""
        place = parse(image.reference)
        if self._answered is not None:
            place = _at(self._answered, place)
        base = f"{self._access(place.registry).base}/v2/{place.repository}/blobs"
        return [
            LockedFile(
                name=f"layer {blob.sha256[:12]} of {image.name}",
                url=f"{base}/{blob.digest}",
                sha256=blob.sha256,
                size=blob.size,
            )
            for blob in image.unique_layers
        ]

    def _resolve(self, reference: Reference, machine: str) -> Image:
        """One registry's answer."""
        data, kind = self._manifest(reference, reference.wanted)
        digest = documents.digest_of(data)
        found = documents.read(reference, data, kind)
        if isinstance(found, ImageIndex):
            chosen = documents.chosen(reference, found, machine)
            data, kind = self._manifest(reference, chosen.digest)
            found = documents.read(reference, data, kind or chosen.media_type)
            if isinstance(found, ImageIndex):
                raise CouldNotLook(
                    f"{reference.registry} sends an index within an index for {reference}"
                )
        if found.config.size > LARGEST:
            raise CouldNotLook(
                f"{reference.registry}: the config of {reference} is too large:"
                f" {found.config.size >> 20} MiB"
            )
        config = self._get(reference, "blobs", found.config.digest).content
        _verify(reference, "config", config, found.config.digest)
        return documents.image_of(reference, digest, found, config, machine)

    def _manifest(self, reference: Reference, wanted: str) -> tuple[bytes, str]:
        """The bytes of a manifest or an index, and the media type that the registry gives."""
        answer = self._get(reference, "manifests", wanted)
        for digest in (wanted, answer.headers.get("Docker-Content-Digest", "")):
            if digest.startswith("sha256:"):
                _verify(reference, "manifest", answer.content, digest)
        return answer.content, answer.headers.get("Content-Type", "")

    def _get(self, reference: Reference, kind: str, wanted: str) -> requests.Response:
        path = f"{reference.repository}/{kind}/{wanted}"
        headers = {"Accept": documents.ACCEPT} if kind == "manifests" else {}
        try:
            return self._access(reference.registry).get(path, LARGEST, headers=headers)
        except HttpError as error:
            if error.status == 404 and kind == "manifests":
                raise _unknown(reference, wanted, error.said) from None
            if reference.registry in str(error):
                raise
            # The host that failed may be one that the registry redirects to.
            sentence = f"{reference.registry} does not give {reference}: {error}"
            raise CouldNotLook(sentence, error.hint) from None

    def _access(self, registry: str) -> RegistryAccess:
        if registry not in self._accesses:
            self._accesses[registry] = RegistryAccess(self._session, registry, self._logins)
        return self._accesses[registry]


def _at(source: Source, reference: Reference) -> Reference:
    return msgspec.structs.replace(
        reference, registry=source.registry, repository=source.repository
    )


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
