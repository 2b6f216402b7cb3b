"""A version is named by the start of its id, where that leads to one alone: wherever one is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_transaction import versioned

from envcheck.cli.main import run
from envcheck.exit_codes import NotStarted, UsageError
from envcheck.install.start import finding
from envcheck.install.transaction import guard, roots
from envcheck.install.transaction.layout import Root

pytestmark = pytest.mark.usefixtures("scratch_home")

OLD, NEW, COPY = "2.20.0-py3.11-1f0c9a2b", "2.21.0-py3.11-0a1b2c3d", "2.21.0-py3.11-0a1b2c3d-2"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """Three versions, the last of them in use."""
    made = Root(tmp_path / "tensorflow")
    guard.claim(made)
    for hour, version in enumerate((OLD, NEW, COPY)):
        versioned(made, version, at=f"2026-11-21T{hour:02}:00:00Z")
    return made


@pytest.mark.parametrize(
    ("word", "found"), [("2.20", OLD), (OLD, OLD), (NEW, NEW), ("", ""), ("3", "3"), ("py3", "py3")]
)
def test_a_beginning_names_the_only_one(root: Root, word: str, found: str) -> None:
    assert roots.version_id(root, word) == found


@pytest.mark.parametrize("word", ["2", "2.21.0", "2.21.0-py3.11-0a"])
def test_more_than_one_are_all_named(root: Root, word: str) -> None:
    with pytest.raises(UsageError, match="more than one version begins like this: ") as caught:
        roots.version_id(root, word)
    assert str(caught.value).endswith(f": {NEW}, {COPY}") or word == "2"
    with pytest.raises(UsageError, match="more than one"):
        finding.find(str(root.path), word)


def test_uninstall_rollback_and_run_take_a_beginning(
    root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    assert finding.find(str(root.path), "2.20").id == OLD
    assert run(["rollback", str(root.path), "--to", "2.20"]) == 0
    assert root.current_id() == OLD
    assert run(["uninstall", str(root.path), "--version", "2.21", "--yes"]) == 2
    assert f"{NEW}, {COPY}" in capsys.readouterr().err
    assert run(["uninstall", str(root.path), "--version", COPY, "--yes"]) == 0
    assert run(["uninstall", str(root.path), "--version", "2.21", "--yes"]) == 0
    assert [version.id for version in root.versions()] == [OLD]


def test_what_no_version_begins_with_is_told_as_before(
    root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in (["rollback", "--to"], ["uninstall", "--yes", "--version"]):
        assert run([*line, "9.9", str(root.path)]) == 2
        told = capsys.readouterr().err
        assert told.startswith("envcheck: 9.9: there is no such") and OLD in told
    with pytest.raises(NotStarted, match=r"^9\.9: there is no such version"):
        finding.find(str(root.path), "9.9")
