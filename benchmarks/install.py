"""envcheck install beside what a user would otherwise type, and beside uv alone, in one run:

    .venv/bin/python benchmarks/install.py --scratch DIR [--and-cuda] [--repeat 3]

pip: `virtualenv ENV`, then `ENV/bin/pip install`. uv: `uv venv ENV`, then `uv pip install`. envcheck:
`envcheck install`, from an empty cache (cold), into a second environment (warm), the same once more (no-op),
and after a kill -9 in mid-download. Each in a home of its own, in turn, with the same release, Python and
index; the medians count. Nothing is asserted: a limit that is missed is said.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import uv
from counting_proxy import CountingProxy
from watched import Run, run

from envcheck import __version__
from envcheck.install.catalogue.load import load
from envcheck.install.network.public_index import public_index

ENVCHECK = Path(sys.executable).with_name("envcheck")
UV = Path(uv.find_uv_bin())
MIB = 1 << 20

Command = list[str | Path]

# What would change what is measured. Certificates and proxies stay.
LEAKS = ("PIP_", "UV_", "CONDA", "VIRTUAL_ENV", "PYTHON", "XDG_", "TF_", "LD_LIBRARY")


@dataclass
class Bench:
    """What is measured, and where."""

    stack: str
    release: str
    requirement: str
    python: Path
    index: str
    scratch: Path
    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    peaks: list[int] = field(default_factory=list)
    downloaded: int = 0

    def took(self, what: str, seconds: float) -> None:
        self.taken[what].append(seconds)
        print(f"{what}: {seconds:.2f} s", file=sys.stderr)

    def environment(self, home: Path) -> dict[str, str]:
        home.mkdir(parents=True, exist_ok=True)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(LEAKS)}
        clean |= {"HOME": str(home), "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}
        return clean | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    @contextmanager
    def home(self, name: str) -> Iterator[Path]:
        """An empty one, and gone afterwards."""
        folder = self.scratch / name
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def pip(self, home: Path, name: str) -> float:
        env = self.environment(home)
        target = home / name
        make: Command = [sys.executable, "-m", "virtualenv", "--quiet", "--python", self.python]
        install: Command = [target / "bin" / "pip", "install", "--quiet", "--index-url", self.index]
        return self._both(env, home, [*make, target], [*install, self.requirement])

    def uv(self, home: Path, name: str) -> float:
        env = self.environment(home)
        target = home / name
        make: Command = [UV, "venv", "--quiet", "--python", self.python, target]
        install: Command = [UV, "pip", "install", "--quiet", "--python", target / "bin" / "python"]
        install += ["--default-index", self.index, self.requirement]
        return self._both(env, home, make, install)

    def resolution(self, home: Path) -> float:
        """uv's alone, from an empty cache: what no installer can be faster than."""
        wanted = home / "requirements.in"
        env = self.environment(home)
        wanted.write_text(self.requirement + "\n")
        resolve: Command = [UV, "pip", "compile", "--quiet", "--python", self.python]
        resolve += ["--default-index", self.index, "--output-file", home / "out.txt", wanted]
        return run(resolve, env, log=home / "log").seconds

    def envcheck(
        self,
        home: Path,
        name: str,
        more: dict[str, str] | None = None,
        kill_when: Callable[[], bool] | None = None,
    ) -> Run:
        target = home / name
        argv: Command = [ENVCHECK, "install", "--mode", "wheel", "--stack", self.stack]
        argv += ["--release", self.release, "--python", self.python, "--index", self.index]
        argv += ["--path", target, "--allow-no-gpu", "--yes"]
        return run(
            argv,
            self.environment(home) | (more or {}),
            log=home / "log",
            cache=self.cache(home),
            journal=target / ".envcheck" / "journal.jsonl",
            kill_when=kill_when,
        )

    def cache(self, home: Path) -> Path:
        return home / ".cache" / "envcheck" / "uv"

    @staticmethod
    def _both(env: dict[str, str], home: Path, *commands: Command) -> float:
        return sum(run(command, env, log=home / "log").seconds for command in commands)


def one_round(bench: Bench) -> None:
    with bench.home("pip") as home:
        bench.took("pip, cold", bench.pip(home, "one"))
        bench.took("pip, its cache warm", bench.pip(home, "two"))
    with bench.home("uv") as home:
        bench.took("uv alone, cold", bench.uv(home, "one"))
        bench.took("uv alone, its cache warm", bench.uv(home, "two"))
    with bench.home("resolve") as home:
        bench.took("uv alone, resolution", bench.resolution(home))
    with bench.home("envcheck") as home:
        for name, target in (("cold", "one"), ("warm", "two")):
            result = bench.envcheck(home, target)
            bench.took(
                f"envcheck, {name}, to installed", result.steps.get("installed", result.seconds)
            )
            bench.took(f"envcheck, {name}, verified", result.seconds)
            bench.peaks.append(result.peak)
            steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in result.steps.items())
            print(f"  {steps} s", file=sys.stderr)
            if name == "cold":
                bench.took("envcheck, first byte", result.first_byte or result.seconds)
        bench.took("envcheck, the same again", bench.envcheck(home, "two").seconds)
        lock = (home / "one" / "current" / ".envcheck" / "pylock.toml").read_text()
        bench.downloaded = sum(map(int, re.findall(r"\bsize = (\d+)", lock)))


