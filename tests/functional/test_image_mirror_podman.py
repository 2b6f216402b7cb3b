"""podman pulls one image through the loopback mirror, while envcheck is still fetching it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import certificates
import pytest
import standin_image
from bad_server import BadServer, Way
from fetching import QUICK as RETRIES
from fetching import wait_until
from image_registry import layer, serve_registry
from podman import PodmanWorld
from registry_home import QUICK, believe, log_in, settle

from envcheck.install.images.mirror import MirrorServer
from envcheck.install.network.session import Session
from envcheck.install.registry import client as registry
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import parse
from envcheck.install.store.fetch import Fetcher
from envcheck.install.store.store import Store

PROMPTLY = 20.0  # seconds; an engine that tries on for minutes is what this is about


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        yield running


def new_layers(seed: int, *sizes: int) -> list[bytes]:
    chance = random.Random(seed)
    return [layer({f"data-{size}": chance.randbytes(size)}) for size in sizes]


@contextmanager
def mirrored(
    server: BadServer | str, store: Store
) -> Iterator[tuple[Image, Fetcher, MirrorServer]]:
    """server: or an image's name."""
    name = server if isinstance(server, str) else standin_image.name(server)
    with Session(retries=QUICK) as session:
        image = registry.resolve(session, parse(name), "x86_64")
        fetching = Fetcher(store, session, retries=RETRIES, silence=1.0)
        with fetching as fetcher, MirrorServer(image, fetcher) as mirror:
            fetcher.want_all(registry.layers(image))
            yield image, fetcher, mirror


def pull(
    world: PodmanWorld, folder: Path, image: Image, mirror: MirrorServer, **changes: str
) -> tuple[int, str, float]:
    """podman's exit code, its last words, and the seconds that it took."""
    settings = folder / "registries.conf"
    settings.write_text(
        f'[[registry]]\nprefix = "{image.name}"\n'
        f'location = "{mirror.host}/{mirror.repository}"\ninsecure = true\n'
    )
    started = time.monotonic()
    changes["CONTAINERS_REGISTRIES_CONF"] = str(settings)
    done = world.podman("pull", "--quiet", image.pinned, code=None, **changes)
    return done.returncode, done.stderr, time.monotonic() - started


def has(world: PodmanWorld, image: Image) -> bool:
    return image.config.sha256 in world.images()


@pytest.mark.parametrize("style", ["oci", "docker"])
def test_podman_pulls_while_we_fetch(
    podman_world: PodmanWorld, server: BadServer, tmp_path: Path, style: str
) -> None:
    layers = new_layers(len(style), 3_000_000, 50_000, 200)
    standin_image.put(server, layers, style=style)
    server.behave(standin_image.blob(layers[0]), Way(rate=2_000_000))
    with mirrored(server, Store(tmp_path / "store")) as (image, fetcher, mirror):
        code, said, _ = pull(podman_world, tmp_path, image, mirror)
        assert code == 0, said
        assert not mirror.errors
        assert fetcher.fetched_bytes == image.download_bytes
    assert has(podman_world, image)
    podman_world.podman("rmi", image.pinned)


def test_podman_needs_neither_the_password_nor_the_authority(
    podman_world: PodmanWorld, tmp_path: Path, home: Path
) -> None:
    account, tls = ("somebody", "pass-word"), certificates.make(tmp_path / "tls")
    with serve_registry(tmp_path / "registry", tls=tls, htpasswd=account) as running:
        running.push("team/closed", "1", new_layers(6, 2_000_000, 500))
        believe(home, running.host, tls.authority)
        log_in(home, running.host, *account)
        name = f"{running.host}/team/closed:1"
        with mirrored(name, Store(tmp_path / "store")) as (image, _, mirror):
            without = {"HOME": str(tmp_path / "nobody")}  # and this podman has an empty auth file
            assert podman_world.podman("pull", name, code=None, **without).returncode != 0
            code, said, _ = pull(podman_world, tmp_path, image, mirror, **without)
            assert code == 0, said
    assert has(podman_world, image)
    names = podman_world.podman("image", "inspect", "--format", "{{.RepoDigests}}", image.pinned)
    assert mirror.secret not in names.stdout and image.pinned in names.stdout
    podman_world.podman("rmi", image.pinned)


