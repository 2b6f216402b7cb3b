"""registries.conf, as podman and apptainer read it: an image's mirrors, and registries that are blocked.

Source: containers-registries.conf(5), version 2 of the format.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import tomli

from ...exit_codes import Cannot, UsageError
from .reference import Reference

_SYSTEM = Path("/etc/containers")
_LARGEST = 1 << 20  # bytes of a file


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where an image can be found: a mirror, or its own registry."""

    registry: str  # "mirror.example:5000"
    repository: str  # "nvidia/tensorflow"
    insecure: bool = False  # the file allows plain http, or any certificate
    tags: bool = True  # may be asked for tags
    digests: bool = True  # may be asked for digests


class _Location(msgspec.Struct, rename="kebab"):
    location: str = ""
    insecure: bool = False
    pull_from_mirror: str = "all"  # "digest-only", "tag-only"; of a mirror


class _RegistryEntry(_Location, rename="kebab"):
    prefix: str = ""
    blocked: bool = False
    mirror_by_digest_only: bool = False
    mirror: list[_Location] = []


class _ConfFile(msgspec.Struct):
    registry: list[_RegistryEntry] = []


class RegistriesConf:
    """What the files say. Without any, every image comes from the registry in its name."""

    def __init__(self) -> None:
        self._registries: dict[str, _RegistryEntry] = {}  # by prefix

    def add(self, text: str, path: str = "") -> None:
        """Read one more file, whose entries replace earlier ones of the same prefix. Raises UsageError."""
        try:
            found = msgspec.convert(tomli.loads(text), _ConfFile).registry
            if not all(one.prefix or one.location for one in found):
                raise ValueError("an entry has neither a prefix nor a location")
        except (ValueError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise UsageError(
                f"{path} is not a registries.conf: {why[:200]}",
                "correct it, or name another file in CONTAINERS_REGISTRIES_CONF",
            ) from None
        self._registries |= {(one.prefix or one.location).rstrip("/"): one for one in found}

    def sources(self, reference: Reference) -> list[Source]:
        """The mirrors, then the registry itself. Raises Cannot if it is blocked."""
        covering = [prefix for prefix in self._registries if _covers(prefix, reference)]
        if not covering:
            return [Source(registry=reference.registry, repository=reference.repository)]
        prefix = max(covering, key=len)
        entry = self._registries[prefix]
        if entry.blocked:
            raise Cannot(
                f"{reference}: registries.conf blocks {prefix}",
                "see /etc/containers/registries.conf and registries.conf.d",
            )
        sources = [_source(one, prefix, reference) for one in entry.mirror]
        if entry.mirror_by_digest_only:
            sources = [msgspec.structs.replace(one, tags=False) for one in sources]
        return [*sources, _source(entry, prefix, reference)]


def of_engine(engine: str, environ: Mapping[str, str] = os.environ) -> RegistriesConf:
    """What this engine reads, in its order; docker and enroot have settings of their own."""
    conf = RegistriesConf()
    if engine not in ("podman", "apptainer"):
        return conf
    config = Path(environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "/"), ".config"))
    user = config / "containers"
    named = environ.get("CONTAINERS_REGISTRIES_CONF") or environ.get("REGISTRIES_CONFIG_PATH")
    first = Path(named or user / "registries.conf")
    if not named and not first.is_file():
        first = _SYSTEM / "registries.conf"
    drop_ins = [f"{folder}/registries.conf.d" for folder in (_SYSTEM, user)]
    for path in [
        first,
        *(one for folder in drop_ins for one in sorted(Path(folder).glob("*.conf"))),
    ]:
        try:
            with path.open("rb") as file:
                text = file.read(_LARGEST).decode("utf-8", "replace")
        except OSError:
            continue  # as podman does with a file that is missing or unreadable
        conf.add(text, str(path))
    return conf


def _covers(prefix: str, reference: Reference) -> bool:
    if prefix.startswith("*."):
        return reference.registry.endswith(prefix[1:])
    return f"{reference.name}/".startswith(f"{prefix}/")


def _source(place: _Location, prefix: str, reference: Reference) -> Source:
    """The image at a location that stands for a prefix."""
    cut = len(reference.registry) if prefix.startswith("*.") else len(prefix)
    location = place.location.rstrip("/")
    whole = location + reference.name[cut:] if location else reference.name
    registry, _, repository = whole.partition("/")
    return Source(
        registry=registry,
        repository=repository,
        insecure=place.insecure,
        tags=place.pull_from_mirror != "digest-only",
        digests=place.pull_from_mirror != "tag-only",
    )
