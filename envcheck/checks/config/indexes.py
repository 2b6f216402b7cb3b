"""Checks on where pip and uv take packages from: verified, and from one place each."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.packages import NAMES_SOURCE
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ..registry import check
from .common import PIP, PYINDEX, ConfigEntry, is_guarded, is_loopback, per_file, warning

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
    about="pip trusts a host in trusted-host (uv: allow-insecure-host) without a valid certificate, so"
    " anyone on the network path can serve packages. Hosts of this machine are not counted.",
    sources=(PIP, PYINDEX),
)
@per_file("no trusted-host")
def trusted_hosts(view: SnapshotView, entries: list[ConfigEntry]) -> Iterator[Verdict]:
    for entry in entries:
        hosts = [word for word in entry.words if not is_loopback(word)]
        if hosts and entry.key in ("trusted-host", "allow-insecure-host", "insecure-host"):
            yield warning(view, entry, UNVERIFIED, hosts, hosts=", ".join(hosts))


_MIXED = "a second package index is mixed in"
_HIGHEST = " (in {where}): for every package the highest version wins, from any index."
_ONE_INDEX = (
    "Remove it, and name the one index a package comes from when you install it (pip install --index-url URL"
    " PACKAGE; uv: an explicit index)."
)
_MERGES = "pip also takes packages from {indexes}" + _HIGHEST
_COMPARES = "uv compares versions across all its indexes ({strategy})" + _HIGHEST
MERGED = Cause("indexes-merged", "warn", _MIXED, _MERGES, _ONE_INDEX)
COMPARED = Cause("indexes-compared", "warn", _MIXED, _COMPARES, _ONE_INDEX)


@check(
    "CFG-003",
    title="No second index is mixed in",
    causes=[MERGED, COMPARED],
    about="pip takes the highest version from any of its indexes, so that with an extra-index-url anybody who"
    " registers a name that only one of them has (dependency confusion) wins; uv stops at the first index"
    " that knows a name, unless index-strategy says otherwise. The pip.conf of an environment that envcheck"
    " made passes, for its constraint file pins what comes from that index.",
    sources=(PIP, "uv's documentation, searching across multiple indexes", NAMES_SOURCE),
)
@per_file("one index a package")
def extra_indexes(view: SnapshotView, entries: list[ConfigEntry]) -> Iterator[Verdict]:
    guarded = is_guarded(entries)
    for entry in entries:
        indexes = " and ".join(entry.words)
        if entry.key == "index-strategy" and "unsafe" in entry.setting.value:
            yield warning(view, entry, COMPARED, entry.words, strategy=entry.setting.value.strip())
        elif entry.file.tool != "pip" or entry.key != "extra-index-url" or not entry.words:
            continue
        elif guarded:
            pins = f"beside {indexes}, a constraint file pins what comes from there"
            yield Passed(f"{entry.file.path} is envcheck's: {pins}")
        else:
            yield warning(view, entry, MERGED, entry.words, indexes=indexes)
