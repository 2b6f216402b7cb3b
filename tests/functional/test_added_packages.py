"""Packages that people add: what was added is said, nothing is lost in silence, and there is a way back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import environment
from demo_stack import Demo, demo
from installing import Environment, Home
from processes import PATIENCE
from uv import find_uv_bin
from wheel_maker import wheel


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("shop")
    files = folder / "files"
    wheel(files, "demo-lib", "1.4")
    wheel(files, "extra", "1.0", requires=["extra-base"])
    wheel(files, "extra-base", "0.5")
    wheel(files, "picky", "1.0", requires=["demo-lib<1.5"])
    with demo(folder) as made:
        yield made


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def by_hand(made: Environment, shop: Demo, *arguments: str) -> None:
    """The user's own installer, in the environment."""
    command = arguments[0]
    index = ["--index-url", shop.index.url] if command == "install" else []
    argv = [find_uv_bin(), "pip", command, *index, "--python", made.python, *arguments[1:]]
    variables = environment(**made.home.variables, UV_NO_CONFIG="1")
    subprocess.run(argv, check=True, env=variables, timeout=PATIENCE, capture_output=True)


def test_what_was_added_is_listed(home: Home, shop: Demo) -> None:
    first = home.install(*shop.selection, "--release", "1.0")
    by_hand(first, shop, "install", "extra", "picky")  # picky brings another demo-lib
    version = first.told["environment"]["version"]

    again = home.install(*shop.selection, "--release", "1.0").told
    assert again["result"] == "already" and again["environment"]["version"] == version
    assert again["environment"]["notes"] == [
        "added since: extra 1.0, extra-base 0.5, picky 1.0",
        "changed since: demo-lib 1.4 (locked: 1.5)",
    ]

    planned = home.envcheck("install", *shop.selection, "--plan", "--format", "json")
    notes = " ".join(json.loads(planned.stdout)["plan"]["notes"])
    assert f"changed in {version}, and as locked in the new version: demo-lib 1.4" in notes
    assert "not in the new version: extra 1.0, extra-base 0.5, picky 1.0" in notes

    newer = home.install(*shop.selection)
    assert any("not in the new version: extra" in n for n in newer.told["environment"]["notes"])
    names = newer.installed()
    assert str(names["demo-lib"]) == "1.5" and not {"picky", "extra"} & set(names)


@pytest.mark.heavy
def test_a_fresh_version_is_as_locked(home: Home, shop: Demo) -> None:
    first = home.install(*shop.selection)
    by_hand(first, shop, "install", "demo-lib<1.5", "extra")
    by_hand(first, shop, "uninstall", "demo-framework")
    told = home.envcheck("install", *shop.selection, "--yes").stdout.decode()
    assert "Already installed" in told and "--fresh" in told
    assert "removed since: demo-framework 2.0" in told
    fresh = home.install(*shop.selection, "--fresh")
    assert fresh.told["environment"]["version"] == first.told["environment"]["version"] + "-2"
    assert fresh.lock["packages"] == first.lock["packages"]
    names = fresh.installed()
    assert str(names["demo-lib"]) == "1.5" and "extra" not in names and "demo-framework" in names
    assert not home.install(*shop.selection).told["environment"]["notes"]


@pytest.mark.heavy
def test_what_no_package_manager_did_is_damage(home: Home, shop: Demo) -> None:
    first = home.install(*shop.selection)
    by_hand(first, shop, "install", "extra")
    (module,) = first.site_packages.glob("demo_lib.py")
    module.unlink()
    planned = home.envcheck("install", *shop.selection, "--plan", "--upgrade", "--format", "json")
    (note,) = [n for n in json.loads(planned.stdout)["plan"]["notes"] if "damaged" in n]
    assert "demo_lib.py is gone" in note
    again = home.install(*shop.selection).told["environment"]
    assert again["version"] == first.told["environment"]["version"] + "-2"
