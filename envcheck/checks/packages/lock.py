"""The check on an environment that envcheck installed: whether it is still what its lock says."""

from __future__ import annotations

from ...data.versions import parse_version
from ...facts.target import InstalledLock, PackageInLock
from ..declared import declared_causes
from ..gpus import plural
from ..reading import Skip, SnapshotView, Unavailable, facts_of, known, need
from ..verdicts import Passed, Verdicts, about, check, word

CAUSE = declared_causes(__name__)

_NAMED = 6  # packages that a sentence names


@check("PKG-016")
def as_locked(view: SnapshotView) -> Verdicts:
    lock = facts_of(view.target.lock, "the environment's lock")
    if isinstance(lock.packages, Unavailable) and lock.packages.unavailable == "absent":
        raise Skip("envcheck did not install this environment")
    locked = need(lock.packages, "the environment's lock")
    gone = [one for one in locked if isinstance(one.found, Unavailable)]
    changed = [one for one in locked if not _same(one)]
    differing = [*changed, *gone]
    if not differing:
        added = [f"{one.name} {one.version}" for one in lock.added]
        more = f"; {len(added)} added: {_some(added)}" if added else ""
        yield Passed(f"{plural(len(locked), 'package')} as locked{more}")
        return
    changes = []
    if changed:
        days = sorted(since[:10] for one in changed if (since := known(one.since)))
        since = f" since {days[0]}" if days else ""
        shown = [f"{one.name} {known(one.found)} (locked: {one.version})" for one in changed]
        count = plural(len(changed), "package")
        changes.append(f"{count} of the lock changed{since}: {_some(shown)}")
    if gone:
        shown = [f"{one.name} {one.version}" for one in gone]
        changes.append(f"{plural(len(gone), 'package')} of the lock removed: {_some(shown)}")
    one = len(differing) == 1
    yield CAUSE["lock-changed"].found(
        about("package", known(lock.stack)),
        [view.evidence("target.lock.path")],
        commands=_install_again(lock),
        differing=f"{differing[0].name} is" if one else f"{len(differing)} packages are",
        changes="; ".join(changes),
    )


def _same(one: PackageInLock) -> bool:
    """Whether a package is as locked; a missing one is not of another version."""
    version = known(one.found)
    if version is None or version == one.version:
        return True
    parsed = parse_version(version)
    return parsed is not None and parsed == parse_version(one.version)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _install_again(lock: InstalledLock) -> list[str]:
    stack, release = known(lock.stack), known(lock.release)
    if not stack or not release:
        return []
    command = f"envcheck install {word(stack)} --release {word(release)}"
    root = (known(lock.path) or "").rpartition("/.envcheck/")[0].rpartition("/")[0]
    if root and not root.endswith(f"/envcheck/envs/{stack}"):
        command += f" --path {word(root)}"
    return [command]
