"""A stack by its name alone means the same as the options do, and contradictions are one sentence."""

from __future__ import annotations

import pytest

from envcheck.cli import selection, stacks
from envcheck.cli.main import build_parser, run
from envcheck.install.request import Request


def request(line: str) -> Request:
    arguments = build_parser(line.split()).parse_args(line.split())
    stacks.settle(arguments)
    return selection.request_of(arguments)


@pytest.mark.parametrize("command", ["install", "bundle"])
@pytest.mark.parametrize(
    ("named", "options"),
    [
        ("tensorflow", "--stack tensorflow"),
        ("tensorflow-cpu", "--mode wheel --stack tensorflow-cpu"),
        ("nvidia-tf1 --release 23.03", "--stack nvidia-tf1 --release 23.03"),
        ("tensorflow-cpu 2.20.0", "--stack tensorflow-cpu --release 2.20.0"),
        ("tensorflow-cpu==2.20.0", "--stack tensorflow-cpu --release 2.20.0"),
        ("tensorflow-gpu==2.20.0", "--stack tensorflow --release 2.20.0"),
        ("ngc-tf2 24.03", "--stack ngc-tf2 --release 24.03"),
        ("ngc-tf1", "--mode container --stack ngc-tf1"),
        ("ngc-tf2", "--mode container --stack ngc-tf2"),
        ("ngc-tf2 --release 24.03", "--stack ngc-tf2 --release 24.03"),
        ("--image a/b:1", "--mode container --image a/b:1"),
        ("tensorflow-gpu", "--stack tensorflow"),
        ("tensorflow --stack tensorflow", "tensorflow --mode wheel"),
        ("", "--mode wheel"),
    ],
)
def test_both_ways_are_one_request(command: str, named: str, options: str) -> None:
    assert request(f"{command} {named}") == request(f"{command} {options}")


def test_tensorflow_gpu_is_said_to_be_tensorflow(capsys: pytest.CaptureFixture[str]) -> None:
    request("install tensorflow-gpu")
    assert capsys.readouterr().err == "envcheck: tensorflow-gpu is the stack tensorflow here\n"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("install tensorflow --stack nvidia-tf1", '"tensorflow" and --stack nvidia-tf1 are two'),
        (
            "install ngc-tf1 --mode wheel",
            '"ngc-tf1" is a container, which contradicts --mode wheel',
        ),
        ("install tensorflow --mode container", "wheels, which contradicts --mode container"),
        ("install --stack tensorflow --image a/b:1", "--image and --stack cannot be used together"),
        ("releases ngc-tf2 --mode wheel", '"ngc-tf2" is a container'),
        ("install tensorflow==2.20.0 2.19.0", "2.19.0 and 2.20.0 are two releases"),
        ("install tensorflow 2.20.0 --release 2.19.0", "2.19.0 and 2.20.0 are two releases"),
        ("install tensorflow==", '"tensorflow==" is not the name of a stack'),
        ("install ==2.20.0", '"==2.20.0" is not the name of a stack'),
        ("releases tensorflow==2.20.0", '"tensorflow==2.20.0" is not the name of a stack'),
        ("install tensorflow --offline x", '--offline and "tensorflow" cannot be used together'),
        ("install --stack tensorflow --offline x", "--offline and --stack cannot be used together"),
        ("install ngc-tf1 --image a/b:1", '--image and "ngc-tf1" cannot be used together'),
        ("install ngc-tf1 --python 3.8", "--python is for --mode wheel"),
        ("install tensorflow --engine podman", "--engine is for --mode container"),
    ],
)
def test_contradictions_are_one_sentence(
    capsys: pytest.CaptureFixture[str], line: str, sentence: str
) -> None:
    assert run(line.split()) == 2
    errors = capsys.readouterr().err.splitlines()
    assert sentence in errors[0]
    assert len(errors) <= 2 and all(line.startswith("hint: ") for line in errors[1:])
