"""Real uv and real pips of several ages resolve and install through the loopback index."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import pythons
import tomli
from index_server import serve
from index_site import Offer
from index_worlds import opened, pip, resolve, stack, uv
from wheel_maker import sdist, sha256, wheel

from envcheck.exit_codes import CouldNotLook
from envcheck.install.catalogue.model import Sdist
from envcheck.install.index.server import IndexServer
from envcheck.install.index.views import ClosedIndex, OpenIndex
from envcheck.install.lockfile import LockedPackage, Lockfile

OLD = Offer(json=False, metadata=False, sizes=False)
BARE = Offer(json=False, metadata=False, sizes=False, hashes=False)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """app 1.0 needs lib; of lib, 3.0 is yanked, 2.5 an sdist, 4.0 for another machine; base has a payload."""
    folder = tmp_path_factory.mktemp("world")
    wheel(folder, "app", "1.0", requires=["my-lib>=1"], requires_python=">=3.6")
    wheel(folder, "my-lib", "1.0")
    wheel(folder, "my-lib", "2.0", requires=["base"], payload=300_000)
    wheel(folder, "my-lib", "3.0")
    wheel(folder, "my-lib", "4.0", tags="py3-none-win_amd64")
    sdist(folder, "my-lib", "2.5")
    wheel(folder, "base", "0.9.0", payload=2_000_000)
    wheel(folder, "base", "1.0", requires_python=">=3.99")
    return folder


def offer(like: Offer) -> Offer:
    return Offer(
        json=like.json,
        metadata=like.metadata,
        sizes=like.sizes,
        hashes=like.hashes,
        yanked={"my_lib-3.0-py3-none-any.whl": "broken"},
    )


def keys(lock: Path) -> dict[str, str]:
    """File name → key in the loopback index, of a pylock.toml."""
    found = re.findall(r"http://envcheck\.invalid/files/([^/\"]+)/([^\"]+)", lock.read_text())
    return {name: key for key, name in found}


def locked(index: OpenIndex, lock: Path) -> Lockfile:
    """A Lockfile of what uv chose."""
    document = tomli.loads(lock.read_text())
    pinned = index.pin(keys(lock).values())
    packages = [
        LockedPackage(
            name=package["name"],
            version=package["version"],
            index=pin.index,
            file=pin.file,
        )
        for package in document["packages"]
        for pin in [pinned[package["wheels"][0]["url"].split("/")[-2]]]
    ]
    return Lockfile(stack="", release="", python="3", architecture="x86_64", packages=packages)


WANTED = {
    "app-1.0-py3-none-any.whl",
    "my_lib-2.0-py3-none-any.whl",
    "base-0.9.0-py3-none-any.whl",
}


@pytest.mark.parametrize("like", [Offer(), OLD, BARE], ids=["json", "html", "no hashes"])
def test_uv_resolves_and_learns_all_that_a_lock_needs(
    tmp_path: Path, world: Path, like: Offer
) -> None:
    with serve(world, tmp_path / "index", offer=offer(like)) as site:
        with opened(site.url, tmp_path) as there:
            result = resolve(there.server, tmp_path, "app")
            assert result.returncode == 0, result.stderr
            assert there.server.errors == []
            lock = locked(there.index, tmp_path / "pylock.toml")
        assert {file.name for file in lock.files} == WANTED
        for package in lock.packages:
            assert package.file.sha256 == sha256(world / package.file.name)
            assert package.file.size == (world / package.file.name).stat().st_size
            assert package.file.url == f"{site.origin}/files/{package.file.name}"
            assert package.index == site.url
        whole = [r for r in site.asked(".whl") if r.method == "GET" and r.status == 200]
        assert not [r for r in whole if not r.path.endswith(".metadata")] or not like.hashes


def test_a_second_resolution_asks_for_pages_alone(tmp_path: Path, world: Path) -> None:
    with serve(world, tmp_path / "index", offer=offer(OLD)) as site:
        for turn in ("first", "second"):
            (tmp_path / turn).mkdir()
            before = len(site.requests())
            with opened(site.url, tmp_path) as there:
                result = resolve(there.server, tmp_path / turn, "app")
                assert result.returncode == 0, result.stderr
        asked = sorted(request.path for request in site.requests()[before:])
        assert asked == ["/simple/app/", "/simple/base/", "/simple/my-lib/"]


def test_the_same_name_with_other_bytes_is_another_file_for_uvs_cache(tmp_path: Path) -> None:
    """Two mirrors that disagree: what uv remembers of the one does not leak into the other."""
    cache = tmp_path / "uv"
    for number in ("1", "2"):
        folder = tmp_path / number
        wheel(folder / "files", "app", "1.0", requires=[f"lib=={number}"])
        wheel(folder / "files", "lib", number)
        with serve(folder / "files", folder) as site, opened(site.url, folder) as there:
            result = resolve(there.server, folder, "app", cache=cache)
            assert result.returncode == 0, result.stderr
        assert f"lib-{number}-py3-none-any.whl" in keys(folder / "pylock.toml")


def test_of_all_sdists_the_one_that_the_catalogue_allows_is_there(tmp_path: Path) -> None:
    files = tmp_path / "files"
    old = sdist(files, "gast", "0.2.2")
    sdist(files, "gast", "0.3.0")
    allowed = Sdist(name="gast", version="0.2.2", sha256=sha256(old), why="", source="")
    chosen = stack(sdists=[allowed])
    with serve(files, tmp_path / "index") as site, opened(site.url, tmp_path, chosen) as there:
        result = pip(
            sys.executable, "download", "--no-cache-dir", "--no-deps", "--no-build-isolation",
            f"--index-url={there.server.url}", f"--dest={tmp_path / 'got'}", "gast",
        )  # fmt: skip
        assert "gast-0.2.2.tar.gz" in result.stdout
        assert "gast-0.3.0" not in result.stdout
        assert [refused.filename for refused in there.index.refusals["gast"]] == [
            "gast-0.3.0.tar.gz"
        ]


def test_an_index_that_fails_ends_uv_at_once_and_is_told(tmp_path: Path) -> None:
    with opened("http://127.0.0.1:9/simple/", tmp_path) as there:
        result = resolve(there.server, tmp_path, "app")
        assert result.returncode != 0
        assert there.server.requests == 1
        (error,) = there.server.errors
        assert isinstance(error, CouldNotLook) and "127.0.0.1:9" in str(error)
        with pytest.raises(CouldNotLook):
            there.index.project("app")


@pytest.fixture(scope="module")
def old_pip(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The Python of an environment with the pip that Python 3.MINOR brings; nothing is installed there."""

    @cache
    def made(minor: int) -> Path:
        folder = tmp_path_factory.mktemp("pip")
        made = [pythons.need(minor), "-m", "venv", str(folder)]
        subprocess.run(made, check=True, timeout=120)
        return folder / "bin" / "python"

    return made


