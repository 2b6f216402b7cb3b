"""What was changed in uv's cache of unpacked wheels is not installed and called verified."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import locked_folder
import pytest
from locked_folder import lock_of
from resolving import MINOR, PYTHON, isolate, stack
from wheel_maker import wheel

from envcheck.exit_codes import PutBack
from envcheck.install import places
from envcheck.install.wheels import environment

STACK = stack("alpha=={version}")
TEXT, OTHER = "value = 1\n", "value = 2\n"
DATA = "alpha-1.0.data"


_autouse = pytest.fixture(autouse=True)(isolate)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    modules = {
        "alpha/__init__.py": TEXT,
        "shared/__init__.py": "",
        f"{DATA}/scripts/say": "#!python\nprint('said')\n",
        f"{DATA}/scripts/plain": "#!/bin/sh\necho said\n",
        f"{DATA}/data/share/alpha.txt": "text",
        f"{DATA}/purelib/pure.py": "pure = 1\n",
    }
    wheel(folder, "alpha", "1.0", modules=modules, payload=3 << 20)
    wheel(folder, "beta", "2.0", modules={"beta.py": "", "shared/__init__.py": "# beta's\n"},
          scripts={"say-beta": "beta:__name__.__len__"})  # fmt: skip
    return folder


def install(directory: Path, files: Path) -> Path:
    environment.create(directory, PYTHON)
    locked_folder.install(directory, lock_of(files, MINOR), STACK)
    return directory / "lib" / f"python{MINOR}" / "site-packages"


def cached(name: str) -> Path:
    (found,) = places.uv_cache().glob(f"archive-v*/*/{name}")
    return found


def rewrite(name: str, text: str) -> None:
    change(cached(name), text)


def change(path: Path, text: str) -> None:
    path.write_text(text)
    os.utime(path, (path.stat().st_mtime + 60,) * 2)  # as if it had been written a minute later


def planted(name: str) -> Callable[[], object]:
    def plant() -> None:
        path = cached("alpha") / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("import os\n")

    return plant


CHANGES: dict[str, tuple[Callable[[], object], str]] = {
    "a module": (lambda: rewrite("alpha/__init__.py", OTHER), "alpha/__init__.py"),
    "a longer one": (lambda: rewrite("alpha/__init__.py", TEXT * 2), "alpha/__init__.py"),
    "one that is gone": (lambda: cached("alpha/__init__.py").unlink(), "alpha/__init__.py"),
    "a large file": (lambda: rewrite("alpha_payload/bytes.bin", "x" * (3 << 20)), "bytes.bin"),
    "what two wheels hold": (lambda: [change(cached(one).parent / "shared/__init__.py", "#")
                                      for one in ("alpha", "beta.py")], "shared/__init__.py"),
    "data": (lambda: rewrite(f"{DATA}/data/share/alpha.txt", "TEXT"), "share/alpha.txt"),
    "purelib": (lambda: rewrite(f"{DATA}/purelib/pure.py", "pure = 2\n"), "pure.py"),
    "entry points": (lambda: rewrite("beta-2.0.dist-info/entry_points.txt",
                                     "[console_scripts]\nsay-beta = evil:x\n"), "entry_points.txt"),
    "a new module": (planted("new.py"), "alpha/new.py"),
    "new byte code": (planted(f"__pycache__/__init__.cpython-{MINOR.replace('.', '')}.pyc"), ".pyc"),
    "a new path file": (lambda: (cached("alpha").parent / "evil.pth").write_text("import os\n"),
                        "evil.pth"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_cache_is_noticed(files: Path, tmp_path: Path, what: str) -> None:
    install(tmp_path / "first", files)
    change, name = CHANGES[what]
    change()
    with pytest.raises(PutBack, match="is not what its wheel holds") as refused:
        install(tmp_path / "second", files)
    assert name in str(refused.value)
    assert refused.value.hint.endswith(f"rm -r {places.uv_cache()}")