@pytest.mark.parametrize(
    ("ways", "says"),
    [
        ([Way(status=404, times=None)], "does not have it (404)"),
        ([Way(status=403, times=None)], "refuses access (403)"),
        ([Way(status=500, times=None)], "has an internal error (500)"),
        ([Way(wrong_at=700_000, times=None)], "is not the file that was asked for: its sha256 is"),
        ([Way(cut_after=100, times=None)], "cut the connection"),
        ([Way(stall_after=900_000), Way(stall_after=0, times=None)], "does not answer any more"),
    ],
)
def test_a_layer_that_does_not_come_ends_the_pull_and_we_know_why(
    podman_world: PodmanWorld, server: BadServer, tmp_path: Path, ways: list[Way], says: str
) -> None:
    built = standin_image.put(server, new_layers(7, 3_000_000, 40_000))
    server.behave(standin_image.blob(built.layers[0]), *ways)
    with mirrored(server, Store(tmp_path / "store")) as (image, _, mirror):
        code, _, took = pull(podman_world, tmp_path, image, mirror)
        assert code != 0 and took < PROMPTLY
        assert says in str(mirror.errors[-1])
        assert str(mirror.errors[-1]).startswith("layer ") and image.name in str(mirror.errors[-1])
        assert not has(podman_world, image)


def test_cuts_and_a_stall_in_between_are_mended_behind_the_engine_s_back(
    podman_world: PodmanWorld, server: BadServer, tmp_path: Path
) -> None:
    built = standin_image.put(server, new_layers(8, 3_000_000))
    ways = [Way(cut_after=600_000), Way(status=503), Way(stall_after=600_000), Way(cut_after=9)]
    server.behave(standin_image.blob(built.layers[0]), *ways)
    with mirrored(server, Store(tmp_path / "store")) as (image, _, mirror):
        code, said, _ = pull(podman_world, tmp_path, image, mirror)
        assert code == 0, said
        assert not mirror.errors and not mirror.again
    podman_world.podman("rmi", image.pinned)


def test_wrong_bytes_that_come_right_the_second_time(
    podman_world: PodmanWorld, server: BadServer, tmp_path: Path
) -> None:
    built = standin_image.put(server, new_layers(9, 3_000_000))
    server.behave(standin_image.blob(built.layers[0]), Way(wrong_at=1_000_000, rate=10_000_000))
    with mirrored(server, Store(tmp_path / "store")) as (image, fetcher, mirror):
        code, said, _ = pull(podman_world, tmp_path, image, mirror)
        assert code and mirror.again and not mirror.errors  # it had read of the wrong ones
        fetcher.wait()
        code, said, _ = pull(podman_world, tmp_path, image, mirror)
        assert code == 0, said
    assert has(podman_world, image)
    podman_world.podman("rmi", image.pinned)


KILLED = """
import os, sys
from pathlib import Path
from envcheck.install import processes
from envcheck.install.network.session import Session
from envcheck.install.images import registry
from envcheck.install.images.mirror import MirrorServer
from envcheck.install.registry.reference import parse
from envcheck.install.store.fetch import Fetcher
from envcheck.install.store.store import Store

name, store, podman, settings = sys.argv[1:]
with Session() as session:
    image = registry.resolve(session, parse(name), "x86_64")
    with Fetcher(Store(Path(store)), session) as fetcher, MirrorServer(image, fetcher) as mirror:
        fetcher.want_all(registry.layers(image))
        Path(settings).write_text(
            f'[[registry]]\\nprefix = "{image.name}"\\n'
            f'location = "{mirror.host}/{mirror.repository}"\\ninsecure = true\\n'
        )
        env = {**os.environ, "CONTAINERS_REGISTRIES_CONF": settings}
        processes.run([podman, "pull", "--quiet", image.pinned], deadline=60.0, env=env)
"""


def test_after_kill_9_in_the_middle_almost_nothing_is_fetched_again(
    podman_world: PodmanWorld, server: BadServer, tmp_path: Path
) -> None:
    built = standin_image.put(server, new_layers(10, 12_000_000, 8_000_000, 1_000_000))
    server.behave(standin_image.blob(built.layers[0]), Way(rate=3_000_000))
    store, settings = Store(tmp_path / "store"), tmp_path / "killed.conf"
    litter = podman_world.folder / "tmp"
    argv = [sys.executable, "-c", KILLED, standin_image.name(server), str(store.root)]
    with subprocess.Popen(
        [*argv, str(shutil.which("podman")), str(settings)],
        env={**os.environ, **podman_world.variables, "TMPDIR": str(litter)},
    ) as killed:
        wait_until(lambda: _there(store) > 13_000_000 and settings.exists())
        killed.kill()
    there = _there(store)
    with mirrored(server, store) as (image, fetcher, mirror):
        total = image.download_bytes
        assert there < total
        code, said, _ = pull(podman_world, tmp_path, image, mirror)
        assert code == 0, said
        assert fetcher.fetched_bytes <= total - there + total // 100
    assert has(podman_world, image)
    podman_world.podman("rmi", image.pinned)


def _there(store: Store) -> int:
    return sum(entry.size for entry in store.entries())
