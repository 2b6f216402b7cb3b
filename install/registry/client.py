"""What a reference is today: the registry is asked once, and every byte of its answer is verified.

Source: the OCI distribution specification 1.1.
"""

from __future__ import annotations

import difflib
import os
import re
from typing import TYPE_CHECKING

import msgspec
import requests

from ...exit_codes import Cannot, CouldNotLook, UsageError
from ..lockfile import LockedFile
from ..network.errors import HttpError
from . import documents
from .documents import LARGEST, ImageIndex, ImageManifest
from .image import Image, PullOptions
from .logins import Logins
from .reference import Reference, parse
from .registries_conf import RegistriesConf, Source
from .tokens import SCHEME, Registries

if TYPE_CHECKING:
    from ..network.session import Session

_TAGS_AT_ONCE = 1000
_MOST_TAG_PAGES = 5
_NEAREST = 5


class _Tags(msgspec.Struct):
    tags: list[str] | None = None


class RegistryClient:
    """Asks registries what an image is, in the places where the engine would look for it."""

    def __init__(
        self, session: Session, conf: RegistriesConf | None = None, logins: Logins | None = None
    ) -> None:
        """conf: for engines that obey registries.conf. logins: None looks where this user's engines do."""
        self._session = session
        self._conf = conf or RegistriesConf()
        self._registries = Registries(session, logins or Logins(os.environ))
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
            place = msgspec.structs.replace(
                reference, registry=source.registry, repository=source.repository
            )
            try:
                image = _resolve(self._session, place, machine)
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
        base = self._registries.base(source.registry)
        insecure = not source.insecure and (
            base.startswith("http:") or self._session.is_insecure(base)
        )
        login = self._registries.login_used(source.registry)
        known = login is None or not login.user or engine in login.engines
        return PullOptions(
            insecure=insecure and not moved,
            registry=source.registry,
            user="" if known or login is None else login.user,
            password="" if known or login is None else login.password,
        )

    def layers(self, image: Image) -> list[LockedFile]:
        """What is to be fetched of an image that this client has resolved, each file once."""
        place = parse(image.reference)
        if self._answered is not None:
            source = self._answered
            place = msgspec.structs.replace(
                place, registry=source.registry, repository=source.repository
            )
        return [
            LockedFile(
                name=f"layer {blob.sha256[:12]} of {image.name}",
                url=_url(place, "blobs", blob.digest),
                sha256=blob.sha256,
                size=blob.size,
            )
            for blob in {blob.digest: blob for blob in image.layers}.values()
        ]


def _resolve(session: Session, reference: Reference, machine: str) -> Image:
    """One place's answer. An index's entry that names no platform is looked at."""
    data, said = _manifest(session, reference, reference.wanted)
    digest = documents.digest_of(data)
    read = documents.read(reference, data, said)
    if not isinstance(read, ImageIndex):
        config = _config(session, reference, read)
        return documents.image_of(reference, digest, read, config, machine)
    refused: Cannot | None = None
    for chosen in documents.candidates(reference, read, machine):
        data, said = _manifest(session, reference, chosen.digest)
        found = documents.read(reference, data, said or chosen.media_type)
        if isinstance(found, ImageIndex):
            raise CouldNotLook(
                f"{reference.registry} sends a broken index for {reference}: it is in another index"
            )
        config = _config(session, reference, found)
        try:
            return documents.image_of(reference, digest, found, config, machine)
        except Cannot as error:
            refused = refused or error
    assert refused is not None, "there are candidates"
    raise refused


def _url(reference: Reference, kind: str, wanted: str) -> str:
    return f"{SCHEME}://{reference.registry}/v2/{reference.repository}/{kind}/{wanted}"


def _manifest(session: Session, reference: Reference, wanted: str) -> tuple[bytes, str]:
    """A manifest's or an index's bytes, and what the registry calls their type."""
    url = _url(reference, "manifests", wanted)
    try:
        with session.get(url, headers={"Accept": documents.ACCEPT}, limit=LARGEST) as answer:
            data = answer.content
    except HttpError as error:
        if error.status == 404:
            raise _unknown(session, reference, wanted) from None
        raise _named(reference, error) from None
    found = documents.digest_of(data)
    _verify(reference, "manifest", found, wanted if wanted.startswith("sha256:") else "")
    header = answer.headers.get("Docker-Content-Digest", "")
    _verify(reference, "manifest", found, header if header.startswith("sha256:") else "")
    return data, answer.headers.get("Content-Type", "")


def _config(session: Session, reference: Reference, manifest: ImageManifest) -> bytes:
    blob = manifest.config
    if blob.size > LARGEST:
        raise CouldNotLook(
            f"{reference.registry} sends a broken manifest of {reference}: its config has"
            f" {blob.size >> 20} MiB"
        )
    try:
        with session.get(_url(reference, "blobs", blob.digest), limit=LARGEST) as answer:
            data: bytes = answer.content
    except HttpError as error:
        raise _named(reference, error) from None
    _verify(reference, "config", documents.digest_of(data), blob.digest)
    return data


def _verify(reference: Reference, what: str, found: str, wanted: str) -> None:
    if wanted and found != wanted:
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


def _unknown(session: Session, reference: Reference, wanted: str) -> UsageError:
    tags = _tags(session, reference)
    if wanted.startswith("sha256:"):
        return UsageError(f"{reference.registry} has no {reference.name}@{wanted}")
    if tags is None:
        return UsageError(
            f"{reference.registry} has no {reference.repository}:{wanted}",
            "Its name or its tag is mistyped, or it was removed there.",
        )
    near = _nearest(wanted, tags)
    hint = f"The nearest that it has: {', '.join(near)}." if near else "It has no tags at all."
    return UsageError(f"{reference.registry} has {reference.repository}, but no tag {wanted}", hint)


def _nearest(wanted: str, tags: list[str]) -> list[str]:
    near = difflib.get_close_matches(wanted, tags, _NEAREST, cutoff=0.5)
    return near or sorted(tags)[-_NEAREST:]


def _tags(session: Session, reference: Reference) -> list[str] | None:
    """The repository's tags, as far as the registry tells them; None where it does not."""
    found: list[str] = []
    last = ""
    for _ in range(_MOST_TAG_PAGES):
        query = f"?n={_TAGS_AT_ONCE}" + (f"&last={last}" if last else "")
        try:
            url = _url(reference, "tags", "list") + query
            with session.get(url, attempts=1, timeout=10.0, limit=LARGEST) as answer:
                page = msgspec.json.decode(answer.content, type=_Tags).tags or []
        except (HttpError, msgspec.DecodeError, RecursionError):
            return found or None
        found += [tag for tag in page if re.fullmatch(r"[\w.-]{1,128}", tag, re.ASCII)]
        if not (_continues(answer) and page):
            break
        last = page[-1]
    return found


def _continues(answer: requests.Response) -> bool:
    return 'rel="next"' in answer.headers.get("Link", "").replace("rel=next", 'rel="next"')
