"""The loopback index as a whole, over indexes that the tests serve, and the installers that use it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli import environment
from uv import find_uv_bin

from envcheck.install.catalogue.model import Index, Sdist, Stack
from envcheck.install.index.address import INDEX_URL
from envcheck.install.index.routes import Routes
from envcheck.install.index.server import IndexServer
from envcheck.install.index.views import OpenIndex
from envcheck.install.network.public_index import PublicIndex
from envcheck.install.network.session import Session
from envcheck.install.request import Request
from envcheck.install.store.fetch import Fetcher
from envcheck.install.store.store import Store

SECONDS = 120.0


@dataclass
class Opened:
    """An open index that is served, and what is behind it."""

    index: OpenIndex
    server: IndexServer
    store: Store
    fetcher: Fetcher


def stack(nvidia: str = "", sdists: Sequence[Sdist] = (), packages: Sequence[str] = ()) -> Stack:
    """nvidia: the URL of an index that claims ``packages``, or all of NVIDIA's names."""
    claimed = list(packages or ("nvidia-*", "tensorrt"))
    indexes = [Index(name="nvidia", urls=[nvidia], packages=claimed, source="")] if nvidia else []
    return Stack(
        name="a-stack",
        title="",
        distribution="app",
        requirement="",
        gpu=False,
        architectures=["x86_64"],
        source="",
        indexes=indexes,
        sdists=list(sdists),
    )


@contextmanager
def opened(public: str, folder: Path, chosen: Stack | None = None) -> Iterator[Opened]:
    """public: the URL of the public index. folder: for the store."""
    chosen = chosen or stack()
    store = Store(folder / "store")
    routes = Routes(chosen, Request(), PublicIndex(url=public, origin="a test"))
    with Session() as session, Fetcher(store, session) as fetcher:
        index = OpenIndex(routes, session, store, chosen, fetcher)
        with IndexServer(index) as server:
            yield Opened(index, server, store, fetcher)


def uv(
    server: IndexServer, cache: Path, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    """uv, with this index as its world."""
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), server.proxy)
    return subprocess.run(
        [find_uv_bin(), "--no-config", *map(str, arguments)],
        env=environment(
            UV_CACHE_DIR=str(cache),
            UV_PYTHON_DOWNLOADS="never",
            NO_PROXY="",
            no_proxy="",
            **proxies,
        ),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def resolve(
    server: IndexServer,
    folder: Path,
    *requirements: str,
    python: str = sys.executable,
    cache: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """``uv pip compile`` into folder/pylock.toml."""
    wanted = folder / "wanted.txt"
    wanted.write_text("\n".join([*requirements, ""]))
    return uv(
        server,
        cache or folder / "uv",
        "pip",
        "compile",
        "--format=pylock.toml",
        f"--default-index={INDEX_URL}",
        f"--python={python}",
        f"--output-file={folder / 'pylock.toml'}",
        wanted,
    )


def pip(python: str | Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """That interpreter's own pip, of whatever age."""
    return subprocess.run(
        [
            str(python),
            "-m",
            "pip",
            "--isolated",
            "--disable-pip-version-check",
            *map(str, arguments),
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
