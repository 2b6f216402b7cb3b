"""Checks on where pip and uv take packages from: verified, encrypted, and from one place each."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.packages import NAMES_SOURCE
from ...facts.view import SnapshotView
from ...findings.model import Passed, Verdict
from ..registry import check
from .common import ConfigEntry, each_file, is_guarded, is_loopback, told_once, warning

_PYINDEX = "nvidia-pyindex 1.0.9's setup.py"
_PIP = "pip's documentation, configuration"


@check(
    "CFG-002",
    title="TLS certificates are verified",
    problem="TLS certificates are not verified",
    about=(
        "A host in pip's trusted-host (uv: allow-insecure-host) is believed without a valid "
        "certificate, so that anyone on the network path can hand out packages, which run code "
        "when they are installed. A warning for each such host outside of this machine."
    ),
    sources=(_PIP, _PYINDEX),
)
def trusted_hosts(view: SnapshotView) -> Iterator[Verdict]:
    def judge(entries: list[ConfigEntry]) -> Iterator[Verdict]:
        for entry in entries:
            hosts = [word for word in entry.words if not is_loopback(word)]
            if (
                entry.key not in ("trusted-host", "allow-insecure-host", "insecure-host")
                or not hosts
            ):
                continue
            yield told_once(
                view,
                entry,
                hosts,
                f"Certificates of {', '.join(hosts)} are not verified (in {entry.where}), so that "
                "anybody on the way can hand out packages in its place.",
                "Remove the setting; where a company's proxy signs with its own certificate, "
                "name that certificate instead (pip: cert, uv: SSL_CERT_FILE).",
            )

    yield from each_file(view, judge, "no trusted-host")


@check(
    "CFG-003",
    title="No second index is mixed in",
    problem="a second package index is mixed in",
    about=(
        "pip merges all indexes it is given and takes the highest version, whoever offers it. With an "
        "extra-index-url, anybody who registers a name that only one of the indexes has (dependency "
        "confusion), or a version such as nvidia-tensorrt 99.0.0, wins; several of NVIDIA's names "
        "are still free on the public registry. uv stops at the first index that knows a name, unless "
        "index-strategy says otherwise. A warning for each; none for the pip.conf of an environment that "
        "envcheck made, where a constraint file pins what comes from that index to the letter and refuses "
        "NVIDIA's names that nobody holds."
    ),
    sources=(
        _PIP,
        "uv's documentation, searching across multiple indexes",
        NAMES_SOURCE,
    ),
)
def extra_indexes(view: SnapshotView) -> Iterator[Verdict]:
    def judge(entries: list[ConfigEntry]) -> Iterator[Verdict]:
        guarded = is_guarded(entries)
        for entry in entries:
            merged = entry.file.tool == "pip" and entry.key == "extra-index-url" and entry.words
            unsafe = entry.key == "index-strategy" and "unsafe" in entry.setting.value
            if not merged and not unsafe:
                continue
            if merged and guarded:
                yield Passed(
                    f"{entry.file.path} is envcheck's: beside {' and '.join(entry.words)}, a "
                    "constraint file pins what comes from there and refuses the names that are free",
                )
                continue
            what = (
                f"pip also takes packages from {' and '.join(entry.words)}"
                if merged
                else f"uv compares versions across all its indexes ({entry.setting.value.strip()})"
            )
            yield told_once(
                view,
                entry,
                entry.words,
                f"{what} (in {entry.where}): for every package the highest version wins, whoever "
                "offers it.",
                "Remove it, and name the one index a package comes from where you install it "
                "(pip install --index-url URL PACKAGE; uv: an explicit index).",
            )

    yield from each_file(view, judge, "one index a package")


@check(
    "CFG-004",
    title="Indexes are encrypted",
    problem="a package index is not encrypted",
    about=(
        "An index or find-links address that begins with http:// sends packages in the clear: anybody "
        "on the way can replace them. A warning for each address outside of this machine."
    ),
    sources=(_PIP,),
)
def plain_http(view: SnapshotView) -> Iterator[Verdict]:
    def judge(entries: list[ConfigEntry]) -> Iterator[Verdict]:
        for entry in entries:
            urls = [
                word
                for word in entry.words
                if word.lower().startswith("http://") and not is_loopback(word)
            ]
            # A proxy is spoken to in the clear even where what it carries is encrypted.
            if not urls or entry.key == "proxy":
                continue
            yield warning(
                view,
                entry,
                f"Packages come unencrypted from {' and '.join(urls)} (in {entry.where}), so that "
                "anybody on the way can replace them.",
                "Use the https:// address where there is one, else remove the setting.",
            )

    yield from each_file(view, judge, "no http:// address")
