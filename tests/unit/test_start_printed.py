"""What `envcheck run --print` prints can be read back word by word, whatever is in the words."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from test_engines_command import CDI, HERE, start

from envcheck.exit_codes import NotStarted
from envcheck.install.engine import Wiring
from envcheck.install.engines.command import Here, Mount
from envcheck.install.start import printed
from envcheck.install.start.options import Options
from envcheck.install.start.printed import Form

PINNED = "nvcr.io/nvidia/tensorflow@sha256:" + "1f" * 32
HOSTILE = ["python3", "it's", 'a "b"', "$HOME", "`id`", "a\nb", "", "# no", "é"]
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


def lines(form: Form, command: list[str] = HOSTILE, here: Here = HERE, **changes: object) -> str:
    return printed.text(form, start(**changes), PINNED, command, here)


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[0]


def service(text: str) -> dict[str, Any]:
    """A compose file as YAML has it: each value is one line of JSON."""
    head, name, *rest = text.splitlines()
    assert (head, name) == ("services:", "  envcheck:")
    found = {}
    for line in rest:
        key, _, value = line.removeprefix("    ").partition(": ")
        assert key.isidentifier() and line.startswith("    ")
        whole = re.sub(r"\\\\|\\U(.{8})", _character, value.replace("$$", "$"))
        found[key] = json.loads(whole)
    return found


@pytest.mark.parametrize("form", ["engine", "srun", "apptainer"])
def test_a_line_is_one_command(form: Form) -> None:
    words = shlex.split(lines(form), comments=form == "srun")
    assert words[-len(HOSTILE) :] == HOSTILE
    assert not [word for word in words if "device nodes" in word], "without the check"


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_any_word_comes_back(command: list[str]) -> None:
    assert shlex.split(lines("engine", ["x", *command]))[-len(command) :] == command
    assert service(lines("compose", command))["command"] == command


def test_the_engine_s_line_is_what_run_starts() -> None:
    words = shlex.split(lines("engine"))
    assert words[:3] == ["/usr/bin/podman", "run", "--rm"]
    assert {"--shm-size=2048m", "--user=1000:100", "--workdir=/home/ann/work"} <= set(words)


def test_compose_says_all_of_it() -> None:
    here = replace(
        HERE,
        mounts=[Mount(source="/data", target="/in: side", read_only=True)],
        environment={"A_TOKEN": None, "PRICE": "5$"},
        ports=["127.0.0.1:8888:8888"],
        devices=["/dev/fuse"],
    )
    text = lines("compose", here=here, pids_unlimited=True, devices=["/dev/infiniband"], init=True)
    found = service(text)
    assert '"5$$"' in text, 'compose takes "$" for a variable'
    assert found["image"] == PINNED and found["command"] == HOSTILE
    assert found["volumes"][1] == {
        "type": "bind",
        "source": "/data",
        "target": "/in: side",
        "read_only": True,
    }
    assert found["environment"] == {
        "TF_OF_THE_STACK": "1",
        "HOME": "/tmp",
        "A_TOKEN": None,
        "PRICE": "5$",
    }
    assert found["devices"] == [
        "nvidia.com/gpu=all",
        "/dev/infiniband:/dev/infiniband",
        "/dev/fuse:/dev/fuse",
    ]
    assert (found["pids_limit"], found["init"], found["ports"]) == (-1, True, here.ports)
    assert found["ulimits"] == {"memlock": -1} and "entrypoint" not in found
    assert service(lines("compose", entrypoint=""))["entrypoint"] == []
    named = service(lines("compose", entrypoint="tini"))
    assert named["entrypoint"] == [] and named["command"] == ["tini", *HOSTILE]


@pytest.mark.parametrize(
    ("wiring", "key", "value"),
    [
        (CDI, "devices", ["nvidia.com/gpu=all"]),
        (Wiring(kind="runtime", arguments=["--runtime=nvidia"]), "runtime", "nvidia"),
        (Wiring(kind="gpus", arguments=["--gpus", "all"]), "deploy", printed._reserved([])),
    ],
)
def test_compose_has_each_way_to_the_gpus(wiring: Wiring, key: str, value: object) -> None:
    found = service(lines("compose", wiring=wiring))
    assert found[key] == value
    assert len({"devices", "runtime", "deploy"} & set(found)) == 1


def test_compose_is_yaml() -> None:
    """JSON on a line is a flow node of YAML 1.2, whose escapes name whole characters, and in eight digits."""
    text = lines("compose", ["x", "😀", r"\ud83d\ude00"])
    assert all(line.isascii() and line.isprintable() for line in text.splitlines())
    keys = [line.partition(":")[0] for line in text.splitlines()]
    assert len(keys) == len(set(keys))
    assert r'"\U0001f600", "\\ud83d\\ude00"' in text
    assert service(text)["command"] == ["x", "😀", r"\ud83d\ude00"]


def test_a_line_for_pyxis() -> None:
    here = replace(HERE, mounts=[Mount(source="/data", target="/in", read_only=True)])
    text = lines("srun", here=replace(here, environment={"A_TOKEN": None}), entrypoint="")
    assert text.startswith(f"# {PINNED}\n")
    words = shlex.split(text, comments=True)
    assert words[0] == "srun"
    assert set(words[1:7]) == {
        "--container-image=nvcr.io#nvidia/tensorflow:sha256:" + "1f" * 32,
        "--gpus-per-node=2",
        "--container-mounts=/home/ann/work:/home/ann/work,/data:/in:ro",
        "--container-workdir=/home/ann/work",
        "--no-container-entrypoint",
        "--container-env=A_TOKEN",
    }
    assert words[7:9] == ["env", "TF_OF_THE_STACK=1"]
    with pytest.raises(NotStarted, match="a comma or a colon"):
        lines("srun", here=replace(HERE, mounts=[Mount(source="/a,b", target="/c")]))
    for pinned, uri in (
        ("tensorflow/tensorflow:2.15.0-gpu", "tensorflow/tensorflow:2.15.0-gpu"),
        ("localhost:5000/tf:1@sha256:ab", "localhost:5000#tf:sha256:ab"),
    ):
        own = printed.text("srun", start(), pinned, HOSTILE, HERE)
        assert f"--container-image={uri}" in shlex.split(own, comments=True)


def test_a_line_for_apptainer() -> None:
    words = shlex.split(lines("apptainer"))
    assert words[:5] == ["apptainer", "run", "--cleanenv", "--no-home", "--nv"]
    assert f"docker://{PINNED}" in words and "nvidia.com/gpu=all" not in words
    assert shlex.split(lines("apptainer", entrypoint=""))[1] == "exec"


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("compose", Options(engine_arg=["--cap-add=ALL"])),
        ("srun", Options(port=["8888"])),
        ("apptainer", Options(device=["/dev/fuse"])),
        ("srun", Options(entrypoint="tini")),
    ],
)
def test_what_a_form_cannot_say_is_refused(form: Form, options: Options) -> None:
    with pytest.raises(NotStarted, match=f"--print={form} cannot say this"):
        printed.refuse(form, options)
    printed.refuse("engine", options)


CHOSEN = replace(
    CDI,
    arguments=["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=MIG-1"],
    chosen=["GPU-0", "MIG-1"],
)


def test_chosen_gpus_are_in_every_form_that_can_say_them() -> None:
    assert service(lines("compose", wiring=CHOSEN))["devices"] == [
        "nvidia.com/gpu=0",
        "nvidia.com/gpu=MIG-1",
    ]
    of_docker = replace(CHOSEN, kind="gpus", arguments=[])
    reserved = service(lines("compose", wiring=of_docker))["deploy"]["resources"]["reservations"]
    assert reserved["devices"][0]["device_ids"] == ["GPU-0", "MIG-1"]
    words = shlex.split(lines("apptainer", wiring=CHOSEN))
    assert '"CUDA_VISIBLE_DEVICES=GPU-0,MIG-1"' in words
    with pytest.raises(NotStarted, match="--gpus: --print=srun cannot say this"):
        printed.refuse("srun", Options(gpus="0"))
