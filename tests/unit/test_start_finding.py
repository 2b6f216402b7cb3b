"""Which version `envcheck run` starts, in which environment, and what it asks of an engine."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from envcheck.exit_codes import EnvcheckError, UsageError
from envcheck.install import places
from envcheck.install.engine import Start, Wiring
from envcheck.install.engines.command import Mount, argv
from envcheck.install.start import container, start_file, wheel
from envcheck.install.start.finding import find
from envcheck.install.start.options import Options, mount, variable
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


CDI = Wiring(kind="cdi", arguments=["--device", "nvidia.com/gpu=all"])


def start(engine: str = "podman", **changes: object) -> Start:
    given: dict[str, object] = {
        "engine": engine, "program": f"/usr/bin/{engine}", "image": "sha256:0", "reference": "r",
        "wiring": CDI, "gpus": 2, "shm_mib": 1024, **changes,
    }  # fmt: skip
    return Start(**given)  # type: ignore[arg-type]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_callers_own_words_reach_the_engine(here: Path) -> None:
    (here / "data set").mkdir()
    options = Options(
        env=[variable("A=b=c"), variable("TOKEN")],
        volume=[mount("data set:/data:ro")],
        engine_arg=["--shm-size=2048m", "--network=host"],
    )
    found = container.where(options)
    assert found.mounts == [Mount(source=f"{here}/data set", target="/data", read_only=True)]
    assert (found.cwd, found.uid, found.gid) == (str(here), os.getuid(), os.getgid())
    words = argv(start(), ["true"], found)
    assert {"--shm-size=2048m", "--network=host", "A=b=c", "TOKEN"} <= set(words)


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("/:/x", Mount(source="/", target="/x")),
        ("/:/x:rw", Mount(source="/", target="/x")),
        (".:/x:ro", Mount(source="HERE", target="/x", read_only=True)),
        ("a:b:/x", Mount(source="HERE/a:b", target="/x")),
    ],
)
def test_a_volume(here: Path, word: str, wanted: Mount) -> None:
    (here / "a:b").mkdir()
    source = wanted.source.replace("HERE", str(here))
    assert mount(word) == msgspec.structs.replace(wanted, source=source)


def test_a_working_directory_of_the_system_s_is_not_mounted_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("/", "/proc", "/usr"):
        monkeypatch.chdir(place)
        words = argv(start(), ["true"], container.where(Options()))
        assert "--mount" not in words and not [w for w in words if w.startswith("--workdir")]
        assert capsys.readouterr().err.startswith(f"envcheck: {place} is not mounted")
        volumes = [mount("/:/usr"), mount("/:/proc")] if place != "/" else []
        container.where(Options(volume=volumes))
        assert (capsys.readouterr().err == "") == (place != "/"), "mounted by the user"


def test_a_damaged_start_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "start.json"
    for text in (None, "{", "{}", '{"engine": "lxc"}'):
        if text is not None:
            file.write_text(text)
        with pytest.raises(UsageError) as caught:
            start_file.read(file)
        assert str(file) in str(caught.value) and caught.value.hint
    file.write_bytes(msgspec.json.encode(start()))
    assert start_file.read(file) == start()
