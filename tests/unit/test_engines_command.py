"""The command line of each engine for an installed image, and which engine has the container that runs."""

from __future__ import annotations

import shutil

import pytest
from msgspec.structs import replace

from envcheck.collector.runtime.process import Result
from envcheck.exit_codes import CouldNotLook, UsageError
from envcheck.install.engine import EngineName, Start, Wiring
from envcheck.install.engines import command, gpu_count_check, inside
from envcheck.install.engines.command import Here, Mount

CDI = Wiring(kind="cdi", arguments=["--device", "nvidia.com/gpu=all"])
HERE = Here(uid=1000, gid=100, cwd="/home/ann/work", home="/home/ann", interactive=True)


def start(engine: EngineName = "podman", **changes: object) -> Start:
    values: dict[str, object] = {
        "engine": engine,
        "program": f"/usr/bin/{engine}",
        "image": "sha256:1f0c",
        "reference": "nvcr.io/nvidia/tensorflow:23.03-tf1-py3",
        "wiring": CDI,
        "gpus": 2,
        "shm_mib": 2048,
        "ulimits": {"memlock": "-1"},
        "environment": {"TF_OF_THE_STACK": "1"},
    }
    return Start(**(values | changes))  # type: ignore[arg-type]


def after(words: list[str], option: str) -> list[str]:
    """The values of an option that may come several times."""
    return [words[place + 1] for place, word in enumerate(words) if word == option]


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_the_whole_start(engine: EngineName) -> None:
    words = command.argv(start(engine), ["python3", "train.py"], HERE)
    assert words[:3] == [f"/usr/bin/{engine}", "run", "--rm"]
    assert {"--interactive", "--pull=never", "--shm-size=2048m", "--user=1000:100"} <= set(words)
    assert after(words, "--device") == ["nvidia.com/gpu=all"]
    assert after(words, "--ulimit") == ["memlock=-1"]
    assert after(words, "--mount") == ["type=bind,source=/home/ann/work,target=/home/ann/work"]
    assert "--workdir=/home/ann/work" in words
    assert after(words, "--env") == ["TF_OF_THE_STACK=1", "HOME=/tmp"]
    image = words.index("sha256:1f0c")
    assert words[image + 1 :] == [*gpu_count_check.checked(2, ["python3", "train.py"])]
    assert not {"--tty", "--init", "--security-opt=label=disable", "--entrypoint="} & set(words)
    assert not [word for word in words if word.startswith(("--network", "--name", "--userns"))]


@pytest.mark.parametrize(
    ("uid", "cwd", "mounts", "home"),
    [
        (1000, "/home/ann", [], ["HOME=/home/ann"]),
        (1000, "/home/ann/work", [], ["HOME=/tmp"]),
        (1000, "/home/anna", [], ["HOME=/tmp"]),
        (1000, "/data", [Mount(source="/home/ann", target="/home/ann")], ["HOME=/home/ann"]),
        (0, "/data", [], []),
    ],
)
def test_home_is_where_something_can_be_written(
    uid: int, cwd: str, mounts: list[Mount], home: list[str]
) -> None:
    here = replace(HERE, uid=uid, cwd=cwd, mounts=mounts)
    given = after(command.argv(start(environment={}), ["true"], here), "--env")
    assert given == home


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("/", False),
        ("/usr", False),
        ("/usr/local/lib", False),
        ("/etc/", False),
        ("/opt", False),
        ("/var", False),
        ("/opt/ours", True),
        ("/tmp", True),
        ("/usrdata", True),
        ("/home/ann", True),
    ],
)
def test_a_working_directory_never_hides_the_images_system(path: str, may: bool) -> None:
    assert command.mountable(path) is may
    words = command.argv(start(), ["true"], replace(HERE, cwd=path))
    assert bool(after(words, "--mount")) is may
    assert any(word.startswith("--workdir") for word in words) is may


def test_names_with_commas_and_quotes_are_fields_of_a_csv_line() -> None:
    mount = Mount(source='/a,b"c', target="/d:e", read_only=True)
    assert command.bind(mount) == 'type=bind,"source=/a,b""c",target=/d:e,readonly'


PODMAN, DOCKER = "3e28" * 16 + " running", "4f39" * 16 + " exited"


def says(monkeypatch: pytest.MonkeyPatch, **answers: str) -> None:
    """Each engine's answer: what it prints of a container, or the words of its error."""

    def ask(program: str, arguments: list[str], **_: object) -> Result:
        answer = answers[program.rpartition("/")[2]].encode()
        knows = answer in (PODMAN.encode(), DOCKER.encode())
        result = (answer, b"") if knows else (b"[]", answer)
        return Result([program], "exited", 0 if knows else 1, *result, 0.1)

    monkeypatch.setattr(inside, "ask", ask)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


UNKNOWN = {"podman": "Error: no such container c1", "docker": "Error: No such container: c1"}


@pytest.mark.parametrize(
    ("answers", "error", "words", "hint"),
    [
        (UNKNOWN, UsageError, "no such container in podman or docker", "docker ps"),
        ({**UNKNOWN, "docker": DOCKER}, UsageError, "reports that it is exited", "docker start c1"),
        (
            {"podman": PODMAN, "docker": DOCKER},
            UsageError,
            "both have one",
            "4f394f394f39 (docker)",
        ),
        (
            {**UNKNOWN, "docker": "Cannot connect to the Docker daemon at unix:///x"},
            CouldNotLook,
            "docker.* does not answer",
            "systemctl start docker",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, str],
    error: type[Exception],
    words: str,
    hint: str,
) -> None:
    says(monkeypatch, **answers)
    with pytest.raises(error, match=words) as caught:
        inside.of_container("c1")
    assert hint in caught.value.hint  # type: ignore[attr-defined]
