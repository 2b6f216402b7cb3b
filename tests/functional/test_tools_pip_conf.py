"""pip in a finished environment, beside an index that holds the same names with higher versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from cli import environment as clean
from index_server import Index as Served
from index_server import serve
from index_site import Offer
from processes import ran
from pythons import heavy, need
from wheel_maker import wheel

from envcheck.install.catalogue.model import Index, Stack
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile
from envcheck.install.wheels import environment

FREE = "nvidia-cublas-cu117"  # a name that nobody holds on the public registry
PLAIN = Offer(json=False)  # what pip 18.1 reads
Indexes = tuple[Served, Served]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexes]:
    """NVIDIA's, and the public one with an attacker's files."""
    folder = tmp_path_factory.mktemp("indexes")
    nvidia, public = folder / "nvidia", folder / "public"
    wheel(nvidia, "nvidia-cublas", "11.4.1")
    wheel(nvidia, "nvidia-user", "1.0", requires=["nvidia-cublas"])
    wheel(nvidia, "nvidia-tensorrt", "8.5")
    wheel(nvidia, FREE, "11.10")
    wheel(public, "nvidia-cublas", "11.4.1+evil")
    wheel(public, "nvidia-cublas", "99.0")
    wheel(public, "nvidia-tensorrt", "99.0")
    wheel(public, FREE, "99.1")
    for version in ("1.15.0", "1.16.0"):
        wheel(public, "six", version)
    wheel(public, "wants-cublas", "1.0", requires=["nvidia-cublas>50"])
    with (
        serve(nvidia, folder / "n", offer=PLAIN) as own,
        serve(public, folder / "p", offer=PLAIN) as other,
    ):
        yield own, other


@pytest.fixture(scope="module", params=[*heavy(6, 8), 13])
def python(
    request: pytest.FixtureRequest, indexes: Indexes, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Of an environment with that Python's own pip, configured as after an installation."""
    directory = tmp_path_factory.mktemp("env") / "it"
    made = [need(request.param), "-m", "venv", directory]
    ran(made, check=True, env=clean())
    claims = Index(name="nvidia", urls=[indexes[0].url], packages=["nvidia-*"], source="a test")
    stack = Stack(
        name="test",
        title="",
        distribution="nvidia-cublas",
        requirement="nvidia-cublas",
        gpu=False,
        architectures=["x86_64"],
        source="a test",
        indexes=[claims],
        constraints=["nvidia-tensorrt<9"],
    )
    file = LockedFile(
        name="nvidia_cublas-11.4.1-py3-none-any.whl", url="https://x/", sha256="0" * 64
    )
    package = LockedPackage(name="nvidia-cublas", version="11.4.1", index=indexes[0].url, file=file)
    public = msgspec.structs.replace(package, name="six", version="1.16.0", index=indexes[1].url)
    lock = Lockfile(
        stack="test", release="1", python="3", architecture="x86_64", packages=[package, public]
    )
    environment.configure(directory, stack, lock, "https://public.example/simple")
    return directory / "bin" / "python"


@pytest.mark.parametrize(
    "wanted, got",
    [
        ("nvidia-cublas", ["nvidia_cublas-11.4.1-py3-none-any.whl"]),
        # By a dependency of a package that is asked for later, too.
        (
            "nvidia-user",
            ["nvidia_cublas-11.4.1-py3-none-any.whl", "nvidia_user-1.0-py3-none-any.whl"],
        ),
        ("nvidia-tensorrt", ["nvidia_tensorrt-8.5-py3-none-any.whl"]),
        ("six", ["six-1.16.0-py3-none-any.whl"]),
        # Locked, and free to change: it is the user's environment.
        ("six<1.16", ["six-1.15.0-py3-none-any.whl"]),
        (FREE, []),
    ],
)
def test_no_index_slips_in_a_package_of_the_other(
    python: Path, indexes: Indexes, tmp_path: Path, wanted: str, got: list[str]
) -> None:
    variables = clean(PIP_INDEX_URL=indexes[1].url, HOME=str(tmp_path))
    del variables["PIP_CONFIG_FILE"]  # with it, pip would not read the environment's own
    argv = [python, "-m", "pip", "download", "--no-cache-dir", "--dest", tmp_path / "got", wanted]
    result = ran(argv, text=True, env=variables)
    assert (result.returncode == 0) == bool(got), result.stderr
    assert sorted(path.name for path in tmp_path.glob("got/*.whl")) == got
