"""list, rollback, uninstall and prune as a user types them; and the doctor, which looks at what is in use."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli import envcheck, refused
from installing import Home
from started import Installed
from transaction_parts import DyingJournal, in_child, install, names, runs

from envcheck.install import places
from envcheck.install.transaction.layout import Root
from envcheck.install.transaction.lock import locked as root_lock

XDG = ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in XDG:
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def root() -> Path:
    return places.environments() / "tiny"


def listed(state: int = 0) -> dict[str, object]:
    result = envcheck("list", "--format", "json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["schema"] == 2
    return {one["name"]: one for one in found["environments"]}  # type: ignore[return-value]


def printed(*arguments: str | Path) -> str:
    result = envcheck(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode()


def everything(root: Path) -> set[Path]:
    """All of a root but the trace of the lock's holder, who was killed."""
    return set(root.rglob("*")) - {Root(root).lock}


def test_list_tells_what_is_not_as_it_should_be(root: Path) -> None:
    one = install(root, "1")
    site = next((root / "current").glob("lib/*/site-packages"))
    (site / "tiny.py").write_text("changed")
    (site / "mine.py").write_text("")
    journal = DyingJournal(root, 5, "before")
    assert in_child(lambda: install(root, "2", journal=journal)) == -9
    (root / "notes.txt").write_text("")
    text = printed("list")
    assert "changed since" in text and "tiny.py was changed" in text and "mine.py was added" in text
    assert "unfinished" in text and "notes.txt (not envcheck's)" in text
    (root / one.version / "bin" / "python").unlink()
    assert listed()["tiny"]["status"] == "broken link"  # type: ignore[index]
    with root_lock(Root(root), "a test"):
        assert "a test" in listed()["tiny"]["at_work"]  # type: ignore[index]
    assert "a test" not in printed("list")


def test_rollback_and_forward(root: Path) -> None:
    one, two = install(root, "1"), install(root, "2")
    assert printed("rollback").startswith(f"In use now: {one.version}\n")
    assert runs(root) == "1"
    printed("rollback", "tiny", "--to", two.version)
    assert runs(root) == "2"
    sentence = refused(envcheck("rollback", "--to", "9"))
    assert "9: there is no such verified version" in sentence and one.version in sentence
    next((root / one.version).glob("lib/*/site-packages/tiny.py")).unlink()
    assert "tiny.py is gone" in refused(envcheck("rollback"), 3)
    assert runs(root) == "2"


def test_uninstalling_asks_where_somebody_is(root: Path, tmp_path: Path) -> None:
    install(root, "1")
    assert "there is no terminal to ask on" in refused(envcheck("uninstall", "tiny"))
    here = Installed(Home(tmp_path), tmp_path, {name: os.environ[name] for name in XDG})
    for answer, code in (("n\n", 130), ("y\n", 0)):
        assert runs(root) == "1"
        with here.typing("uninstall") as terminal:
            terminal.wait_for(f"Remove {root} with all of its versions")
            terminal.type(answer)
            assert terminal.end() == code
    assert not root.exists()


def test_uninstall_takes_all_of_ours_and_nothing_else(root: Path) -> None:
    install(root, "1")
    install(root, "2")
    (root / "notes.txt").write_text("mine")
    text = printed("uninstall", "tiny", "--yes")
    assert f"left        {root}/notes.txt" in text.replace("\n              ", " ")
    assert names(root) == {"notes.txt"}
    assert listed() == {}
    assert json.loads(envcheck("collect").stdout)["target"] is None, "nothing was installed last"


def test_prune_keeps_what_is_in_use_and_one_more(root: Path) -> None:
    versions = [install(root, release).version for release in ("1", "2", "3")]
    journal = DyingJournal(root, 5, "before")
    assert in_child(lambda: install(root, "4", journal=journal)) == -9
    (cut_off,) = names(root) - {"current", ".envcheck", *versions}
    other = places.downloads() / ("cd" * 32) / "a.whl"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"x" * 100_000)
    (left := Path(os.environ["TMPDIR"], "envcheck-held-x")).mkdir()
    os.utime(left, (1e9, 1e9))
    before = everything(root)
    text = printed("prune", "--dry-run")
    assert "leftovers of interrupted runs" in text and str(left) in text and left.exists()
    assert f"would be removed  {versions[0]} of tiny" in text
    assert f"would be removed  {cut_off} of tiny" in text
    assert "for envcheck rollback" in text and "in use" in text and "This would free" in text
    assert everything(root) == before and other.exists()
    done = json.loads(printed("prune", "--format", "json"))
    assert [one["version"] for one in done["removed"]] == [versions[0], cut_off]
    assert {one["version"]: one["why"] for one in done["kept"]} == {
        versions[2]: "in use",
        versions[1]: "for envcheck rollback",
    }
    assert done["files"] == 1 and done["freed"] > 100_000 and done["notes"] == []
    assert not other.exists()
    assert done["leftovers"] == [str(left)] and not left.exists()
    assert names(root) == {"current", ".envcheck", *versions[1:]}
    printed("prune", "tiny", "--keep", "0")
    assert names(root) == {"current", ".envcheck", versions[2]}
    assert runs(root) == "3"


def test_prune_leaves_a_running_installation_and_its_files_alone(root: Path) -> None:
    for release in ("1", "2", "3"):
        install(root, release)
    file = places.downloads() / ("cd" * 32) / "a.whl"
    file.parent.mkdir(parents=True)
    file.write_text("x")
    with root_lock(Root(root), "a test"):
        text = printed("prune")
    assert "a test" in text and "kept" in text
    assert file.exists() and len(names(root)) == 5