@dataclass(frozen=True)
class Killed:
    """Bytes from the hosts of files, in the run that was killed and in the one after it."""

    before: int
    after: int
    total: int  # of all files

    @property
    def again(self) -> float:
        """The share of all bytes that came a second time, in percent."""
        return 100 * max(0, self.before + self.after - self.total) / max(1, self.total)


def after_a_kill(bench: Bench) -> Killed:
    """kill -9 when half of the bytes have come, then the same command; a proxy counts what comes."""
    with bench.home("killed") as home, CountingProxy() as proxy:
        through = {"https_proxy": proxy.url, "http_proxy": proxy.url, "no_proxy": "127.0.0.1"}
        through |= {name.upper(): value for name, value in through.items()}
        pages = urlsplit(bench.index).hostname

        def came() -> int:
            """Pages of the index are not files; if one host has both, they count as files."""
            hosts = [host for host in proxy.counted if host != pages] or list(proxy.counted)
            return sum(proxy.counted[host] for host in hosts)

        half = bench.downloaded // 2
        if not bench.envcheck(home, "env", through, lambda: came() >= half).killed:
            raise SystemExit("it was done before it could be killed")
        before = came()
        bench.envcheck(home, "env", through)
        return Killed(before, came() - before, bench.downloaded)


def limits(bench: Bench, killed: Killed | None) -> Iterator[tuple[str, str, str, bool]]:
    """(figure, measured, limit, whether it is kept)."""
    median = {name: statistics.median(values) for name, values in bench.taken.items()}
    pip, alone = median["pip, cold"], median["uv alone, cold"]
    cold, warm = (median[f"envcheck, {name}, to installed"] for name in ("cold", "warm"))
    yield "cold, against pip", f"{pip / cold:.1f}× faster", "≥ 2.3×", pip / cold >= 2.3
    yield "cold, against uv", f"{cold / alone:.2f}×", "≤ 1.08×", cold / alone <= 1.08
    beyond = warm - median["uv alone, its cache warm"]
    yield "warm, beyond uv", f"{beyond:.2f} s", "≤ 0.5 s", beyond <= 0.5
    same = median["envcheck, the same again"]
    yield "the same again", f"{same:.2f} s", "< 1 s", same < 1
    first = median["envcheck, first byte"] - median["uv alone, resolution"]
    yield "first byte, beyond uv's resolution", f"{first:.2f} s", "≤ 1.5 s", first <= 1.5
    peak = max(bench.peaks) / 1e6
    yield "peak memory of its own process", f"{peak:.0f} MB", "≤ 150 MB", peak <= 150
    if killed is not None:
        share = f"{killed.again:.1f} % of {killed.total / MIB:.0f} MiB"
        yield "fetched again after kill -9", share, "≤ 50 %", killed.again <= 50


def show(bench: Bench, killed: Killed | None, rounds: int) -> None:
    tools = f"pip {_pip()}, uv {version('uv')}, envcheck {__version__}"
    print(f"`{' '.join(['benchmarks/install.py', *sys.argv[1:]])}`\n")
    print(
        f"`{bench.requirement}`, {bench.downloaded / MIB:.0f} MiB of files, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores, {tools}; "
        f"median of {rounds}, taken in turn.\n"
    )
    print("| what | seconds | all runs |\n|---|---:|---|")
    for name, values in bench.taken.items():
        each = ", ".join(f"{value:.1f}" for value in values)
        print(f"| {name} | {statistics.median(values):.1f} | {each} |")
    print("\n| figure | measured | limit | |\n|---|---:|---:|---|")
    for name, measured, limit, kept in limits(bench, killed):
        print(f"| {name} | {measured} | {limit} | {'ok' if kept else 'MISSED'} |")


def _pip() -> str:
    """Of the environments that virtualenv makes."""
    from virtualenv.seed.wheels.embed import get_embed_wheel

    found = get_embed_wheel("pip", f"{sys.version_info.major}.{sys.version_info.minor}")
    return str(found.version) if found else "?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, required=True, help="a directory for all of it")
    parser.add_argument(
        "--and-cuda", action="store_true", help="tensorflow[and-cuda]: 3.3 GB a run"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-kill", action="store_true", help="leave out the run that is killed")
    arguments = parser.parse_args()
    name = "tensorflow" if arguments.and_cuda else "tensorflow-cpu"
    stack = load(name)
    minor = f"3.{sys.version_info.minor}"
    release = next(
        one
        for one in stack.releases
        if minor in one.python and not one.broken and not one.prerelease
    )
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="envcheck-benchmark-", dir=arguments.scratch))
    bench = Bench(
        stack=name,
        release=release.release,
        requirement=stack.requirement.format(version=release.version),
        python=Path(sys.base_prefix) / "bin" / f"python{minor}",
        index=public_index(dict(os.environ)).url,
        scratch=scratch,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the scratch directory goes
    try:
        for number in range(arguments.repeat):
            print(f"round {number + 1} of {arguments.repeat}", file=sys.stderr)
            one_round(bench)
        killed = None if arguments.no_kill else after_a_kill(bench)
        show(bench, killed, arguments.repeat)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
