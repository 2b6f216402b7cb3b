"""What `envcheck run` asks of an engine: options, mounts, the working directory, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from envcheck.exit_codes import NotStarted, UsageError
from envcheck.install.engine import Start, Wiring
from envcheck.install.engines.command import Mount, argv
from envcheck.install.start import container, start_file
from envcheck.install.start.options import Options, device, mebibytes, mount, port, variable

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


def test_without_a_gpu_there_is_no_wiring_and_no_check(here: Path) -> None:
    options = Options(no_gpu=True)
    wished = container.wished(start(), options)
    words = argv(wished, ["true"], container.where(options))
    assert "--device" not in words and words[-2:] == ["sha256:0", "true"]
    assert "NVIDIA_VISIBLE_DEVICES=void" in words
    with_gpus = argv(start(), ["true"], container.where(Options()))
    assert "--device" in with_gpus and any("/dev/nvidia" in word for word in with_gpus)


def test_the_callers_own_words_reach_the_engine(here: Path) -> None:
    (here / "data set").mkdir()
    options = Options(
        env=[variable("A=b=c"), variable("TOKEN")],
        volume=[mount("data set:/data:ro")],
        network="host",
        shm_size=2048,
    )
    wished = container.wished(start(), options)
    found = container.where(options)
    assert found.mounts == [Mount(source=f"{here}/data set", target="/data", read_only=True)]
    assert (found.cwd, found.uid, found.gid) == (str(here), os.getuid(), os.getgid())
    words = argv(wished, ["true"], found)
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


@pytest.mark.parametrize("word", ["", "/x", ":/x", "/:x", "/:", "/nowhere-at-all:/x", "/:/x:z"])
def test_a_volume_that_is_none(word: str) -> None:
    with pytest.raises(NotStarted) as caught:
        mount(word)
    assert str(caught.value).startswith(f"--volume {word!r}: ")


@pytest.mark.parametrize(
    ("size", "count"), [("8g", 8192), ("512m", 512), ("1", 1), ("1025k", 2), ("1GiB", 1024)]
)
def test_a_size(size: str, count: int) -> None:
    assert mebibytes(size) == count


@pytest.mark.parametrize("size", ["0", "-1g", "8x", "g", "1.5g", ""])
def test_a_size_that_is_none(size: str) -> None:
    with pytest.raises(NotStarted):
        mebibytes(size)


def test_variables() -> None:
    assert [variable(word) for word in ("A=1", "B", "C=")] == [("A", "1"), ("B", None), ("C", "")]
    options = Options(env=[variable(word) for word in ("A=1", "B", "C")])
    assert options.own_variables({"B": "2"}) == {"A": "1", "B": "2"}
    for word in ("=1", ""):
        with pytest.raises(NotStarted):
            variable(word)


@pytest.mark.parametrize("word", ["/dev/null", "/dev/null:/dev/x:rw", "nvidia.com/gpu=0"])
def test_a_device(word: str) -> None:
    assert device(word) == word


@pytest.mark.parametrize("word", ["", "null", "/dev/no-such-device", "gpu=0"])
def test_a_device_that_is_none(word: str) -> None:
    with pytest.raises(NotStarted, match="--device"):
        device(word)


@pytest.mark.parametrize(
    ("engine", "options", "option"),
    [
        ("apptainer", Options(shm_size=1024), "--shm-size"),
        ("apptainer", Options(network="bridge"), "--network"),
    ],
)
def test_what_an_engine_does_not_have_is_refused(
    engine: str, options: Options, option: str
) -> None:
    with pytest.raises(NotStarted) as caught:
        container.wished(start(engine), options)
    assert option in str(caught.value) and engine in str(caught.value)
    container.wished(start("apptainer"), Options(network="none"))
    container.wished(start(), options)


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


def test_a_working_directory_that_is_gone(here: Path) -> None:
    (here / "gone").mkdir()
    os.chdir(here / "gone")
    (here / "gone").rmdir()
    with pytest.raises(NotStarted) as caught:
        container.where(Options())
    assert "working directory" in str(caught.value)


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


@pytest.mark.parametrize(
    ("word", "is_"),
    [
        ("8888", "8888:8888"),
        ("8080:80", "8080:80"),
        ("8888/udp", "8888:8888/udp"),
        ("127.0.0.1:8888:8889/tcp", "127.0.0.1:8888:8889/tcp"),
        ("[::1]:80:81", "[::1]:80:81"),
    ],
)
def test_ports_as_engines_have_them(word: str, is_: str) -> None:
    assert port(word) == is_


@pytest.mark.parametrize("word", ["", "a", "80:", ":80", "80:80/sctp", "-1", "²"])
def test_what_is_no_port(word: str) -> None:
    with pytest.raises(NotStarted, match="is not a port"):
        port(word)
