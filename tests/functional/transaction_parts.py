"""A tiny stack for tests of the transaction: environments that start, built in a moment, one file each."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from processes import ran
from pythons import put_distribution

from envcheck.exit_codes import EnvcheckError
from envcheck.install import pylock
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile
from envcheck.install.plan.models import PlannedPackage, WheelPlan
from envcheck.install.request import Request
from envcheck.install.transaction import layout
from envcheck.install.transaction.execute import execute
from envcheck.install.transaction.interfaces import Stage, Verification
from envcheck.install.transaction.journal import Journal
from envcheck.install.transaction.layout import Root, Version
from envcheck.install.transaction.record import Built, Health, Installed
from envcheck.install.wheels.builder import artifact

MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
IMAGE_STEPS = ["begun", "held", "pulled", "configured", "verified", "swapped", "done"]
WHEEL_STEPS = ["begun", "python", "fetched", "created", "installed", *IMAGE_STEPS[3:]]
BOUND = 30  # seconds that a forked child may live


def locked(release: str) -> Lockfile:
    file = LockedFile(name="tiny-1-py3-none-any.whl", url="https://x.test/tiny", sha256="ab" * 32)
    package = LockedPackage(name="tiny", version=release, index="https://x.test/simple/", file=file)
    return Lockfile(
        stack="tiny", release=release, python=MINOR, architecture="x86_64", packages=[package]
    )


def planned(root: Path, lock: Lockfile) -> WheelPlan:
    package = PlannedPackage(
        name="tiny",
        version=lock.release,
        file="tiny-1-py3-none-any.whl",
        size=1,
        sha256="ab" * 32,
        index="https://x.test/simple/",
        in_store=True,
    )
    return WheelPlan(
        stack="tiny",
        release=lock.release,
        title="Tiny",
        reasons=[],
        notes=[],
        directory=str(root),
        version=layout.version_id(lock.release, f"py{MINOR}", pylock.digest(lock)),
        python="",
        interpreter=sys.executable,
        installer="none",
        steps=[],
        packages=[package],
        provided={},
        disk_needs=[],
        download_bytes=0,
        in_store_bytes=0,
        sizes_unknown=0,
    )


class TinyBuilder:
    """Makes by hand what venv makes. ``at`` is called in the middle of each step, with its name."""

    def __init__(self, release: str, at: Callable[[str], None] = lambda step: None) -> None:
        self._release = release
        self._at = at
        self.done: list[str] = []

    def stages(self) -> list[Stage]:
        return [
            ("python", self._act(lambda directory: self._pass("python"))),
            ("fetched", self._act(lambda directory: self._pass("fetch"))),
            ("created", self._act(self.create)),
            ("installed", self._act(self.install)),
            ("configured", self._act(self.configure)),
        ]

    def result(self) -> Built:
        return Built(python=MINOR + ".0", interpreter=sys.executable, installer="none")

    def _act(self, work: Callable[[Path], None]) -> Callable[[Version], None]:
        def act(version: Version) -> None:
            work(version.directory)

        return act

    def create(self, directory: Path) -> None:
        (directory / "bin").mkdir()
        (directory / "bin" / "activate").write_text("# activates\n")
        self._pass("create")
        (directory / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
        home = Path(sys.executable).resolve().parent
        (directory / "pyvenv.cfg").write_text(f"home = {home}\nversion = {MINOR}\n")

    def install(self, directory: Path) -> None:
        packages = directory / "lib" / f"python{MINOR}" / "site-packages"
        packages.mkdir(parents=True)
        self._pass("install")
        (packages / "tiny.py").write_text(f"release = {self._release!r}\n")
        put_distribution(packages, "tiny", self._release, "tiny.py")

    def configure(self, directory: Path) -> None:
        (directory / "pip.conf").write_text("[global]\n")
        self._pass("configure")

    def _pass(self, step: str) -> None:
        self.done.append(step)
        self._at(step)


class Judge:
    """A verifier that starts the version and has nothing against it, but for what it is given."""

    def __init__(
        self, failures: list[str] | None = None, at: Callable[[str], None] = lambda step: None
    ) -> None:
        self._failures = failures or []
        self._at = at

    def __call__(self, directory: Path, old: Path | None) -> Verification:
        self.look(directory)
        self._at("verify")
        return Verification(
            health=Health(verdict="Healthy"), failures=self._failures, report=b'{"a": "report"}\n'
        )

    def look(self, directory: Path) -> None:
        assert (directory / "lib" / f"python{MINOR}" / "site-packages" / "tiny.py").is_file()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingJournal(Journal):
    """Kills its process before or after the entry with that number, or when half of it is written."""

    def __init__(self, root: Path, number: int, when: str) -> None:
        super().__init__(Root(root).journal)
        self._file = Root(root).journal
        self._left = number
        self._when = when

    def append(self, version: str, step: Any, **details: str) -> None:
        self._left -= 1
        if self._left < 0 and self._when == "before":
            die()
        if self._left < 0 and self._when == "torn":
            with self._file.open("ab") as file:
                file.write(b'{"time":"2026-11-21T17:00:00Z","vers')
            die()
        super().append(version, step, **details)
        if self._left < 0:
            die()


def request(root: Path, release: str = "") -> Request:
    return Request(stack="tiny", release=release, path=str(root))


def install(root: Path, release: str, **options: Any) -> Installed:
    """One installation; builder and verifier may be given."""
    lock = locked(release)
    builder = options.pop("builder", None) or TinyBuilder(release)
    verify = options.pop("verify", None) or Judge()
    asked = options.pop("request", None) or request(root, release)
    return execute(planned(root, lock), artifact(lock), asked, builder, verify, **options)


def in_child(work: Callable[[], object]) -> int:
    """What became of ``work`` in a process of its own: the exit code, negative for a signal."""
    return wait(start(work))


def start(work: Callable[[], object]) -> int:
    """The process id of a child that does it; its code is envcheck's for what it raises."""
    child = os.fork()
    if child:
        return child
    signal.alarm(BOUND)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests' own may outlive one
    code = 99
    try:
        work()
        code = 0
    except EnvcheckError as error:
        code = int(error.exit_code)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def runs(root: Path) -> str:
    """The release that the environment in use gives when it is started as a user starts it."""
    argv = [
        str(root / "current" / "bin" / "python"),
        "-I",
        "-c",
        "import tiny; print(tiny.release)",
    ]
    return ran(argv, text=True, check=True).stdout.strip()


def holds(root: Path) -> str:
    """The same without starting it, for loops: what its one file says, beside a Python that is there."""
    (root / "current" / "bin" / "python").resolve(strict=True)
    file = root / "current" / "lib" / f"python{MINOR}" / "site-packages" / "tiny.py"
    return file.read_text().split("'")[1]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def nothing_looks_installed_that_is_not(root: Path) -> None:
    """Nothing leads to a version that is not verified."""
    for version in Root(root).versions():
        assert version.record.is_file() or Root(root).current_id() != version.id


def is_tidy(root: Path, versions: int) -> None:
    """Nothing but so many versions, the link, and envcheck's own files, none of them temporary."""
    there = names(root)
    assert {"current", ".envcheck"} <= there
    assert len(there) == versions + 2, there
    own = names(root / ".envcheck") - {"failed"}
    assert own == {"owner.json", "lock", "journal.jsonl"}, own
