"""What `envcheck install` refuses: one sentence, the design's exit code, and nothing touched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import PYTHON, environment
from demo_stack import Demo, demo, sentence
from installing import Home
from processes import ran


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("demo")) as running:
        yield running


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--lock", "l", "--release", "1"], "--lock and --release cannot be used together"),
        (["--path", ""], "--path: the path is empty"),
        (["--lock", "/nowhere.toml"], "/nowhere.toml: the lock cannot be read: No such file"),
        (["--offline", "/nowhere-at-all"], "/nowhere-at-all: No such file"),
        (["--stack", "/nowhere.toml"], "/nowhere.toml: the stack cannot be read: No such file"),
        (["--python", "/nowhere-at-all/python"], "there is no /nowhere-at-all/python"),
        (["--stack", "tensorflo"], 'did you mean "tensorflow"'),
    ],
)
def test_wrong_usage(home: Home, arguments: list[str], word: str) -> None:
    result = home.envcheck("install", *arguments)
    assert word in sentence(result, 2)


def test_no_disk(home: Home, shop: Demo) -> None:
    """The data directory is a tmpfs of 4 MiB: refused in the plan, with what is missing."""
    folder = home.folder / "data"
    folder.mkdir(parents=True)
    mount = f'mount -t tmpfs -o size=4m none "{folder}" && exec "$@"'
    argv: list[Any] = ["unshare", "-rm", "sh", "-c", mount, "sh"]
    if ran([*argv, "true"]).returncode:
        pytest.skip("no mount namespaces for this user")
    install = [PYTHON, "-m", "envcheck", "install", *shop.selection, "--yes"]
    result = ran([*argv, *install], env=environment(**home.variables))
    text = sentence(result, 3)
    assert "not enough space" in text and f"{folder}" in text and "more needed" in text


def gpu_is_here() -> bool:
    return Path("/dev/nvidiactl").exists()


@pytest.mark.skipif(gpu_is_here(), reason="there is a GPU")
def test_a_gpu_stack_without_a_gpu(home: Home) -> None:
    result = home.envcheck("install", "--stack", "nvidia-tf1")
    assert "no NVIDIA GPU" in sentence(result, 3)
    assert "--allow-no-gpu" in result.stderr.decode()
