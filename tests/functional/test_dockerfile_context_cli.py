"""`envcheck install --dockerfile DIR`: what it writes, keeps and refuses; nothing is built here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_stack import MINOR, Demo, demo
from installing import Home
from wheel_maker import sha256, stand_ins, wheel

from envcheck.install.export import own_wheel


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """With stand-ins for what envcheck itself needs, too."""
    with demo(tmp_path_factory.mktemp("demo")) as running:
        for name, version in stand_ins(own_wheel.build().requires):
            wheel(running.files, name, version)
        running.index.refresh()
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_directory_gets_all_that_an_image_is_built_from(
    home: Home, shop: Demo, tmp_path: Path
) -> None:
    folder = tmp_path / "context"
    done = home.envcheck("install", *shop.selection, "--dockerfile", folder)
    assert done.returncode == 0, done.stderr.decode()
    own = own_wheel.build()
    assert sorted(path.name for path in folder.iterdir()) == [
        "Dockerfile", "envcheck-itself.txt", "envcheck-requirements.txt", "envcheck-uv", own.name,
        "pylock.toml", "requirements.txt",
    ]  # fmt: skip
    assert done.stdout.decode().split() == [str(p) for p in sorted(folder.iterdir())]
    lists = {path.name: path.read_text() for path in folder.glob("*.txt")}
    framework = sha256(shop.files / "demo_framework-2.0-py3-none-any.whl")
    assert f"demo-framework==2.0 --hash=sha256:{framework}\n" in lists["requirements.txt"]
    assert f"--hash=sha256:{own.sha256}\n" in lists["envcheck-itself.txt"]
    assert len(
        re.findall(r"==(?:90\.0|[0-9.]+\.99) --hash=", lists["envcheck-requirements.txt"])
    ) == len(own.requires)
    assert not any("127.0.0.1" in text for text in lists.values())
    dockerfile = (folder / "Dockerfile").read_text()
    assert "127.0.0.1" not in dockerfile and f"uv venv --python {MINOR} " in dockerfile
    for name in re.findall(r"/opt/lock/(\S+\.txt)", dockerfile):
        assert name in lists