def environment_of(python: str, directory: Path) -> Path:
    made = [python, "-m", "venv", "--without-pip", str(directory)]
    subprocess.run(made, check=True, timeout=60)
    return directory / "bin" / "python"


def installed(python: Path, folder: Path | None = None) -> str:
    """The versions that this Python imports, from ``folder`` or its own environment."""
    code = f"import sys; sys.path.insert(0, {str(folder or '')!r}); "
    code += "import app, my_lib, base; print(app.__version__, my_lib.__version__, base.__version__)"
    told = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    return told.stdout.strip() or told.stderr


@pytest.mark.parametrize("minor", [*pythons.heavy(6, 8), 11])
def test_uv_installs_a_lock_and_nothing_is_asked_twice(
    tmp_path: Path, world: Path, minor: int
) -> None:
    python = pythons.need(minor)
    cache = tmp_path / "uv"
    with serve(world, tmp_path / "index", offer=offer(Offer())) as site:
        with opened(site.url, tmp_path) as there:
            result = resolve(there.server, tmp_path, "app", python=python)
            assert result.returncode == 0, result.stderr
            closed = ClosedIndex(locked(there.index, tmp_path / "pylock.toml"), there.fetcher)
            for turn, asked in (("first", 3), ("second", 0)):
                target = environment_of(python, tmp_path / turn)
                with IndexServer(closed) as server:
                    result = uv(
                        server, cache, "--preview-features=pylock", "pip", "sync",
                        f"--python={target}", tmp_path / "pylock.toml",
                    )  # fmt: skip
                    assert result.returncode == 0, result.stderr
                    assert server.errors == [] and server.requests == asked
                assert installed(target) == "1.0 2.0 0.9.0"
        fetched = [r for r in site.asked(".whl") if not r.path.endswith(".metadata")]
        assert sorted(r.path.rpartition("/")[2] for r in fetched) == sorted(WANTED)


