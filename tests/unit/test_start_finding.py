"""Which version `envcheck run` starts, with which shell and environment, and what it says where none is."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.exit_codes import EnvcheckError
from envcheck.install import places
from envcheck.install.start import wheel
from envcheck.install.start.finding import find
from envcheck.install.transaction import roots
from envcheck.install.transaction.layout import Root, Version
from envcheck.install.wheels import activation

ONE, TWO = "1.0-py3.11-00000001", "23.03-tf1-00000002"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))


def made(path: Path, *versions: str, current: str = "", unfinished: str = "") -> Path:
    """A root with these versions."""
    (path / ".envcheck").mkdir(parents=True)
    (path / ".envcheck/owner.json").write_text(
        '{"owner": "envcheck", "layout": 1, "created_at": "2026-11-21T00:00:00Z"}'
    )
    for version in versions:
        own = path / version / ".envcheck"
        own.mkdir(parents=True)
        if version != unfinished:
            (own / "record.json").write_text("{}")
    if current:
        (path / "current").symlink_to(current)
    return path


def test_the_one_installed_last_and_the_version_in_use() -> None:
    root = made(places.environments() / "tiny", ONE, TWO, current=TWO)
    made(places.environments() / "other", ONE, current=ONE)
    roots.remember(Root(root))
    assert find().directory == root / TWO
    assert find(version=ONE).directory == root / ONE
    assert find("other").directory == root.with_name("other") / ONE


def test_a_path_names_a_root_its_current_or_a_version(tmp_path: Path) -> None:
    root = made(tmp_path / "else where", ONE, TWO, current=TWO)
    for word, version in ((root, TWO), (root / "current", TWO), (root / ONE, ONE)):
        assert find(str(word)).directory == root / version


def refusal(word: str = "", version: str = "") -> tuple[str, str]:
    with pytest.raises(EnvcheckError) as caught:
        find(word, version)
    return str(caught.value), caught.value.hint


def test_where_nothing_is_installed() -> None:
    result, hint = refusal()
    assert result == "nothing is installed yet"
    assert "without a GPU: envcheck install tensorflow-cpu" in hint
    made(places.environments() / "tiny", ONE, current=ONE)
    result, hint = refusal()
    assert result.endswith("there are tiny") and "--name" in hint
    assert "there is no such environment" in refusal("zz")[0]


def test_a_version_that_is_not_there_or_not_finished(tmp_path: Path) -> None:
    root = made(tmp_path / "root", ONE, TWO, current=TWO, unfinished=ONE)
    result, hint = refusal(str(root), "9.9-py3.11-00000009")
    assert "there is no such version" in result and ONE in hint and TWO in hint
    assert "there is no such version" in refusal(str(root), "../root")[0]
    assert "was never finished" in refusal(str(root), ONE)[0]


ODD = {"A": 'it\'s $HOME; `x` \\ "q"', "TF_X": "1", "EMPTY": ""}


@pytest.fixture
def version(tmp_path: Path) -> Version:
    """With activation scripts, as short as they can be."""
    made = Version(tmp_path / "tiny" / "1.0-py3.11-00000001")
    (made.directory / "bin").mkdir(parents=True)
    script = made.directory / "bin" / "activate"
    script.write_text('deactivate () {\n    true\n}\nVIRTUAL_ENV="x"\n')
    return made


def test_activation_is_read_as_it_was_written(version: Version) -> None:
    assert activation.read(version.directory) == {}
    activation.write(version.directory, ODD)
    assert activation.read(version.directory) == ODD
    with (version.directory / "bin" / "activate").open("a") as script:
        script.write("\nMINE=1 ; export MINE\n")
    assert activation.read(version.directory) == ODD


def test_another_shell_or_one_without_a_terminal_gets_the_variables(version: Version) -> None:
    for shell, interactive in (("/usr/bin/fish", True), ("/bin/bash", False), ("", False)):
        caller = {"SHELL": shell, "PATH": "/usr/bin"}
        found = wheel.shell(version, caller, interactive=interactive)
        assert found.argv == [shell or "/bin/sh"]
        assert found.environment == wheel.activated(version, caller)
