"""Packages that people add or change in an environment: they stay, and there is a way back to the lock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli import environment
from demo_stack import Demo, demo
from installing import Environment, Home
from processes import ran
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


def by_hand(made: Environment, shop: Demo, *arguments: str) -> None:
    """The user's own installer, in the environment."""
    command = arguments[0]
    index = ["--index-url", shop.index.url] if command == "install" else []
    argv = [find_uv_bin(), "pip", command, *index, "--python", made.python, *arguments[1:]]
    variables = environment(**made.home.variables, UV_NO_CONFIG="1")
    ran(argv, check=True, env=variables)


def test_what_a_package_manager_changed_is_listed_and_kept(home: Home, shop: Demo) -> None:
    first = home.install(*shop.selection, "--release", "1.0")
    by_hand(first, shop, "install", "extra", "picky")  # picky brings another demo-lib
    by_hand(first, shop, "uninstall", "demo-framework")
    version = first.report["environment"]["version"]
    again = home.install(*shop.selection, "--release", "1.0").report
    assert again["result"] == "already" and again["environment"]["version"] == version
    (note,) = again["environment"]["notes"]
    assert "demo-lib 1.4 (locked: 1.5)" in note and "demo-framework removed" in note
    fresh = home.install(*shop.selection, "--release", "1.0", "--fresh")
    assert fresh.report["environment"]["version"] == f"{version}-2"
    assert fresh.lock["packages"] == first.lock["packages"]
    names = fresh.installed()
    assert str(names["demo-lib"]) == "1.5" and "extra" not in names and "demo-framework" in names


@pytest.mark.heavy
def test_what_no_package_manager_did_is_damage(home: Home, shop: Demo) -> None:
    first = home.install(*shop.selection)
    by_hand(first, shop, "install", "extra")
    (module,) = first.site_packages.glob("demo_lib.py")
    module.unlink()
    again = home.install(*shop.selection).report["environment"]
    assert again["version"] == first.report["environment"]["version"] + "-2"
