"""The check on an environment that envcheck installed: whether it is still what its lock says."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.versions import parse_version
from ...facts.base import Maybe, Unavailable, known
from ...facts.missing import Skip
from ...facts.target import InstalledLock, PackageInLock
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about
from ..registry import check

_NAMED = 6  # packages that a sentence names


@check(
    "PKG-016",
    title="The environment is as its lock says",
    problem="packages of the lock were changed",
    about=(
        "envcheck installs an environment from a lock, and verifies it. People then add packages, which is"
        " fine and told as a detail; but an installation may also replace or remove packages of the lock,"
        " and then the environment is no longer the one that was verified. A warning that names each such"
        " package, and since when. Judged by the versions in the packages' metadata; the other checks say"
        " whether it still works."
    ),
    sources=("PEP 751 (pylock.toml)", "the packages' own metadata"),
)
def as_locked(view: SnapshotView) -> Iterator[Verdict]:
    lock = facts_of(view.target.lock, "the environment's lock")
    packages = lock.packages
    if isinstance(packages, Unavailable) and packages.unavailable == "absent":
        raise Skip("envcheck did not install this environment")
    locked = need(packages, "the environment's lock")
    gone = [one for one in locked if isinstance(one.found, Unavailable)]
    changed = [one for one in locked if not _same(one)]
    added = [f"{one.name} {one.version}" for one in lock.added]
    if not gone and not changed:
        told = f"{len(locked)} package{'' if len(locked) == 1 else 's'} as locked"
        yield Passed(told + (f"; {len(added)} added: {_some(added)}" if added else ""))
        return
    sentences = []
    if changed:
        count = len(changed)
        sentences.append(
            f"{count} package{'s' if count > 1 else ''} of the lock changed{_since(changed)}: "
            + _some([f"{one.name} {known(one.found)} (locked: {one.version})" for one in changed])
        )
    if gone:
        count = len(gone)
        sentences.append(
            f"{count} package{'s' if count > 1 else ''} of the lock removed: "
            + _some([f"{one.name} {one.version}" for one in gone])
        )
    yield Finding(
        "warn",
        f"{'; '.join(sentences)}. This is no longer the environment that was verified.",
        headline=_headline([*changed, *gone]),
        subjects=about("package", known(lock.stack) or ""),
        evidence=[view.evidence("target.lock.path")],
        remedy=_back(view, lock),
    )


def _same(one: PackageInLock) -> bool:
    """Whether a package is as locked; a missing one is not of another version."""
    found: Maybe[str] = one.found
    if isinstance(found, Unavailable) or found == one.version:
        return True
    parsed = parse_version(found)
    return parsed is not None and parsed == parse_version(one.version)


def _headline(differing: list[PackageInLock]) -> str:
    if len(differing) == 1:
        return f"{differing[0].name} is not as the lock says"
    return f"{len(differing)} packages are not as the lock says"


def _since(changed: list[PackageInLock]) -> str:
    """ " since 2026-11-22", of the first change."""
    days = sorted(since[:10] for one in changed if (since := known(one.since)))
    return f" since {days[0]}" if days else ""


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _back(view: SnapshotView, lock: InstalledLock) -> Remedy:
    text = "Where that was not meant: install it again; the version in use stays until the new one works."
    stack, release = known(lock.stack), known(lock.release)
    if not stack or not release:
        return Remedy(text)
    command = f"envcheck install {word(stack)} --release {word(release)}"
    root = (known(lock.path) or "").rpartition("/.envcheck/")[0].rpartition("/")[0]
    if root and not root.endswith(f"/envcheck/envs/{stack}"):
        command += f" --path {word(root)}"
    return Remedy(text, [command])
