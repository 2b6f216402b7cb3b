"""`envcheck install --mode container` as a user types it: real podman, a loopback registry, small images."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli import environment
from image_registry import Registry, serve_registry
from install_site import Site
from installing import Home
from podman import PodmanWorld
from processes import ran

from envcheck.exit_codes import ExitCode


@dataclass
class Served(Site):
    """With a registry; ``makers`` is the podman that the images are made in."""

    registry: Registry
    makers: PodmanWorld
    folder: Path  # for archives

    def push(self, kind: str, tag: str = "1") -> str:
        """An image of a kind of base_images, in the registry: its reference."""
        self.registry.copy(f"oci-archive:{self.save(kind)}", f"team/{kind}", tag)
        return f"{self.registry.host}/team/{kind}:{tag}"

    def save(self, kind: str) -> Path:
        archive = self.folder / f"{kind}.tar"
        if not archive.exists():
            self.makers.save(self.makers.image(kind), archive)
        return archive


@pytest.fixture(scope="module")
def registry_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with serve_registry(tmp_path_factory.mktemp("registry")) as it:
        yield it


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archives")


@pytest.fixture
def site(
    tmp_path: Path,
    registry_at: Registry,
    world: PodmanWorld,
    podman_world: PodmanWorld,
    archives: Path,
) -> Iterator[Served]:
    """Whatever a test has installed is gone at its end, and leaves nothing."""
    before = world.images()
    made = Served(Home(tmp_path / "home"), world, registry_at, podman_world, archives)
    yield made
    for one in made.environments():
        if one["versions"]:
            made.uninstall(one["directory"])
    assert made.nothing_is_left(before)


def test_installed_run_looked_at_listed_updated_rolled_back_and_removed(site: Served) -> None:
    before = site.world.images()
    reference = site.push("tensorflow")
    result = site.install("--image", reference)
    assert result["result"] == "installed" and result["plan"]["mode"] == "container"
    assert result["plan"]["digest"].startswith("sha256:")
    first = result["environment"]["version"]

    assert site.install("--image", reference)["result"] == "already"

    ran = site.envcheck(
        "run", "--", "python3", "-c", "import tensorflow; print(tensorflow.__version__)"
    )
    assert (ran.returncode, ran.stdout) == (0, b"1.15.5+standin\n"), ran.stderr
    assert site.envcheck("run", "--", "sh", "-c", "exit 3").returncode == 3
    assert site.envcheck("run", "--", "no-such-command").returncode == 127

    looked = json.loads(site.envcheck("doctor", "--format", "json", "--level=quick").stdout)
    checks = {check["code"]: check["outcome"] for check in looked["results"]}
    assert checks["FRM-001"] == "pass" and checks["PCI-001"] == "fail"

    site.registry.copy(f"oci-archive:{site.save('user')}", "team/tensorflow", "1")
    moved = site.install("--image", reference, "--upgrade")
    assert moved["result"] == "installed", moved
    second = moved["environment"]["version"]
    assert moved["result"] == "installed" and second != first

    listed = json.loads(site.envcheck("list", "--format", "json").stdout)["environments"][0]
    assert {one["version"]: one["in_use"] for one in listed["versions"]} == {
        first: False,
        second: True,
    }
    assert site.envcheck("rollback").returncode == 0
    ran = site.envcheck("run", "--", "python3", "-c", "import tensorflow")
    assert ran.returncode == 0, ran.stderr

    site.uninstall()
    assert site.nothing_is_left(before)


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        ("no-python", ExitCode.PUT_BACK, "no Python"),
        ("python35", ExitCode.PUT_BACK, "3.5"),
        ("exits", ExitCode.PUT_BACK, "entrypoint"),
        ("arm64", ExitCode.CANNOT, "arm64"),
    ],
)
def test_images_that_cannot_be_used_are_put_back(
    site: Served, kind: str, code: int, words: str
) -> None:
    before = site.world.images()
    reference = site.push(kind)
    result = site.install("--image", reference)
    assert result["exit_code"] == code and words in result["error"]["sentence"], result["error"]
    assert site.nothing_is_left(before)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--image", "{host}/team/base:nope"), ExitCode.USAGE, "nope"),
        (("--image", "{host}/team/none:1"), ExitCode.USAGE, "team/none"),
        (("--image", "{host}/team/base@sha256:12"), ExitCode.USAGE, "sha256"),
        (("--image", "127.0.0.1:1/team/base:1"), ExitCode.COULD_NOT_LOOK, "127.0.0.1:1"),
        (("--release", "23.3"), ExitCode.CANNOT, "GPU"),
        ((), ExitCode.CANNOT, "GPU"),
        (("--offline", "/no/such.tar"), ExitCode.USAGE, "/no/such.tar"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_touched(
    site: Served, arguments: tuple[str, ...], code: int, words: str
) -> None:
    before = site.world.images()
    site.push("base")
    result = site.install(*(word.format(host=site.registry.host) for word in arguments))
    assert result["exit_code"] == code and words in result["error"]["sentence"], result
    assert site.nothing_is_left(before)


def test_a_version_whose_image_is_gone_is_no_way_back(site: Served) -> None:
    """Somebody removed it with the engine: it is said, and an installation brings it back."""
    reference = site.push("base", "lost")
    first = site.install("--image", reference)["environment"]["version"]
    site.registry.copy(f"oci-archive:{site.save('user')}", "team/base", "lost")
    second = site.install("--image", reference, "--upgrade")["environment"]["version"]
    (held,) = (site.home.root("image-team-base") / first / ".envcheck").glob("held.json")
    site.world.podman("rmi", "--force", json.loads(held.read_text())["image_id"])

    done = site.envcheck("rollback")
    errors = done.stderr.decode()
    assert done.returncode == ExitCode.CANNOT and "is not in podman any more" in errors, errors
    assert "envcheck install --mode container makes" in errors
    listed = site.environments()[0]
    assert listed["current"] == second

    (held,) = (site.home.root("image-team-base") / second / ".envcheck").glob("held.json")
    site.world.podman("rmi", "--force", json.loads(held.read_text())["image_id"])
    ran = site.envcheck("run", "--", "true")
    assert ran.returncode == 125, ran.stderr
    again = site.install("--image", reference)
    assert again["result"] == "installed" and again["environment"]["version"] != second
    assert site.envcheck("run", "--", "true").returncode == 0
    output = site.envcheck("list").stdout.decode()
    assert f"the image {reference}" in " ".join(output.split()) and "image lost" not in output


def test_what_the_engine_has_is_installed_without_a_network(site: Served) -> None:
    """An archive of podman's, loaded by podman, installed where no registry answers; then it stays."""
    missing = _alone(site, "--offline", "localhost/envcheck-test/none:1")
    assert missing["exit_code"] == ExitCode.USAGE, missing
    assert "podman load --input FILE" in missing["error"]["hint"]
    name = site.makers.image("tensorflow")
    site.world.podman("load", "--quiet", "--input", site.save("tensorflow"))
    before = site.world.images()
    result = _alone(site, "--offline", name)
    assert result["result"] == "installed", result
    assert result["plan"]["download_bytes"] == 0
    assert site.envcheck("run", "--", "true").returncode == 0
    site.uninstall()
    assert site.world.images() == before
    site.world.podman("rmi", "--force", name)


def _alone(site: Served, *arguments: str) -> dict[str, Any]:
    """In a network namespace that has loopback alone."""
    alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up 2>/dev/null; exec "$@"', "sh"]
    words = ["install", "--mode", "container", *arguments, "--yes", "--format", "json"]
    done = ran(
        [*alone, sys.executable, "-m", "envcheck", *words], env=environment(**site.variables)
    )
    if b"unshare" in done.stderr and not done.stdout:
        pytest.skip(f"no network namespace can be made: {done.stderr.decode().strip()}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_an_image_of_two_environments_is_fetched_once_and_goes_with_the_last(site: Served) -> None:
    before = site.world.images()
    reference, other = site.push("user", "twice"), site.home.folder / "other"
    assert site.install("--image", reference)["result"] == "installed"
    asked = len(site.registry.requests())
    assert site.install("--image", reference, "--path", other)["result"] == "installed"
    blobs = [one for one in site.registry.requests()[asked:] if "/blobs/" in one.path]
    assert len(blobs) <= 1, "its configuration alone"
    site.uninstall("image-team-user")
    ran = site.envcheck("run", "--path", other, "--", "true")
    assert ran.returncode == 0, ran.stderr
    site.uninstall()
    assert site.nothing_is_left(before)
