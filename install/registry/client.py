"""What a reference is today: the registry is asked once, and every byte of its answer is verified.

Source: the OCI distribution specification 1.1.
"""

from __future__ import annotations

import difflib
import os
import re
from typing import TYPE_CHECKING, Any

import msgspec

from ...exit_codes import CouldNotLook, EnvcheckError, UsageError
from .. import foreign_json
from ..lockfile import LockedFile
from ..network.errors import HttpError
from . import documents
from .access import RegistryAccess
from .documents import LARGEST, ImageIndex
from .image import Blob, Image, PullOptions
from .logins import Logins
from .reference import Reference, parse
from .registries_conf import RegistriesConf, Source

if TYPE_CHECKING:
    from ..network.session import Session

_MOST_TAGS = 1000
_NEAREST = 5


class _Tags(msgspec.Struct):
    tags: list[str] | None = None


class RegistryClient:
    """Asks registries what an image is, in the places where the engine would look for it."""

    def __init__(self, session: Session, conf: RegistriesConf | None = None) -> None:
        """conf: for engines that obey registries.conf."""
        self._session = session
        self._conf = conf or RegistriesConf()
        self._logins = Logins(os.environ)
        self._accesses: dict[str, RegistryAccess] = {}
        self._answered: Source | None = None

    def resolve(self, reference: Reference, machine: str) -> Image:
        """What a registry, or its first mirror that answers, has for this machine, verified.

        machine: as ``uname -m`` says it, "x86_64". Raises UsageError for a tag or a digest that the registry
        has not and for what is no container image, Cannot where it is blocked or there is none for this
        machine, and CouldNotLook where no place answers, or sends other bytes than their digest names.
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
        """What the engine has to be told for the pull, beside what it finds by itself."""
        source, asked = self._answered, parse(image.reference)
        if source is None:
            return PullOptions()
        moved = (source.registry, source.repository) != (asked.registry, asked.repository)
        access = self._access(source.registry)
        insecure = not source.insecure and (
            access.base.startswith("http:") or self._session.is_insecure(access.base)
        )
        login = access.login
        known = login is None or not login.user or engine in login.engines
        return PullOptions(
            insecure=insecure and not moved,
            registry=source.registry,
            user="" if known or login is None else login.user,
            password="" if known or login is None else login.password,
        )

    def moved(self, image: Image, machine: str) -> str:
        """What is to be said of the tag of an image that was asked for by tag and digest; "" where the tag
        still is that image, or was not named."""
        asked = parse(image.reference)
        if not (asked.tag and asked.digest):
            return ""
        tagged = msgspec.structs.replace(asked, digest="")
        try:
            today = RegistryClient(self._session, self._conf).resolve(tagged, machine)
        except EnvcheckError as error:
            return f"Whether {tagged} is still this image could not be asked: {error}."
        if today.manifest.digest == image.manifest.digest:
            return ""
        return (
            f"{tagged} is another image today, {today.digest}: the one of the digest that you named is"
            " installed."
        )

    def layers(self, image: Image) -> list[LockedFile]:
        """What is to be fetched of an image that this client has resolved, each file once."""
        place = parse(image.reference)
        if self._answered is not None:
            place = _at(self._answered, place)
        return [
            LockedFile(
                name=f"layer {blob.sha256[:12]} of {image.name}",
                url=self._url(place, "blobs", blob.digest),
                sha256=blob.sha256,
                size=blob.size,
            )
            for blob in {blob.digest: blob for blob in image.layers}.values()
        ]

    def _resolve(self, reference: Reference, machine: str) -> Image:
        """One place's answer."""
        data, said = self._manifest(reference, reference.wanted)
        digest = documents.digest_of(data)
        found = documents.read(reference, data, said)
        if isinstance(found, ImageIndex):
            chosen = documents.chosen(reference, found, machine)
            data, said = self._manifest(reference, chosen.digest)
            found = documents.read(reference, data, said or chosen.media_type)
            if isinstance(found, ImageIndex):
                raise CouldNotLook(
                    f"{reference.registry} sends a broken index for {reference}: it is in another index"
                )
        config = self._config(reference, found.config)
        return documents.image_of(reference, digest, found, config, machine)

    def _manifest(self, reference: Reference, wanted: str) -> tuple[bytes, str]:
        """A manifest's or an index's bytes, and what the registry calls their type."""
        try:
            answer = self._get(reference, "manifests", wanted, headers={"Accept": documents.ACCEPT})
        except HttpError as error:
            if error.status == 404:
                raise self._unknown(reference, wanted, error.said) from None
            raise _named(reference, error) from None
        for digest in (wanted, answer.headers.get("Docker-Content-Digest", "")):
            if digest.startswith("sha256:"):
                _verify(reference, "manifest", answer.content, digest)
        return answer.content, answer.headers.get("Content-Type", "")

    def _config(self, reference: Reference, blob: Blob) -> bytes:
        if blob.size > LARGEST:
            raise CouldNotLook(
                f"{reference.registry} sends a broken manifest of {reference}: its config has"
                f" {blob.size >> 20} MiB"
            )
        try:
            answer = self._get(reference, "blobs", blob.digest)
        except HttpError as error:
            raise _named(reference, error) from None
        _verify(reference, "config", answer.content, blob.digest)
        return bytes(answer.content)

    def _unknown(self, reference: Reference, wanted: str, said: str) -> UsageError:
        words = f" (it says: {said})" if said else ""
        if wanted.startswith("sha256:"):
            return UsageError(f"{reference.registry} has no {reference.name}@{wanted}{words}")
        tags = self._tags(reference)
        if tags is None:
            return UsageError(
                f"{reference.registry} has no {reference.repository}:{wanted}{words}",
                "Its name or its tag is mistyped, or it was removed there.",
            )
        near = difflib.get_close_matches(wanted, tags, _NEAREST, cutoff=0.5)
        near = near or sorted(tags)[-_NEAREST:]
        hint = f"The nearest that it has: {', '.join(near)}." if near else "It has no tags at all."
        return UsageError(
            f"{reference.registry} has {reference.repository}, but no tag {wanted}", hint
        )

    def _tags(self, reference: Reference) -> list[str] | None:
        """The repository's first tags; None where its registry does not tell them."""
        try:
            answer = self._get(reference, "tags", f"list?n={_MOST_TAGS}", attempts=1, timeout=10.0)
            tags = foreign_json.decode(answer.content, _Tags).tags or []
        except (HttpError, ValueError):
            return None
        return [tag for tag in tags if re.fullmatch(r"[\w.-]{1,128}", tag, re.ASCII)]

    def _get(self, place: Reference, kind: str, wanted: str, **how: Any) -> Any:
        """The registry's answer, of a bounded size and in a bounded time. Raises HttpError."""
        path = f"{place.repository}/{kind}/{wanted}"
        return self._access(place.registry).get(path, LARGEST, **how)

    def _url(self, place: Reference, kind: str, wanted: str) -> str:
        return f"{self._access(place.registry).base}/v2/{place.repository}/{kind}/{wanted}"

    def _access(self, registry: str) -> RegistryAccess:
        if registry not in self._accesses:
            self._accesses[registry] = RegistryAccess(self._session, registry, self._logins)
        return self._accesses[registry]


def _at(source: Source, reference: Reference) -> Reference:
    return msgspec.structs.replace(
        reference, registry=source.registry, repository=source.repository
    )


def _verify(reference: Reference, what: str, data: bytes, wanted: str) -> None:
    found = documents.digest_of(data)
    if found != wanted:
        raise CouldNotLook(
            f"{reference.registry} gives another {what} of {reference} than it should: its digest is"
            f" {found}, and should be {wanted}",
            "The registry is broken, or somebody in between changed it: nothing of it is used.",
        )


def _named(reference: Reference, error: HttpError) -> CouldNotLook:
    """The registry's name belongs into every sentence; a server of tokens or of files is another host."""
    if reference.registry in str(error):
        return error
    return CouldNotLook(f"{reference.registry} does not give {reference}: {error}", error.hint)
