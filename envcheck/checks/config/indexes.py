"""Checks on where pip and uv take packages from: verified, encrypted, and from one place each."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.packages import NAMES_SOURCE
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ..registry import check
from .common import PIP, PYINDEX, ConfigEntry, is_guarded, is_loopback, per_file, warn_once, warning

UNVERIFIED = Cause(
    "certificates-not-verified",
    "warn",
    "TLS certificates are not verified",
    "Certificates of {hosts} are not verified (in {where}), so that anybody on the network path can hand out"
    " packages in its place.",
    "Remove the setting; if a company's proxy signs with its own certificate, name that certificate instead"
    " (pip: cert, uv: SSL_CERT_FILE).",
)


@check(
    "CFG-002",
    title="TLS certificates are verified",
    causes=[UNVERIFIED],
    about="A host in pip's trusted-host (uv: allow-insecure-host) is believed without a valid certificate, so"
    " that anyone on the network path can hand out packages, which run code when they are installed. Hosts of"
    " this machine are not counted.",
    sources=(PIP, PYINDEX),
)
@per_file("no trusted-host")
def trusted_hosts(view: SnapshotView, entries: list[ConfigEntry]) -> Iterator[Verdict]:
    for entry in entries:
        hosts = [word for word in entry.words if not is_loopback(word)]
        if hosts and entry.key in ("trusted-host", "allow-insecure-host", "insecure-host"):
            yield warn_once(view, entry, hosts, UNVERIFIED, hosts=", ".join(hosts))


_HIGHEST = " (in {where}): for every package the highest version wins, from any index."
_ONE_INDEX = (
    "Remove it, and name the one index a package comes from when you install it (pip install --index-url URL"
    " PACKAGE; uv: an explicit index)."
)
_MIXED = "a second package index is mixed in"
MERGED = Cause(
    "indexes-merged",
    "warn",
    _MIXED,
    "pip also takes packages from {indexes}" + _HIGHEST,
    _ONE_INDEX,
)
COMPARED = Cause(
    "indexes-compared",
    "warn",
    _MIXED,
    "uv compares versions across all its indexes ({strategy})" + _HIGHEST,
    _ONE_INDEX,
)


@check(
    "CFG-003",
    title="No second index is mixed in",
    causes=[MERGED, COMPARED],
    about="pip merges all indexes it is given and takes the highest version from any. With an"
    " extra-index-url, anybody who registers a name that only one of the indexes has (dependency confusion),"
    " or a version such as nvidia-tensorrt 99.0.0, wins; several of NVIDIA's names are still free on the"
    " public registry. uv stops at the first index that knows a name, unless index-strategy says otherwise."
    " The pip.conf of an environment that envcheck made passes: its constraint file pins what comes from"
    " that index exactly and refuses NVIDIA's unregistered names.",
    sources=(PIP, "uv's documentation, searching across multiple indexes", NAMES_SOURCE),
)
@per_file("one index a package")
def extra_indexes(view: SnapshotView, entries: list[ConfigEntry]) -> Iterator[Verdict]:
    guarded = is_guarded(entries)
    for entry in entries:
        indexes = " and ".join(entry.words)
        if entry.key == "index-strategy" and "unsafe" in entry.setting.value:
            strategy = entry.setting.value.strip()
            yield warn_once(view, entry, entry.words, COMPARED, strategy=strategy)
        elif entry.file.tool != "pip" or entry.key != "extra-index-url" or not entry.words:
            continue
        elif guarded:
            yield Passed(
                f"{entry.file.path} is envcheck's: beside {indexes}, a constraint file pins what comes from"
                " there and refuses the names that are free"
            )
        else:
            yield warn_once(view, entry, entry.words, MERGED, indexes=indexes)


UNENCRYPTED = Cause(
    "index-not-encrypted",
    "warn",
    "a package index is not encrypted",
    "Packages come unencrypted from {urls} (in {where}), so that anybody on the network path can replace"
    " them.",
    "Use the https:// address if there is one, else remove the setting.",
)


@check(
    "CFG-004",
    title="Indexes are encrypted",
    causes=[UNENCRYPTED],
    about="An index or find-links address that begins with http:// sends packages in the clear: anybody on"
    " the network path can replace them. Addresses of this machine are not counted.",
    sources=(PIP,),
)
@per_file("no http:// address")
def plain_http(view: SnapshotView, entries: list[ConfigEntry]) -> Iterator[Verdict]:
    for entry in entries:
        clear = [word for word in entry.words if word.lower().startswith("http://")]
        urls = " and ".join(word for word in clear if not is_loopback(word))
        # The connection to a proxy is in the clear even if what it carries is encrypted.
        if urls and entry.key != "proxy":
            yield warning(view, entry, UNENCRYPTED, urls=urls)
