"""Images for the tests: the base (base_files), and others that are the base with one thing changed.

All are called localhost/envcheck-test/KIND:1. What stands in for something says so.
"""

from __future__ import annotations

import shutil
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import base_files
from base_files import MINOR, USER, Files
from standin_bench import write_torch

HERE = Path(__file__).parent
LIBRARY = f"/usr/local/lib/python{MINOR}"
# Where this machine's Python, which the image has a copy of, looks for packages: Debian's has its own name.
SITE = f"{LIBRARY}/{'dist' if 'deb_system' in sysconfig.get_scheme_names() else 'site'}-packages"
_CONFIG = ("ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin", 'CMD ["sh"]')


@dataclass(frozen=True)
class Kind:
    """How an image differs from the base."""

    lines: list[str] = field(default_factory=list)  # of a Dockerfile, after FROM
    files: Files = field(default_factory=dict)  # what these lines copy


def _script(name: str, text: str, *lines: str) -> Kind:
    return Kind([f"COPY {name} /{name}", f"RUN chmod 755 /{name}", *lines], {name: text})


# A stand-in for Python 3.5: says of itself that it is, and is this machine's Python in all else.
_PYTHON35 = f'#!/bin/sh\nexec /usr/local/bin/python{MINOR} /as35.py "$@"\n'
_AS35 = """\
import runpy, sys
sys.version_info = (3, 5, 10, "final", 0)
sys.version, sys.hexversion = "3.5.10 (stand-in)", 0x03050AF0
rest = sys.argv[1:]
while rest and rest[0].startswith("-") and rest[0] not in ("-", "-c", "-m", "-V", "--version"):
    rest = rest[2:] if rest[0] in ("-W", "-X") else rest[1:]
kind = rest[0] if rest else "-"
if kind in ("-V", "--version"):
    print("Python 3.5.10")
elif kind in ("-", "-c"):
    code = sys.stdin.read() if kind == "-" else rest[1]
    sys.argv = [kind] + rest[1 if kind == "-" else 2:]
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
elif kind == "-m":
    sys.argv = rest[1:]
    runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
else:
    sys.argv = rest
    runpy.run_path(rest[0], run_name="__main__")
"""


def _python35() -> Kind:
    lines = [
        "COPY as35.py /as35.py",
        "RUN rm /usr/local/bin/python /usr/local/bin/python3",
        "COPY python3 /usr/local/bin/python3",
        "RUN chmod 755 /usr/local/bin/python3",
    ]
    return Kind(lines, {"as35.py": _AS35, "python3": _PYTHON35})


def _tensorflow() -> Kind:
    """The stand-in for NVIDIA's TensorFlow 1.15 of 23.03, with what it imports."""
    info = "nvidia_tensorflow-1.15.5+nv23.3.dist-info"
    files: Files = {
        str(path.relative_to(HERE / "standin_tensorflow")): path.read_text()
        for path in (HERE / "standin_tensorflow").rglob("*.py")
    }
    files = {f"site/tensorflow/{name}": str(text) for name, text in files.items()}
    files = {name: str(text).replace("UPSTREAM", "1.15.5") for name, text in files.items()}
    files["site/google/protobuf/__init__.py"] = '__version__ = "3.20.3"\n'
    files[f"site/{info}/METADATA"] = (
        "Metadata-Version: 2.1\nName: nvidia-tensorflow\nVersion: 1.15.5+nv23.3\n"
    )
    files[f"site/{info}/RECORD"] = ""
    return Kind([f"COPY site {SITE}"], files)


def _torch() -> Kind:
    """The stand-in for PyTorch that is a version and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        write_torch(Path(folder))
        found = [path for path in Path(folder).rglob("*") if path.is_file()]
        files: Files = {f"site/{path.relative_to(folder)}": path.read_text() for path in found}
    return Kind([f"COPY site {SITE}"], files)


KINDS: dict[str, Callable[[], Kind]] = {
    "base": Kind,
    "no-python": lambda: Kind([f"RUN rm -r /usr/local/bin {LIBRARY}"]),
    "python35": _python35,
    "arm64": Kind,  # says so in its configuration, and holds nothing
    "banner": lambda: _script(
        "banner", '#!/bin/sh\necho "== a banner =="\necho\nexec "$@"\n', 'ENTRYPOINT ["/banner"]'
    ),
    "exits": lambda: _script(
        "exits", "#!/bin/sh\necho no licence >&2\nexit 3\n", 'ENTRYPOINT ["/exits"]'
    ),
    "tensorflow": _tensorflow,
    "torch": _torch,
    "user": lambda: Kind([f"USER {USER}:{USER}", "WORKDIR /home/worker"]),
}


def name_of(kind: str) -> str:
    return f"localhost/envcheck-test/{kind}:1"


class World(Protocol):
    """An engine with a storage of the tests' own."""

    @property
    def folder(self) -> Path: ...

    def import_tar(
        self, tar: Path, name: str, changes: Sequence[str], architecture: str = ""
    ) -> None:
        """An image of one layer. changes: lines of a Dockerfile."""

    def build(self, name: str, recipe: str, files: Files) -> str:
        """An image from a Dockerfile's text and what it copies: the name."""


def import_base(world: World, base: Path) -> str:
    """The base image in that storage: its name."""
    world.import_tar(base, name_of("files"), _CONFIG)
    return world.build(name_of("base"), f"FROM {name_of('files')}\nRUN ldconfig\n", {})


def make(world: World, kind: str) -> str:
    """An image of that kind in that storage, which has the base: its name."""
    name = name_of(kind)
    if kind == "arm64":
        small = world.folder / "small.tar"
        with tarfile.open(small, "w") as tar:
            base_files.add(tar, "etc", kind=tarfile.DIRTYPE, mode=0o755)
        world.import_tar(small, name, ['CMD ["sh"]'], "arm64")
        return name
    what = KINDS[kind]()
    return world.build(name, "\n".join([f"FROM {name_of('base')}", *what.lines, ""]), what.files)


@contextmanager
def context(folder: Path, recipe: str, files: Files) -> Iterator[str]:
    """A directory to build from."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        for name, content in files.items():
            target = Path(made) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                target.write_text(content)
            elif content.is_dir():
                shutil.copytree(content, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(content, target)
        (Path(made) / "Dockerfile").write_text(recipe)
        yield made
