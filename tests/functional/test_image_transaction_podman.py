"""The transaction over a real podman: what it holds, what it lets go of, and what is seen when it is gone."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from cli import envcheck
from image_transaction_parts import FakeEngine, ImageBuilder, image_request, install_image
from podman import PodmanWorld
from transaction_parts import die, in_child

from envcheck.exit_codes import Cannot, PutBack
from envcheck.install import places
from envcheck.install.engine import EngineImage
from envcheck.install.engines import engine_storage
from envcheck.install.transaction import engine_images, existing
from envcheck.install.transaction.current import rollback
from envcheck.install.transaction.layout import Root, Version
from envcheck.install.transaction.uninstall import uninstall


class Archives:
    """Two small images as archives, and podman's storage without them."""

    def __init__(self, world: PodmanWorld, folder: Path) -> None:
        self.world = world
        self.ids: dict[str, str] = {}
        self._folder = folder
        for release in ("1", "2"):
            name = f"localhost/envcheck-test/transaction:{release}"
            recipe = f"FROM scratch\nCOPY {release}.txt /\n"
            world.build(name, recipe, {f"{release}.txt": release})
            self.ids[release] = f"sha256:{world.id_of(name)}"
            world.save(name, self.path(release))
            world.podman("rmi", name)

    def path(self, release: str) -> Path:
        return self._folder / f"{release}.tar"


class PodmanBuilder(ImageBuilder):
    """Takes its image from an archive in place of a registry."""

    def __init__(self, release: str, archives: Archives, at: Callable[[str], None]) -> None:
        super().__init__(release, FakeEngine(places.home() / "none"), at)
        self._archives = archives

    def _hold(self, version: Version) -> None:
        wanted = EngineImage(
            engine="podman",
            program=str(shutil.which("podman")),
            image_id=self._archives.ids[self._release],
            tag=f"localhost/envcheck/tiny:{version.id}",
            reference=f"localhost/envcheck-test/transaction:{self._release}",
            before=False,
        )
        engine_images.hold(
            version, msgspec.structs.replace(wanted, before=engine_storage.has(wanted))
        )
        return {}

    def _pull(self, version: Version) -> None:
        held = engine_images.of(version)
        assert held is not None
        world = self._archives.world
        world.podman("load", "--quiet", "--input", self._archives.path(self._release))
        engine_storage.name(held)
        world.podman("untag", held.image_id, held.reference)
        self._pass("pulled")
        return {}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, podman_world: PodmanWorld) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    for name, value in podman_world.variables.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def archives(tmp_path: Path, podman_world: PodmanWorld) -> Iterator[Archives]:
    (tmp_path / "archives").mkdir()
    made = Archives(podman_world, tmp_path / "archives")
    yield made
    podman_world.podman("rmi", "--force", *made.ids.values(), code=None)


@pytest.fixture
def root() -> Path:
    return places.environments() / "tiny"


def put(
    root: Path, release: str, archives: Archives, at: Callable[[str], None] = lambda step: None
) -> str:
    builder = PodmanBuilder(release, archives, at)
    return install_image(root, release, builder=builder).version


def there(archives: Archives) -> set[str]:
    """The releases whose images podman has."""
    found = archives.world.images()
    return {
        release for release, its in archives.ids.items() if its.removeprefix("sha256:") in found
    }


def test_held_listed_gone_and_let_go(root: Path, archives: Archives) -> None:
    one, two = put(root, "1", archives), put(root, "2", archives)
    assert there(archives) == {"1", "2"}
    assert put(root, "2", archives) == two, "nothing was done"
    told = json.loads(envcheck("list", "--format", "json").stdout)["environments"][0]
    assert [version["status"] for version in told["versions"]] == ["verified", "verified"]
    assert rollback(Root(root)).version == one
    archives.world.podman("rmi", "--force", archives.ids["2"])
    with pytest.raises(Cannot, match="is not in podman any more"):
        rollback(Root(root))
    told = json.loads(envcheck("list", "--format", "json").stdout)["environments"][0]
    changes = {version["version"]: version["changes"] for version in told["versions"]}
    assert changes[one] == [] and "is not in podman any more" in changes[two][0]
    assert envcheck("uninstall", "tiny", "--yes").returncode == 0
    assert there(archives) == set() and not root.exists()


def test_killed_with_its_image_in_podman_the_next_run_takes_it_back(
    root: Path, archives: Archives
) -> None:
    put(root, "1", archives)

    def at(step: str) -> None:
        if step == "pulled":
            die()

    assert in_child(lambda: put(root, "2", archives, at)) == -signal.SIGKILL
    assert there(archives) == {"1", "2"}
    result = envcheck("rollback")
    assert result.returncode == 3
    assert b"removing what an interrupted installation left" in result.stderr
    assert there(archives) == {"1"}
    assert engine_images.trouble(Root(root).version(Root(root).current_id() or "")) == ""


def test_undone_and_a_podman_that_does_not_answer(
    root: Path, archives: Archives, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(step: str) -> None:
        if step == "pulled":
            raise ValueError("oops")

    with pytest.raises(PutBack, match="oops"):
        put(root, "1", archives, fail)
    assert there(archives) == set()
    version = put(root, "1", archives)
    broken = tmp_path / "broken.conf"
    broken.write_text("[")
    with monkeypatch.context() as patched:
        patched.setenv("CONTAINERS_STORAGE_CONF", str(broken))
        assert existing.in_root(Root(root), image_request(root, "1")) is None
        with pytest.raises(PutBack) as left:
            uninstall(Root(root))
    assert "podman" in str(left.value) and "held.json" in left.value.hint
    assert f"rmi localhost/envcheck/tiny:{version}" in left.value.hint
    uninstall(Root(root))
    assert there(archives) == set() and not root.exists()
