"""`--format html` of a fleet: pages in a directory, of which none is stale and none is somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.cli.main import run
from envcheck.fleet.folder import FleetFolder

HEALTHY = Path(__file__).parents[2] / "envcheck" / "data" / "demos" / "healthy.json"


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    folder = FleetFolder(tmp_path / "snapshots")
    folder.path.mkdir()
    for name in ("gpu1", "a/b"):
        folder.keep(name, HEALTHY.read_bytes(), [])
    return folder.path


def test_pages_go_where_output_says_and_none_is_stale(
    snapshots: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = tmp_path / "pages"
    command = ["fleet", "report", str(snapshots), "--format", "html", "--output", str(pages)]
    assert run(command) == 0
    assert capsys.readouterr().out == f"{pages}/index.html\n"
    assert sorted(path.name for path in pages.iterdir()) == [
        "%61%2Fb.html",
        "gpu1.html",
        "index.html",
    ]
    index = (pages / "index.html").read_text()
    assert (
        'href="%2561%252Fb.html"' in index
        and "None broken, degraded or silent of 2 machines" in index
    )
    assert 'href="index.html"' in (pages / "gpu1.html").read_text()

    FleetFolder(snapshots).file("gpu1").unlink()
    (pages / "notes.html").write_text("mine")
    assert run([*command, "-q"]) == 0
    assert capsys.readouterr().out == ""
    assert sorted(path.name for path in pages.iterdir()) == [
        "%61%2Fb.html",
        "index.html",
        "notes.html",
    ]


def test_without_output_they_lie_beside_the_snapshots(
    snapshots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert run(["fleet", "report", str(snapshots), "--format", "html"]) == 0
        assert capsys.readouterr().out == f"{snapshots}/index.html\n"
    assert (snapshots / "gpu1.html").is_file() and (snapshots / "gpu1.json").is_file()


def test_what_cannot_be_written_is_refused_before_anything_is_judged(
    snapshots: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*more: str) -> str:
        assert run(["fleet", "report", str(snapshots), "--format", "html", *more]) == 2
        return capsys.readouterr().err

    (tmp_path / "file").write_text("")
    assert "the pages of a fleet need a directory" in refused("--output", str(tmp_path / "file"))
    assert "No such file or directory" in refused("--output", str(tmp_path / "no" / "where"))
    (snapshots / "gpu1.html").write_text("mine")
    assert "gpu1.html exists and was not written by envcheck" in refused()
    assert (snapshots / "gpu1.html").read_text() == "mine"
    assert not (snapshots / "index.html").exists()
    assert run(["demo", "fleet", "--format", "html"]) == 2
    assert "needs --output DIR for the pages" in capsys.readouterr().err
