"""The container mode's figures, beside the engine alone, in one run:

    .venv/bin/python benchmarks/container.py [--only run plan pull doctor] [--rounds 15] [--mebibytes 1000]

run: `envcheck run -- true` beside `podman run --rm IMAGE true`. plan: tag → digest → fit, from a registry on
loopback, over TLS. pull: an image of that size beside `podman pull`, plain and with the registry behind
1 Gbit/s.
doctor: of an image from the inside, without kernels. All with a podman and a docker-registry of this run's
own, taken in turn; medians. Nothing is asserted: a limit that is missed is said, and so is what could not be
measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import in_turn
from rich.console import Console
from rich.table import Table
from throttled import Throttled
from watched import run as watched

REPOSITORY = Path(__file__).resolve().parents[1]
ENVCHECK = Path(sys.executable).with_name("envcheck")
MIB = 1 << 20
GIGABIT = 125e6  # bytes a second
LAYERS = 4

# The tests know how to make a podman, a registry and an image that nobody else sees.
sys.path.insert(0, str(REPOSITORY / "tests" / "functional"))


class NotMeasured(Exception):
    """A figure could not be taken, and why."""


@dataclass
class Bench:
    """What is measured, and where. world: the tests' podman. registry: their docker-registry."""

    scratch: Path
    rounds: int
    mebibytes: int
    world: Any
    registry: Any

    def environment(self, home: Path) -> dict[str, str]:
        """A home of its own, and this run's podman."""
        leaks = ("XDG_", "VIRTUAL_ENV", "PYTHON", "CONTAINER", "DOCKER_", "TF_")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(leaks)}
        home.mkdir(parents=True, exist_ok=True)
        engine: dict[str, str] = self.world.variables
        own = {"HOME": str(home), "TMPDIR": str(self.scratch)}
        if self.registry is not None:
            own["SSL_CERT_FILE"] = str(self.registry.ca)
        return clean | engine | own

    def took(self, argv: Sequence[str | Path], home: Path, codes: Sequence[int] = (0,)) -> float:
        """Seconds of one run of a program. Raises NotMeasured where it fails."""
        started = time.perf_counter()
        done = subprocess.run(
            argv,
            env=self.environment(home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=home,
            check=False,
        )
        seconds = time.perf_counter() - started
        if done.returncode not in codes:
            words = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            raise NotMeasured(words[-1] if words else f"exit code {done.returncode}")
        return seconds

    def install(self, host: str, repository: str, *more: str | Path) -> list[str | Path]:
        """The command for an image in that registry."""
        image = ["--image", f"{host}/{repository}:1"]
        argv: list[str | Path] = [ENVCHECK, "install", "--mode", "container", *image]
        return [*argv, "--engine", "podman", "--allow-no-gpu", *more]


class Figures:
    """The table as it grows."""

    def __init__(self) -> None:
        self.table = Table(title="the container mode's figures", title_justify="left")
        for name in ("figure", "measured", "limit", ""):
            self.table.add_column(name)

    def add(self, name: str, value: float, limit: float, unit: str, beside: str) -> None:
        word = "ok" if value <= limit else f"MISSED by {value - limit:.3g} {unit}"
        self.table.add_row(name, f"{value:.3g} {unit} ({beside})", f"<= {limit:g} {unit}", word)

    def missing(self, name: str, why: object) -> None:
        self.table.add_row(name, f"not measured: {why}", "", "")


def start(bench: Bench, figures: Figures) -> None:
    """(a) What `envcheck run` adds to the engine's own run, in a version that is written by hand."""
    from started import installed, plain_start  # type: ignore[import-not-found]

    image = bench.world.id_of(bench.world.image("base"))
    podman = str(shutil.which("podman"))
    made = installed(bench.scratch / "run", {}, plain_start("podman", podman, image))
    home = bench.scratch / "run"
    places = made.home.variables
    own = [podman, "run", "--rm", image, "true"]
    with_places = ["env", *(f"{name}={value}" for name, value in places.items())]
    alone, ours = in_turn(
        bench.rounds,
        lambda: bench.took([*with_places, *own], home),
        lambda: bench.took([*with_places, str(ENVCHECK), "run", "--", "true"], home),
    )
    beside = f"{ours * 1000:.0f} ms; podman run: {alone * 1000:.0f} ms"
    figures.add(
        "envcheck run -- true, beyond podman's own", (ours - alone) * 1000, 150, "ms", beside
    )


def plan(bench: Bench, figures: Figures) -> None:
    """(b) Which digest a tag is today, and whether the image fits this machine."""
    _push_small(bench, "bench/small")
    home = bench.scratch / "plan"
    argv = bench.install(bench.registry.host, "bench/small", "--plan")
    (seconds,) = in_turn(min(bench.rounds, 7), lambda: bench.took(argv, home))
    figures.add("the plan, from a registry on loopback", seconds, 1, "s", "the whole command")


def pull(bench: Bench, figures: Figures) -> None:
    """(c) Both from the same registry into the same storage, which is emptied in between."""
    repository = "bench/big"
    _push_big(bench, repository)
    with Throttled(bench.registry.host, GIGABIT) as slow:
        for name, host in (("", bench.registry.host), (" at 1 Gbit/s", slow.host)):
            alone, ours = in_turn(
                min(bench.rounds, 3),
                lambda host=host: _podman_pull(bench, host, repository),  # type: ignore[misc]
                lambda host=host: _our_pull(bench, host, repository),  # type: ignore[misc]
            )
            beside = f"{ours:.1f} s; podman pull: {alone:.1f} s"
            what = f"pulling {bench.mebibytes} MiB{name}, beyond podman's own"
            figures.add(what, 100 * (ours / alone - 1), 2, "%", beside)


def _podman_pull(bench: Bench, host: str, repository: str) -> float:
    home = bench.scratch / "podman"
    image = f"{host}/{repository}:1"
    os.sync()
    try:
        return bench.took(["podman", "pull", "--quiet", image], home)
    finally:
        bench.world.podman("rmi", "--force", image, code=None)


def _our_pull(bench: Bench, host: str, repository: str) -> float:
    """From the journal's "begun" to "pulled": without survey and plan before, and the doctor after it."""
    home = bench.scratch / "envcheck"
    root = home / "root"
    argv = bench.install(host, repository, "--path", root, "--yes")
    try:
        home.mkdir(parents=True, exist_ok=True)
        result = watched(
            argv,
            bench.environment(home),
            log=home / "log",
            journal=root / ".envcheck" / "journal.jsonl",
        )
        return result.steps["pulled"] - result.steps["begun"]
    except SystemExit as error:
        raise NotMeasured(str(error).strip().splitlines()[-1]) from None
    finally:
        subprocess.run(
            [ENVCHECK, "uninstall", root, "--yes"],
            env=bench.environment(home),
            capture_output=True,
            check=False,
        )
        shutil.rmtree(home, ignore_errors=True)


def doctor(bench: Bench, figures: Figures) -> None:
    """(d) Of an image with a stand-in TensorFlow, less what its import takes in there."""
    image = bench.world.image("tensorflow")
    home = bench.scratch / "doctor"
    timed = (
        "import time; t = time.perf_counter(); import tensorflow; print(time.perf_counter() - t)"
    )
    argv: list[str | Path] = [
        ENVCHECK,
        "doctor",
        "--target",
        f"image:{image}",
        "--engine",
        "podman",
    ]

    def imported() -> float:
        result = bench.world.podman("run", "--rm", image, "python3", "-c", timed)
        return float(result.stdout)

    alone, ours = in_turn(
        min(bench.rounds, 7),
        imported,
        lambda: bench.took([*argv, "--level=quick", "--exit-zero"], home),
    )
    beside = f"{ours:.2f} s; the import inside, of a stand-in: {alone:.2f} s"
    figures.add(
        "the doctor inside, without kernels, beyond the import", ours - alone, 2, "s", beside
    )


def _push_small(bench: Bench, repository: str) -> None:
    import image_registry  # type: ignore[import-not-found]

    bench.registry.push(
        repository, "1", [_base_layer(bench), image_registry.layer({"etc/x": b"x"})]
    )


def _push_big(bench: Bench, repository: str) -> None:
    """Half of each layer is random and half is zeros, so that they take twice the room when unpacked."""
    import image_registry

    each = bench.mebibytes * MIB // LAYERS
    layers = [_base_layer(bench)]
    for number in range(LAYERS):
        data = b"".join(os.urandom(MIB) + bytes(MIB) for _ in range(max(1, each // MIB)))
        layers.append(image_registry.layer({f"data/{number}": data}))
    bench.registry.push(repository, "1", layers)


def _base_layer(bench: Bench) -> bytes:
    import gzip

    return gzip.compress((bench.scratch / "base.tar").read_bytes(), 1)


FIGURES: dict[str, tuple[str, Callable[[Bench, Figures], None]]] = {
    "run": ("envcheck run -- true", start),
    "plan": ("the plan", plan),
    "pull": ("pulling", pull),
    "doctor": ("the doctor inside", doctor),
}


@contextmanager
def opened(scratch: Path, rounds: int, mebibytes: int, registry_too: bool) -> Iterator[Bench]:
    """A podman and a registry that are gone afterwards."""
    import base_files  # type: ignore[import-not-found]
    import certificates  # type: ignore[import-not-found]
    import image_registry
    import podman  # type: ignore[import-not-found]

    base = base_files.base_tar(scratch / "base.tar")
    with ExitStack() as stack:
        world = stack.enter_context(podman.world(scratch / "podman-world", base))
        tls = certificates.make(scratch / "tls")
        served = image_registry.serve_registry(scratch / "registry", tls=tls)
        registry = stack.enter_context(served) if registry_too else None
        yield Bench(scratch, rounds, mebibytes, world, registry)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=tuple(FIGURES), default=list(FIGURES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--mebibytes", type=int, default=1000, help="of the image that is pulled")
    parser.add_argument("--scratch", type=Path, help="a directory for all of it (default: $TMPDIR)")
    options = parser.parse_args()
    figures = Figures()
    with (
        tempfile.TemporaryDirectory(prefix="envcheck-container-", dir=options.scratch) as scratch,
        opened(
            Path(scratch),
            options.rounds,
            options.mebibytes,
            bool({"plan", "pull"} & {*options.only}),
        ) as bench,
    ):
        for name in options.only:
            title, measure = FIGURES[name]
            print(title, file=sys.stderr)
            try:
                measure(bench, figures)
            except Exception as error:
                figures.missing(title, error)
        version = bench.world.podman("--version").stdout.strip()
    console = Console(width=140)
    console.print(figures.table)
    console.print(f"{version}, Python {platform.python_version()}, {os.cpu_count()} CPUs")


if __name__ == "__main__":
    import pytest

    try:
        main()
    except (
        pytest.skip.Exception
    ) as why:  # what the tests' podman and registry say where they are missing
        sys.exit(f"not measured: {why}")
