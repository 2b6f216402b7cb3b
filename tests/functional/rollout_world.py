"""Machines to roll out to, an index that only this machine reaches, and `envcheck fleet install` on them."""

from __future__ import annotations

import ensurepip
import json
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli import environment
from demo_stack import Demo, demo
from installing import Home
from processes import PATIENCE
from ssh_hosts import Host, SshHosts, python_of, serve_hosts
from wheel_maker import stand_ins, wheel

from envcheck.install.export import own_wheel

MINOR = sys.version_info[1]


@dataclass(frozen=True)
class Rollout:
    """The centre: its home, its stack on an index, and the machines."""

    home: Home
    demo: Demo
    hosts: SshHosts

    @property
    def keep(self) -> Path:
        return self.home.folder / "rollout"

    def fleet(self, *words: str | Path, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """`envcheck fleet …` with this inventory."""
        done = subprocess.run(
            [sys.executable, "-m", "envcheck", "fleet", *map(str, words)],
            env=environment(**(self.home.variables | self.hosts.variables)),
            capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        if code is not None:
            assert done.returncode == code, done.stderr + done.stdout
        return done

    def install(self, *words: str | Path, code: int | None = 0) -> dict[str, Any]:
        """`fleet install` of the demo stack; its JSON."""
        stack = ["--stack", self.demo.stack, "--index", self.demo.index.url]
        done = self.fleet(
            "install", *stack, "-i", self.hosts.inventory, "--keep", self.keep, "--yes",
            "--format", "json", *words, code=code,
        )  # fmt: skip
        shown: dict[str, Any] = json.loads(done.stdout)
        shown["stderr"] = done.stderr
        return shown

    def undo(self, what: str, *words: str | Path, code: int | None = 0) -> dict[str, Any]:
        """`fleet rollback` or `fleet uninstall`."""
        done = self.fleet(
            what, "-i", self.hosts.inventory, "--keep", self.keep, "--yes", "--format", "json",
            *words, code=code,
        )  # fmt: skip
        shown: dict[str, Any] = json.loads(done.stdout)
        return shown

    def on(self, name: str, command: str) -> str:
        done = self.hosts.ssh(name, command)
        return done.stdout.strip()

    def version(self, name: str) -> str:
        """Of demo-framework in the environment in use there; "" for none."""
        code = "import demo_framework; print(demo_framework.__version__)"
        return self.on(name, f'~/.local/share/envcheck/envs/demo/current/bin/python -c "{code}"')


def results(shown: dict[str, Any]) -> dict[str, str]:
    return {end["name"]: end["result"] for end in shown["machines"]}


@contextmanager
def rollout(folder: Path, count: int, others: list[Host]) -> Iterator[Rollout]:
    """``count`` machines with this Python, gpu01 and on, and the others."""
    python = python_of(f"3.{MINOR}") or str(Path(sys.executable).resolve())
    purelib = sysconfig.get_path("purelib")
    well = [Host(f"gpu{n:02d}", "well", python, MINOR, ("rack1",)) for n in range(1, count + 1)]
    with demo(folder / "demo") as shop:
        for name, version in stand_ins(own_wheel.build().requires):
            # What envcheck needs comes from this environment: its stand-ins in the bundle lead there.
            path = {"stand_in.pth": f"import sys; sys.path.insert(0, {purelib!r})\n"}
            wheel(shop.files, name, version, modules=path if name == "certifi" else None)
        _working_pip(shop.files)
        shop.index.refresh()
        with serve_hosts([*well, *others]) as hosts:
            yield Rollout(Home(folder / "home"), shop, hosts)


def _working_pip(files: Path) -> None:
    """This Python's own, under the version that envcheck pins: a bundle's setup.sh runs it."""
    folders = [Path(ensurepip.__file__).parent / "_bundled", Path("/usr/share/python-wheels")]
    bundled = next(wheel for folder in folders for wheel in folder.glob("pip-*.whl"))
    (pinned,) = files.glob("pip-*.whl")
    old, new = (path.name.split("-")[1] for path in (bundled, pinned))
    with zipfile.ZipFile(bundled) as source, zipfile.ZipFile(pinned, "w") as target:
        for info in source.infolist():
            data = source.read(info)
            if info.filename.endswith(("/METADATA", "/RECORD")):
                data = data.replace(f"Version: {old}".encode(), f"Version: {new}".encode())
                data = data.replace(f"pip-{old}.".encode(), f"pip-{new}.".encode())
            name = info.filename.replace(f"pip-{old}.", f"pip-{new}.")
            if name.endswith("/RECORD"):
                data = b"".join(line for line in data.splitlines(True) if b"METADATA" not in line)
                data += f"pip-{new}.dist-info/METADATA,,\n".encode()
            target.writestr(name, data, zipfile.ZIP_DEFLATED)
