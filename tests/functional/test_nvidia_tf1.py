"""The whole nvidia-tf1 recipe, from the command to the verified environment, on stand-ins for both indexes.

pip, setuptools, wheel and gast's source distribution are the real ones: they have to work, and the
catalogue names gast's hash.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterator
from dataclasses import dataclass

import nvidia_index
import pytest
import registry
from index_server import Index, serve
from installing import Environment, Home
from packaging.utils import canonicalize_name
from packaging.version import Version
from pythons import need

from envcheck.install.catalogue.load import find, load

MONTHS = {"20.06": 6, "20.12": 8, "22.05": 8, "22.12": 8, "23.03": 8}
ALL = [
    ("23.03", "uv"),
    pytest.param(("20.06", "uv"), marks=pytest.mark.heavy),
    pytest.param(("22.05", "uv"), marks=pytest.mark.heavy),
    pytest.param(("23.03", "pip"), marks=pytest.mark.heavy),
    pytest.param(("20.12", "uv"), marks=pytest.mark.slow),
    pytest.param(("22.12", "uv"), marks=pytest.mark.slow),
    pytest.param(("20.06", "pip"), marks=pytest.mark.slow),
]


@dataclass(frozen=True)
class Made:
    """An environment with the release of a month."""

    month: str
    installer: str
    environment: Environment

    @property
    def locked(self) -> dict[str, Version]:
        """Normalised names and versions."""
        packages = self.environment.lock["packages"]
        return {str(canonicalize_name(p["name"])): Version(p["version"]) for p in packages}

    @property
    def version(self) -> Version:
        """Of nvidia-tensorflow, by the catalogue."""
        return Version(find(load("nvidia-tf1"), self.month).version)


class Indexes:
    def __init__(self, recipe: nvidia_index.Recipe, nvidia: Index, public: Index) -> None:
        self.recipe = recipe
        self.nvidia = nvidia
        self.public = public

    @property
    def arguments(self) -> list[str]:
        return ["--index", f"nvidia={self.nvidia.url}", "--index", self.public.url]

    def asked(self) -> int:
        return len(self.nvidia.requests()) + len(self.public.requests())


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexes]:
    folder = tmp_path_factory.mktemp("indexes")
    recipe = nvidia_index.build(folder)
    nvidia_index.add(recipe, *registry.fetch(folder / "real", *nvidia_index.real_files()))
    with serve(recipe.nvidia, folder / "n") as nvidia, serve(recipe.public, folder / "p") as public:
        yield Indexes(recipe, nvidia, public)


def install(home: Home, indexes: Indexes, month: str, *more: str) -> Environment:
    python = need(MONTHS[month])
    return home.install(
        "--stack", "nvidia-tf1", "--release", month, "--python", python, "--allow-no-gpu",
        *indexes.arguments, *more,
    )  # fmt: skip


@pytest.fixture(scope="module", params=ALL, ids="-".join)
def made(
    request: pytest.FixtureRequest, indexes: Indexes, tmp_path_factory: pytest.TempPathFactory
) -> Made:
    month, installer = request.param
    home = Home(tmp_path_factory.mktemp("home"))
    return Made(month, installer, install(home, indexes, month, "--installer", installer))


def test_what_is_locked_is_installed_and_nothing_else(made: Made) -> None:
    assert made.environment.installed() == made.locked
    assert made.locked["nvidia-tensorflow"] == made.version
    assert made.locked["nvidia-horovod"] and made.locked["pip"]
    for package in made.environment.lock["packages"]:
        files = [*package.get("wheels", []), *filter(None, [package.get("sdist")])]
        assert [len(file["hashes"]["sha256"]) for file in files] == [64]


def test_no_trap_was_taken(made: Made, indexes: Indexes) -> None:
    assert indexes.recipe.sprung() == []
    assert not list(made.environment.site_packages.glob("taken_from_the_public_index*"))
    assert made.locked["protobuf"] < Version("3.21")
    for name, version in made.locked.items():
        assert version.major != 99 and not str(version).startswith("0.0.1"), name
    for package in made.environment.lock["packages"]:
        nvidias = package["name"].startswith(("nvidia-", "tensorrt"))
        source = indexes.nvidia if nvidias else indexes.public
        assert package["index"].rstrip("/") == source.url.rstrip("/"), package["name"]
    if made.month == "22.05":  # it asks for nvidia-tensorrt>=8.2, and the public index has 99.0.0
        assert made.locked["nvidia-tensorrt"] == Version("8.2.5.1")


def test_the_environment_knows_its_index_and_nothing_is_switched_off(
    made: Made, indexes: Indexes
) -> None:
    settings = configparser.ConfigParser()
    assert settings.read(made.environment.prefix / "pip.conf")
    told = {key: value for section in settings.values() for key, value in section.items()}
    assert indexes.nvidia.url.rstrip("/") in str(told)
    assert not {"trusted-host", "no-cache-dir"} & set(told)
    # What is locked stays, although the public index has a newer one.
    outcome = made.environment.run(
        "-m", "pip", "install", "--upgrade", "--no-deps", "protobuf",
        PIP_CONFIG_FILE="", PIP_INDEX_URL=indexes.public.url, PIP_DISABLE_PIP_VERSION_CHECK="1",
    )  # fmt: skip
    assert "Successfully installed" not in outcome
    assert made.environment.installed() == made.locked


def test_nvidia_pyindex_is_provided_and_never_installed(made: Made, indexes: Indexes) -> None:
    assert "nvidia-pyindex" not in made.environment.installed()
    assert "nvidia-pyindex" in made.environment.told["environment"]["provided"]
    assert "nvidia-pyindex" in str(made.environment.lock["tool"]["envcheck"])
    assert not indexes.public.asked("/files/nvidia-pyindex")


def test_the_same_again_asks_nobody_and_changes_nothing(made: Made, indexes: Indexes) -> None:
    before, asked = made.environment.prefix.resolve(), indexes.asked()
    files = {path: path.lstat().st_mtime_ns for path in before.rglob("*")}
    home = made.environment.home
    again = install(home, indexes, made.month, "--installer", made.installer)
    assert again.told["result"] == "already"
    assert again.prefix.resolve() == before
    assert indexes.asked() == asked
    assert {path: path.lstat().st_mtime_ns for path in before.rglob("*")} == files


def test_gast_was_built_from_the_allowed_sdist(made: Made) -> None:
    (gast,) = (p for p in made.environment.lock["packages"] if p["name"] == "gast")
    if made.month not in ("20.06", "20.12"):
        assert "sdist" not in gast and gast["version"] == "0.3.3"
        return
    (allowed,) = (one for one in load("nvidia-tf1").sdists if one.name == "gast")
    assert gast["sdist"]["hashes"]["sha256"] == allowed.sha256
    assert made.environment.installed()["gast"] == Version("0.2.2")
    made.environment.run("-c", "import gast")
