"""registries.conf, as podman and apptainer obey it: where an image really comes from, and what is blocked.

Source: containers-registries.conf(5), version 2 of the format; the older one is ignored, as podman 5 does.
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
    """One place of an image: a mirror, or its own registry."""

    registry: str  # "mirror.example:5000"
    repository: str  # "nvidia/tensorflow"
    insecure: bool = False  # plain http, or any certificate: the file allows it
    tags: bool = True  # it is asked for tags
    digests: bool = True  # and for digests


class _Location(msgspec.Struct, rename="kebab"):
    location: str = ""
    insecure: bool = False
    pull_from_mirror: str = ""  # "all", "digest-only", "tag-only"; of a mirror alone


class _PrefixEntry(_Location, rename="kebab"):
    prefix: str = ""
    blocked: bool = False
    mirror_by_digest_only: bool = False
    mirror: list[_Location] = []


class _ConfFile(msgspec.Struct, rename="kebab"):
    registry: list[_PrefixEntry] = []
    search: list[str] | None = msgspec.field(name="unqualified-search-registries", default=None)
    aliases: dict[str, str] = {}


class RegistriesConf:
    """What the files say. Without any, every image comes from the registry in its name."""

    def __init__(self) -> None:
        self.search: list[str] = []  # of names without a registry
        self.aliases: dict[str, str] = {}  # "centos" → "quay.io/centos/centos"
        self._entries: dict[str, _PrefixEntry] = {}  # by prefix

    def add(self, text: str, path: str = "") -> None:
        """One more file: what it says replaces what was said of the same. Raises UsageError."""
        try:
            read = msgspec.convert(tomli.loads(text), _ConfFile)
            unnamed = [one for one in read.registry if not (one.prefix or one.location)]
            if unnamed:
                raise ValueError("an entry has neither a prefix nor a location")
        except RecursionError:
            raise _broken(path, "it is nested too deeply") from None
        except ValueError as error:  # a number with too many digits, too
            raise _broken(path, str(error)) from None
        self._entries |= {(one.prefix or one.location).rstrip("/"): one for one in read.registry}
        if read.search is not None:
            self.search = read.search
        self.aliases.update(read.aliases)

    def whole(self, name: str) -> str:
        """An image's name with its registry: "ubuntu:22.04" by an alias, or by the one registry to search.

        Raises UsageError where several are to be searched.
        """
        bare = name.partition("@")[0]
        head, _, last = bare.rpartition("/")
        first = bare.partition("/")[0]
        if head and (set(first) & set(".:[") or first == "localhost"):
            return name
        short = f"{head}/{last.partition(':')[0]}" if head else last.partition(":")[0]
        if alias := self.aliases.get(short):
            return alias + name[len(short) :]
        if len(self.search) > 1:
            places = " or ".join(f"{one}/{name}" for one in self.search)
            raise UsageError(
                f"{name!r} does not say which registry has it, and registries.conf lists several",
                f"write {places}",
            )
        return f"{self.search[0]}/{name}" if self.search else name

    def sources(self, reference: Reference) -> list[Source]:
        """The mirrors, then the registry itself. Raises Cannot where it is blocked."""
        own = Source(registry=reference.registry, repository=reference.repository)
        prefix = max(filter(lambda p: _covers(p, reference), self._entries), key=len, default="")
        entry = self._entries.get(prefix)
        if entry is None:
            return [own]
        if entry.blocked:
            raise Cannot(
                f"{reference}: registries.conf blocks {prefix}",
                "somebody decided so for this machine: /etc/containers/registries.conf and"
                " registries.conf.d say it",
            )
        usual = "digest-only" if entry.mirror_by_digest_only else "all"
        mirrors = [_moved(one, prefix, reference, usual) for one in entry.mirror]
        return [*mirrors, _moved(entry, prefix, reference, "all")]


def read(environ: Mapping[str, str]) -> RegistriesConf:
    """The machine's and the user's files, in the order in which podman reads them. Raises UsageError."""
    conf = RegistriesConf()
    config = Path(environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "/"), ".config"))
    user = config / "containers"
    named = environ.get("CONTAINERS_REGISTRIES_CONF") or environ.get("REGISTRIES_CONFIG_PATH")
    first = Path(named) if named else user / "registries.conf"
    if not first.is_file() and not named:
        first = _SYSTEM / "registries.conf"
    cache = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/"), ".cache"))
    for path in (
        cache / "containers/short-name-aliases.conf",
        first,
        *_below(_SYSTEM / "registries.conf.d"),
        *_below(user / "registries.conf.d"),
    ):
        try:
            with path.open("rb") as file:
                text = file.read(_LARGEST).decode("utf-8", "replace")
        except OSError:
            continue  # as podman: what is not there, or is somebody else's
        conf.add(text, str(path))
    return conf


def _broken(path: str, why: str) -> UsageError:
    return UsageError(
        f"{path} is not a registries.conf: {why}",
        "correct it, or name another file in CONTAINERS_REGISTRIES_CONF",
    )


def _below(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".conf")
    except OSError:
        return []


def _covers(prefix: str, reference: Reference) -> bool:
    if prefix.startswith("*."):
        return reference.registry.endswith(prefix[1:])
    rest = reference.name.removeprefix(prefix)
    return (rest != reference.name and (not rest or rest[0] in "/:@")) or prefix == reference.name


def _moved(place: _Location, prefix: str, reference: Reference, usual: str) -> Source:
    """The image where a location stands for a prefix."""
    location, pulled = place.location.rstrip("/"), place.pull_from_mirror or usual
    cut = len(reference.registry) if prefix.startswith("*.") else len(prefix)
    whole = location + reference.name[cut:] if location else reference.name
    registry, _, repository = whole.partition("/")
    return Source(
        registry=registry,
        repository=repository,
        insecure=place.insecure,
        tags=pulled != "digest-only",
        digests=pulled != "tag-only",
    )


def of_engine(engine: str) -> RegistriesConf:
    """What this engine obeys; docker and enroot have settings of their own."""
    return read(os.environ) if engine in ("podman", "apptainer") else RegistriesConf()