@pytest.mark.parametrize("minor", [*pythons.heavy(6, 8), 11])
def test_pip_installs_a_lock_of_whatever_age_it_is(
    tmp_path: Path, world: Path, old_pip: Callable[[int], Path], minor: int
) -> None:
    python = old_pip(minor)
    target = tmp_path / "installed"
    with (
        serve(world, tmp_path / "index", offer=offer(OLD)) as site,
        opened(site.url, tmp_path) as there,
    ):
        result = resolve(there.server, tmp_path, "app", python=str(python))
        assert result.returncode == 0, result.stderr
        lock = locked(there.index, tmp_path / "pylock.toml")
        wanted = tmp_path / "requirements.txt"
        wanted.write_text(
            "".join(f"{p.name}=={p.version} --hash=sha256:{p.file.sha256}\n" for p in lock.packages)
        )
        with IndexServer(ClosedIndex(lock, there.fetcher)) as server:
            result = pip(
                python, "install", "--no-cache-dir", "--require-hashes", f"--target={target}",
                "--no-deps", f"--index-url={server.url}", "-r", wanted,
            )  # fmt: skip
            assert result.returncode == 0, result.stdout + result.stderr
            assert server.errors == []
    assert installed(python, target) == "1.0 2.0 0.9.0"


@pytest.mark.parametrize("minor", [*pythons.heavy(6, 8), 11])
def test_pip_resolves_by_the_same_rules(
    tmp_path: Path, world: Path, old_pip: Callable[[int], Path], minor: int
) -> None:
    """Through the open index: no sdist, nothing yanked, nothing for another Python."""
    with (
        serve(world, tmp_path / "index", offer=offer(Offer())) as site,
        opened(site.url, tmp_path) as there,
    ):
        result = pip(
            old_pip(minor), "download", "--no-cache-dir",
            f"--index-url={there.server.url}", f"--dest={tmp_path / 'got'}", "app",
        )  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr
    got = {path.name for path in (tmp_path / "got").iterdir()}
    # pip 18.1 does not know of yanked files; no lock is made with it.
    yanked = {"app-1.0-py3-none-any.whl", "my_lib-3.0-py3-none-any.whl"}
    assert got == (yanked if minor == 6 else WANTED)


def test_the_secret_stays_out_of_what_uv_and_pip_say(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    with serve(tmp_path / "files", tmp_path / "index") as site, opened(site.url, tmp_path) as there:
        said = resolve(there.server, tmp_path, "missing")
        assert said.returncode != 0
        assert there.server.secret not in said.stdout + said.stderr
        assert "has no missing" in there.index.explain("missing")


def test_a_file_that_is_gone_ends_uv_at_once_and_is_told(tmp_path: Path, world: Path) -> None:
    files = tmp_path / "files"
    shutil.copytree(world, files)
    with (
        serve(files, tmp_path / "index", offer=offer(Offer())) as site,
        opened(site.url, tmp_path) as there,
    ):
        assert resolve(there.server, tmp_path, "app").returncode == 0
        lock = locked(there.index, tmp_path / "pylock.toml")
        (site.site.root / "files" / "base-0.9.0-py3-none-any.whl").unlink()
        target = environment_of(sys.executable, tmp_path / "env")
        with IndexServer(ClosedIndex(lock, there.fetcher)) as server:
            result = uv(
                server, tmp_path / "uv", "--preview-features=pylock", "pip", "sync",
                f"--python={target}", tmp_path / "pylock.toml",
            )  # fmt: skip
        assert result.returncode != 0
        assert server.requests <= 4  # one more look at the file, and no pauses between attempts
        (error,) = server.errors
        assert "base-0.9.0-py3-none-any.whl" in str(error) and error.exit_code == 5
