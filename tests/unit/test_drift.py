"""How an environment's packages differ from its lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from planned import lock, package

from envcheck.install import drift, pylock
from envcheck.install.drift import Drift

SITE = "lib/python3.8/site-packages"


@pytest.fixture
def version(tmp_path: Path) -> Path:
    """Of numpy 1.21.6 and pip 24.0, both as locked."""
    (tmp_path / ".envcheck").mkdir()
    locked = lock(package("numpy", "1.21.6", 1), package("pip", "24.0", 1))
    pylock.write(locked, tmp_path / ".envcheck" / "pylock.toml")
    install(tmp_path, "numpy", "1.21.6")
    install(tmp_path, "pip", "24.0")
    return tmp_path


def install(
    version: Path, name: str, number: str, *, requested: bool = False, url: str = ""
) -> None:
    folder = version / SITE / f"{name.replace('-', '_')}-{number}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
    (folder / "RECORD").write_text(f"{name}/__init__.py,,\n../../../bin/{name}-tool,,\n")
    if requested:
        (folder / "REQUESTED").touch()
    if url:
        (folder / "direct_url.json").write_text(f'{{"url": "{url}"}}')


def uninstall(version: Path, name: str) -> None:
    (folder,) = (version / SITE).glob(f"{name}-*.dist-info")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def test_as_locked_is_no_drift(version: Path) -> None:
    assert drift.of(version) == Drift() and drift.of(version).sentences() == []


def test_added_changed_and_removed(version: Path) -> None:
    uninstall(version, "numpy")
    uninstall(version, "pip")
    install(version, "numpy", "1.22")
    install(version, "Rich", "15.0", requested=True)
    install(version, "mdurl", "0.1")
    install(version, "mine", "0.1", requested=True, url="file:///home/me/mine")
    found = drift.of(version)
    assert found.sentences() == [
        "added since: mdurl 0.1, mine 0.1, rich 15.0",
        "changed since: numpy 1.22 (locked: 1.21.6)",
        "removed since: pip 24.0",
    ]
    assert found.wanted == ["mine", "rich"]
    assert found.elsewhere == {"mine": "file:///home/me/mine"}


def test_where_no_installer_noted_what_was_asked_for_it_is_all(version: Path) -> None:
    install(version, "rich", "15.0")
    install(version, "mdurl", "0.1")
    assert drift.of(version).wanted == ["mdurl", "rich"]


def test_the_same_version_in_other_words_is_no_drift(version: Path) -> None:
    uninstall(version, "pip")
    install(version, "pip", "24")
    assert drift.of(version) == Drift()


def test_metadata_of_somebody_s_own_is_no_package(version: Path) -> None:
    folder = version / SITE / "odd-1.dist-info"
    folder.mkdir()
    for text in ("", "Name: odd\n", "Version: 1\n"):
        (folder / "METADATA").write_text(text)
        assert drift.of(version) == Drift()
    install(version, "extra", "1")
    (version / SITE / "extra-1.dist-info" / "direct_url.json").write_text("[1")
    assert drift.of(version).elsewhere == {}


def test_without_a_lock_nothing_is_known(tmp_path: Path) -> None:
    assert drift.of(tmp_path) == Drift()


def test_what_a_package_manager_did_is_no_damage(version: Path) -> None:
    paths = [
        f"{SITE}/numpy/__init__.py",
        f"{SITE}/numpy-1.21.6.dist-info/RECORD",
        "bin/numpy-tool",
        f"{SITE}/pip/__init__.py",
        "bin/pip-tool",
        "bin/python",
        "pip.conf",
    ]
    assert drift.unexplained(version, drift.of(version), paths) == paths, "nothing drifted"
    uninstall(version, "numpy")
    install(version, "numpy", "1.22")
    assert drift.unexplained(version, drift.of(version), paths) == paths[3:], "pip is as locked"
