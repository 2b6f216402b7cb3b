"""The lock beside what is installed: what is there, what was changed, added and removed, and since when."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from targets import ABSENT, dist, good_snapshot, judge, packages, tensorflow

from envcheck.collector.probes import lock
from envcheck.collector.runtime.context import Context
from envcheck.facts.base import NOT_COLLECTED, Unavailable
from envcheck.facts.target import AddedPackage, InstalledLock, PackageInLock

NOON = 1_795_348_800  # 2026-11-22T12:00:00Z

LOCK = """
lock-version = "1.0"
[[packages]]
name = "tensorflow-cpu"
version = "2.21.0"
[[packages]]
name = "numpy"
version = "2.1.3"
[[packages]]
name = "wheel"
version = "0.48.0"
[tool.envcheck]
stack = "tensorflow-cpu"
release = "2.21.0"
created-at = "2026-11-20T10:00:00Z"
"""


def put(site: Path, name: str, version: str) -> None:
    home = site / f"{name}-{version}.dist-info"
    home.mkdir(parents=True)
    (home / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    os.utime(home, (NOON, NOON))


def collected(prefix: Path, *elsewhere: Path) -> InstalledLock:
    site = prefix / "lib" / "python3.11" / "site-packages"
    params = {"prefix": str(prefix), "sys_path": [*map(str, elsewhere), str(site)]}
    context = Context({}, root=str(prefix), params=params)
    return msgspec.convert(lock.collect(context).values, InstalledLock)


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    (tmp_path / "env" / ".envcheck").mkdir(parents=True)
    (tmp_path / "env" / ".envcheck" / "pylock.toml").write_text(LOCK)
    return tmp_path / "env"


def test_what_is_there_stands_beside_what_was_locked(prefix: Path, tmp_path: Path) -> None:
    site = prefix / "lib" / "python3.11" / "site-packages"
    put(site, "tensorflow_cpu", "2.21.0")
    put(site, "numpy", "1.26.4")
    put(site, "Rich", "14.0.0")
    put(tmp_path / "user-site", "wheel", "0.1")  # not the environment's own
    result = collected(prefix, tmp_path / "user-site")
    since = "2026-11-22T12:00:00Z"
    assert result.packages == [
        PackageInLock(name="numpy", version="2.1.3", found="1.26.4", since=since),
        PackageInLock(name="tensorflow-cpu", version="2.21.0", found="2.21.0", since=since),
        PackageInLock(
            name="wheel",
            version="0.48.0",
            found=Unavailable(unavailable="absent", detail="it is not installed"),
        ),
    ]
    assert result.added == [AddedPackage(name="rich", version="14.0.0", since=since)]
    assert (result.stack, result.release) == ("tensorflow-cpu", "2.21.0")
    assert result.path == str(prefix / ".envcheck" / "pylock.toml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "absent"),
        ("packages = 3", "error"),
        ("packages = [3]", "error"),
        ('[[packages]]\nname = "x"\n', "error"),
        ("= =", "error"),
        ("\udcff", "error"),
    ],
)
def test_what_is_no_lock_is_a_reason(prefix: Path, text: str | None, reason: str) -> None:
    file = prefix / ".envcheck" / "pylock.toml"
    file.unlink()
    if text is not None:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    result = collected(prefix)
    assert isinstance(result.packages, Unavailable) and result.packages.unavailable == reason
    assert result.added == [] and result.path == NOT_COLLECTED


# PKG-016

ROOT = "<home-1>/.local/share/envcheck/envs/tensorflow-cpu"


def locked(
    *packages: PackageInLock, added: Any = (), root: str = ROOT, **facts: Any
) -> InstalledLock:
    given: dict[str, Any] = {"stack": "tensorflow-cpu", "release": "2.21.0"} | facts
    path = f"{root}/2.21.0-py3.11-3d993a62/.envcheck/pylock.toml"
    return InstalledLock(path=path, packages=list(packages), added=list(added), **given)


AS_LOCKED = PackageInLock(name="tensorflow-cpu", version="2.21.0", found="2.21.0")
CHANGED = PackageInLock(name="numpy", version="2.1.3", found="1.26.4", since="2026-11-22T12:00:00Z")
REMOVED = PackageInLock(name="wheel", version="0.48.0", found=ABSENT)
RICH = AddedPackage(name="rich", version="14.0.0")


def on(facts: InstalledLock) -> Any:
    return judge(good_snapshot(lock=facts), "PKG-016", "packages")


def test_as_locked_and_with_packages_added_it_passes() -> None:
    assert on(locked(AS_LOCKED)).detail == "1 package as locked"
    same = PackageInLock(name="x", version="1.0", found="1.0.0")
    result = on(locked(AS_LOCKED, same, added=[RICH]))
    assert result.outcome == "pass"
    assert result.detail == "2 packages as locked; 1 added: rich 14.0.0"


def test_changed_and_removed_packages_are_named_with_the_way_back() -> None:
    result = on(locked(AS_LOCKED, CHANGED, REMOVED, added=[RICH]))
    (finding,) = result.findings
    assert result.outcome == "warn"
    assert finding.message.startswith(
        "1 package of the lock changed since 2026-11-22: numpy 1.26.4 (locked: 2.1.3);"
        " 1 package of the lock removed: wheel 0.48.0."
    )
    assert finding.headline == "2 packages are not as the lock says"
    assert finding.remedy is not None
    assert finding.remedy.commands == ["envcheck install tensorflow-cpu --release 2.21.0"]
    (other,) = on(locked(CHANGED, root="/opt/my env")).findings
    assert other.headline == "numpy is not as the lock says"
    elsewhere = other.remedy
    assert elsewhere.commands == [
        "envcheck install tensorflow-cpu --release 2.21.0 --path '/opt/my env'"
    ]
    many = [PackageInLock(name=f"p{n}", version="1", found="2") for n in range(9)]
    assert "and 3 more" in on(locked(*many)).findings[0].message


@pytest.mark.parametrize(("facts", "outcome"), [(locked(AS_LOCKED), "warn"), (None, "fail")])
def test_a_cpu_build_that_was_asked_for_is_a_warning_beside_gpus(facts: Any, outcome: str) -> None:
    snap = good_snapshot(
        packages=packages(dist("tensorflow-cpu", "2.21.0")),
        tensorflow=tensorflow(cuda_build=False, gpus=[]),
        lock=facts,
    )
    assert judge(snap, "FRM-005", "framework").outcome == outcome
