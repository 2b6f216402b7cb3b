"""What `envcheck run` asks of an engine: options, mounts, the working directory, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from envcheck.exit_codes import UsageError
from envcheck.install.engine import Start, Wiring
from envcheck.install.engines.command import Mount, argv
from envcheck.install.start import container, start_file
from envcheck.install.start.options import Options, mount, variable

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
