"""A stack of one's own with small packages, on an index of the tests' own: an installation in seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from index_server import Access, Index, serve
from wheel_maker import wheel

from envcheck.install.catalogue.load import seed
from envcheck.install.network.public_index import public_index

MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"

TEXT = """\
name = "demo"
title = "A demonstration"
distribution = "{distribution}"
requirement = "{distribution}=={{version}}"
gpu = false
architectures = ["x86_64", "aarch64"]
source = "the tests"
{more}
{releases}
"""

RELEASE = """
[[releases]]
release = "{version}"
version = "{version}"
python = ["{minor}"]
source = "the tests"
"""


def stack_file(
    path: Path,
    *versions: str,
    distribution: str = "demo-framework",
    more: str = "",
) -> Path:
    """A stack in a file, with a release for each version, newest first."""
    releases = "".join(RELEASE.format(version=v, minor=MINOR) for v in versions)
    path.write_text(TEXT.format(distribution=distribution, releases=releases, more=more))
    return path


@dataclass(frozen=True)
class Demo:
    index: Index
    files: Path
    stack: Path

    @property
    def selection(self) -> list[str]:
        return ["--stack", str(self.stack), "--index", self.index.url, "--python", sys.executable]


@contextmanager
def demo(folder: Path, *, payload: int = 200_000, access: Access | None = None) -> Iterator[Demo]:
    """demo-framework 1.0 and 2.0, which need demo-lib; and a stand-in for this Python's pip."""
    files = folder / "files"
    for version in ("1.0", "2.0"):
        wheel(files, "demo-framework", version, requires=["demo-lib>=1"])
    wheel(files, "demo-lib", "1.5", payload=payload)
    for pin in seed(MINOR):
        name, _, version = pin.partition("==")
        wheel(files, name, version)
    stack = stack_file(folder / "demo.toml", "2.0", "1.0")
    with serve(files, folder / "index", access=access) as index:
        yield Demo(index, files, stack)


def sentence(result: subprocess.CompletedProcess[bytes], code: int) -> str:
    """The last sentence of a refusal that says on stderr how far it got."""
    lines = result.stderr.decode().splitlines()
    found = [line for line in lines if not line.startswith(("hint: ", "    "))]
    assert result.returncode == code, found
    assert result.stdout == b"" and "Traceback" not in result.stderr.decode()
    return found[-1]


def the_registry() -> list[str]:
    """The index that this machine's pip or uv is configured with: a test's home has no configuration."""
    return ["--index", public_index(dict(os.environ)).url]
