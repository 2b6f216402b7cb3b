"""The types of a catalogue file: one stack, its indexes, and its releases.

A user's own stack (`--stack FILE`) has the same form as those in ``stacks/``. An empty value means that
no source was seen: the product says "not known", and never chooses such a release by itself.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

import msgspec
from msgspec import Meta

PUBLIC = "public"  # the name of the index that pip and uv are configured with

# Texts of a form: a mistake says "… is not TITLE".
Name = Annotated[str, Meta(pattern=r"\A[a-z0-9]+(-[a-z0-9]+)*\Z", title="a name such as my-stack")]
Distribution = Annotated[
    str, Meta(pattern=r"\A[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z", title="a package's name")
]
ReleaseName = Annotated[
    str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9.+_-]*\Z", title='a name such as "2.21.0"')
]
NamePattern = Annotated[
    str,
    Meta(
        pattern=r"\A([a-z0-9*?-]|\[[a-z0-9-]+\])+\Z",
        title='a pattern on normalised package names such as "nvidia-*"',
    ),
]
Minor = Annotated[str, Meta(pattern=r"\A3\.\d+\Z", title='a minor version such as "3.11"')]
Glibc = Annotated[str, Meta(pattern=r"\A(\d+\.\d+)?\Z", title='a version such as "2.17"')]
Capability = Annotated[
    str,
    Meta(
        pattern=r"\A(sm|compute)_\d{2,3}[af]?\Z",
        title='a capability such as "sm_80" or "compute_90"',
    ),
]
CheckCode = Annotated[str, Meta(pattern=r"\A[A-Z]+-\d{3}\Z", title='a check such as "FRM-001"')]
Sha256 = Annotated[
    str, Meta(pattern=r"\A[0-9a-f]{64}\Z", title="64 hexadecimal digits, in lower case")
]
Word = Annotated[
    str, Meta(pattern=r"\A[a-z0-9_.+-]+\Z", title='a word such as "x86_64", "avx" or "cmake"')
]
Filled = Annotated[str, Meta(pattern=r"\S", title="a text: it is empty")]
Date = Annotated[str, Meta(pattern=r"\A(\d{4}-\d\d-\d\d)?\Z", title='a date such as "2026-03-06"')]
Size = Annotated[int, Meta(ge=0)]  # MiB


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Base of every table in a catalogue file; keys are written with hyphens."""


class Index(_Entry, frozen=True, kw_only=True):
    """An index that serves some packages, and they come from nowhere else.

    ``urls`` are alternatives, tried in order until one answers. ``packages`` are shell patterns on
    normalised names: "nvidia-*", "tensorrt"; ``but_not`` takes names out again. What no index claims
    comes from the public one.
    """

    name: Name
    urls: Annotated[list[str], Meta(min_length=1)]
    packages: Annotated[list[NamePattern], Meta(min_length=1)]
    source: Filled
    but_not: list[NamePattern] = []

    def claims(self, package: str) -> bool:
        """Whether the package of this normalised name comes from here, and from nowhere else."""

        def among(patterns: list[str]) -> bool:
            return any(fnmatchcase(package, pattern) for pattern in patterns)

        return among(self.packages) and not among(self.but_not)


class Build(_Entry, frozen=True, kw_only=True):
    """How an allowed sdist is built: flags as data."""

    requires: list[str] = []  # what its build needs, exactly pinned: "setuptools==59.6.0"
    environment: dict[str, str] = {}  # "HOROVOD_WITH_GLOO": "1"
    programs: list[Word] = []  # "cmake", "g++": looked for before anything is fetched
    isolated: bool = True  # False: it imports what it is built for (horovod imports tensorflow)


class Sdist(_Entry, frozen=True, kw_only=True):
    """A source distribution that may be built, by name, version and hash; no other one is."""

    name: Distribution
    version: str
    sha256: Sha256
    why: Filled  # "has no wheel"
    source: Filled
    requires_dist: list[str] = []  # what it asks for: nothing is built to learn that
    build: Build = Build()


class Release(_Entry, frozen=True, kw_only=True):
    """One release of a stack."""

    release: ReleaseName  # what a user names: "23.03", "2.21.0"
    version: str  # of the stack's distribution: "1.15.5+nv23.03"
    python: Annotated[list[Minor], Meta(min_length=1)]  # with a wheel: ["3.8"]
    source: Filled
    glibc: Glibc = ""  # the least that the wheel's platform tag asks for: "2.17"
    driver: str = ""  # the oldest that its own documentation asks for: "455"
    cuda: str = ""  # built with; decides on the driver by cuda_driver.csv
    cudnn: str = ""
    tensorrt: str = ""
    compute_capabilities: list[
        Capability
    ] = []  # of the build, as it names them: "sm_80", "compute_90"
    constraints: list[str] = []  # the pins that make it work, for the resolver: "protobuf<4"
    extra_requirements: list[str] = []
    broken: str = ""  # why it cannot be installed or used; never chosen by itself
    prerelease: bool = False
    released: Date = ""
    download_mib: Size = 0  # measured for the newest Python; 0: not known
    installed_mib: Size = 0
    note: str = ""


class Stack(_Entry, frozen=True, kw_only=True):
    """What one framework needs to be installed and to work."""

    name: Name  # "nvidia-tf1"
    title: Filled
    distribution: Distribution  # what is verified to be there: "nvidia-tensorflow"
    requirement: str  # "nvidia-tensorflow[horovod]=={version}"
    gpu: bool  # without a GPU it is refused (--allow-no-gpu lets it pass)
    architectures: Annotated[list[Word], Meta(min_length=1)]  # of the machine: ["x86_64"]
    source: Filled
    cpu_flags: list[Word] = []  # that the wheels' code uses unasked: ["avx"]
    indexes: list[Index] = []
    sdists: list[Sdist] = []
    constraints: list[str] = []  # for every release
    must_pass: list[
        CheckCode
    ] = []  # checks of the doctor without which it is not installed: ["FRM-001"]
    environment: dict[str, str] = {}  # what activation sets
    provides: dict[str, str] = {}  # what envcheck gives in a package's place: name → how
    otherwise: list[Name] = []  # stacks to offer where this one cannot work: ["tensorflow"]
    releases: list[Release] = []  # newest first

    def index_of(self, package: str) -> str:
        """The name of the index that the package of this normalised name comes from, and from no other."""
        return next((index.name for index in self.indexes if index.claims(package)), PUBLIC)
