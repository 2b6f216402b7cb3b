"""`envcheck install` from the command line: what it refuses, what it tells, and that it installs."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import PYTHON, environment
from demo_stack import Demo, demo, sentence
from index_server import Access
from installing import Home
from processes import PATIENCE, begun, ran
from started import Installed, work

KEYS = ["result", "exit_code", "error", "plan", "environment"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("demo")) as running:
        yield running


def test_a_plan_touches_nothing(home: Home, shop: Demo) -> None:
    result = home.envcheck("install", *shop.selection, "--plan")
    assert result.returncode == 0, result.stderr.decode()
    output = result.stdout.decode()
    assert "demo-framework" in output and "2.0" in output and "Nothing was touched" in output
    assert not (home.folder / "data").exists() and not (home.folder / "state").exists()


def test_the_whole_way(home: Home, shop: Demo) -> None:
    """Plan, install, the doctor's word, an equal request that does nothing, and another release."""
    made = home.install(*shop.selection)
    assert list(made.report) == KEYS
    assert (made.report["result"], made.report["exit_code"]) == ("installed", 0)
    assert made.report["environment"]["prefix"] == str(made.prefix)
    assert made.report["plan"]["version"] == made.report["environment"]["version"]
    assert str(made.installed()["demo-framework"]) == "2.0"
    assert made.run("-c", "import demo_lib; print('works')") == "works\n"
    before = len(shop.index.requests())
    again = home.install(*shop.selection)
    assert again.report["result"] == "already"
    assert again.report["environment"]["provided"] == {}
    assert len(shop.index.requests()) == before
    older = home.install(*shop.selection, "--release", "1.0")
    assert str(older.installed()["demo-framework"]) == "1.0"
    assert older.report["environment"]["before"] == made.report["environment"]["version"]


def test_a_lock_is_installed_as_it_stands(home: Home, shop: Demo, tmp_path: Path) -> None:
    made = home.install(*shop.selection, "--release", "1.0")
    lock = tmp_path / "pylock.toml"
    shutil.copyfile(made.prefix / ".envcheck" / "pylock.toml", lock)
    other = Home(tmp_path / "other")
    again = other.install(
        "--lock", lock, "--stack", shop.stack, "--index", shop.index.url, "--python", sys.executable
    )
    assert again.installed() == made.installed()
    assert again.lock["packages"] == made.lock["packages"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_interrupted_in_mid_download(home: Home, tmp_path: Path, number: int, code: int) -> None:
    """Nothing is left that looks installed, and the next run fetches no complete wheel again."""
    with demo(tmp_path / "shop", payload=6 << 20, access=Access(rate=2 << 20)) as shop:
        running = begun(
            [PYTHON, "-m", "envcheck", "install", *shop.selection, "--yes", "--format", "json"],
            env=environment(**home.variables),
        )
        try:
            cache, limit = home.folder / "cache/envcheck/uv", time.monotonic() + PATIENCE
            while not list(cache.glob("wheels-v*/*/*/demo-framework/*.http")):  # it is complete
                assert time.monotonic() < limit and running.poll() is None
                time.sleep(0.02)
            running.send_signal(number)
            out, err = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
        assert running.returncode == code, err.decode()
        report = json.loads(out)
        assert list(report) == KEYS and report["exit_code"] == code and report["result"] == "failed"
        assert report["plan"]["stack"] == "demo"
        words = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
        assert report["error"]["sentence"] == words
        assert err.decode().splitlines()[-1] == f"envcheck: {words}"
        root = home.root("demo")
        assert not root.exists()
        assert json.loads(home.envcheck("list", "--format", "json").stdout)["environments"] == []
        made = home.install(*shop.selection)
        assert made.installed()["demo-lib"]
        sent = [r for r in shop.index.asked("demo_framework-2.0") if r.path.endswith(".whl")]
        assert len(sent) == 1, "a complete wheel came again"


def at_a_terminal(home: Home, answer: str, *arguments: str) -> tuple[int, str]:
    """(exit code, all that the terminal showed) of a run whose question is answered."""
    here = Installed(home, work(home), {"TERM": "xterm"})
    with here.typing("install", *arguments) as terminal:
        if answer:
            terminal.wait_for("[Y/n]")
            terminal.type(answer)
        return terminal.end(), terminal.seen.decode()


def test_somebody_at_a_terminal_is_asked(home: Home, shop: Demo) -> None:
    code, output = at_a_terminal(home, "n\n", *shop.selection)
    assert code == 130 and "Nothing was touched." in output
    assert not home.root("demo").exists()
    code, output = at_a_terminal(home, "perhaps\nn\n", *shop.selection)
    assert code == 130 and output.count("Go on?") == 2 and "answer y or n" in output
    code, output = at_a_terminal(home, "\n", *shop.selection)
    assert code == 0 and "Installed and verified" in output
    assert "Go on?" not in at_a_terminal(home, "", *shop.selection)[1], "there is nothing to do"


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


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_a_gpu_stack_without_a_gpu(home: Home) -> None:
    result = home.envcheck("install", "--stack", "nvidia-tf1")
    assert "no NVIDIA GPU" in sentence(result, 3)
    assert "--allow-no-gpu" in result.stderr.decode()
