"""Stand-ins for NVIDIA's index and the public one: the whole nvidia-tf1 recipe, and the public one's traps.

    recipe = build(tmp_path / "indexes")
    with serve(recipe.nvidia, ...) as nvidia, serve(recipe.public, ...) as public: ...

Names, versions and requirements are NVIDIA's (``nvidia_tables``); what is inside are stand-ins.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nvidia_tables
from packaging.version import Version
from wheel_maker import escaped, sdist, wheel

from envcheck.data import table
from envcheck.install.catalogue.load import load, seed

STANDINS = Path(__file__).parent / "standin_tensorflow"
PLAIN = "py3-none-any"
LINUX = "py3-none-manylinux1_x86_64"

# What the recipe takes from the public index, some of it in versions that break TensorFlow 1.15:
# name → (versions, requirements). A version may name its least Python.
PUBLIC: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "absl-py": (("0.15.0", "1.4.0"), ("six",)),
    "astor": (("0.8.1",), ()),
    "cloudpickle": (("2.2.1",), ()),
    "google-pasta": (("0.2.0",), ("six",)),
    "gast": (("0.3.3", "0.6.0"), ()),
    "grpcio": (("1.48.2", "1.62.0 >=3.7"), ("six>=1.5.2",)),
    "h5py": (("2.10.0", "3.1.0", "3.11.0 >=3.8"), ("numpy>=1.7",)),
    "keras-applications": (("1.0.8",), ("numpy>=1.9.1", "h5py")),
    "keras-preprocessing": (("1.1.2",), ("numpy>=1.9.1", "six>=1.9.0")),
    "markdown": (("3.3.7",), ()),
    "numpy": (
        ("1.16.6", "1.18.5", "1.19.5", "1.21.6 >=3.7", "1.22.4 >=3.8", "1.23.5 >=3.8",
         "1.24.4 >=3.8", "2.0.2 >=3.9"),
        (),
    ),
    "opt-einsum": (("3.3.0",), ("numpy>=1.7",)),
    "protobuf": (("3.17.3", "3.19.6", "3.20.3 >=3.7", "4.24.4 >=3.7"), ()),
    "psutil": (("5.9.8",), ()),
    "pyyaml": (("6.0.1",), ()),
    "cffi": (("1.15.1",), ()),
    "six": (("1.16.0",), ()),
    "tensorboard": (
        ("1.15.0", "2.14.0 >=3.8"),
        ("numpy>=1.12.0", "protobuf>=3.6.0", "six>=1.10.0", "absl-py>=0.4", "grpcio>=1.6.3",
         "markdown>=2.6.8", "setuptools>=41.0.0", "werkzeug>=0.11.15", "wheel>=0.26"),
    ),
    "tensorflow-estimator": (("1.15.1", "1.15.2", "2.14.0"), ()),
    "termcolor": (("1.1.0",), ()),
    "werkzeug": (("2.0.3",), ()),
    "wrapt": (("1.14.1",), ()),
}  # fmt: skip

# Distributions whose modules are looked for by another name than their own.
MODULES = {"protobuf": "google/protobuf", "absl-py": "absl", "google-pasta": "pasta"}

HOROVOD = ("cloudpickle", "psutil", "pyyaml", "cffi>=1.4.0")

# What its code does when a build only asks for its metadata.
TRAP = """\
with open({trace!r}, "a") as trace:
    trace.write({name!r} + "\\n")
raise SystemExit("this is {name}, and nothing of it should have run")
"""


@dataclass
class Recipe:
    nvidia: Path
    public: Path
    trace: Path  # a trap that was built wrote its name there
    months: dict[str, nvidia_tables.Month] = field(default_factory=dict)

    def sprung(self) -> list[str]:
        """The traps whose code ran."""
        return self.trace.read_text().splitlines() if self.trace.exists() else []


def build(
    folder: Path, months: tuple[str, ...] = nvidia_tables.MONTHS, *, payload: int = 20_000
) -> Recipe:
    """Both indexes' files. payload: bytes in each of NVIDIA's libraries."""
    recipe = Recipe(folder / "nvidia", folder / "public", folder / "sprung.txt")
    made: set[tuple[str, str]] = set()
    for name in months:
        recipe.months[name] = month = nvidia_tables.month(name)
        _tensorflow(recipe.nvidia, month, payload)
        for library, versions in month.libraries.items():
            for version in versions:
                if (library, version) not in made:
                    made.add((library, version))
                    _library(recipe.nvidia, library, version, month.python, payload)
    # The same project holds a TensorFlow 2 build, for a Python that has no other.
    wheel(recipe.nvidia, "nvidia-tensorflow", "2.17.0+nv25.2", tags="cp312-cp312-linux_x86_64",
          modules={"tensorflow/__init__.py": '__version__ = "2.17.0+standin"\n'})  # fmt: skip
    for name, (versions, requires) in PUBLIC.items():
        for told in versions:
            version, _, python = told.partition(" ")
            wheel(recipe.public, name, version, requires=requires, requires_python=python,
                  modules=_public_modules(name, version))  # fmt: skip
    _traps(recipe)
    return recipe


def real_files() -> list[str]:
    """What has to do real work: the catalogue's pins for these Pythons and for building gast, and gast."""
    pins = {pin for minor in ("3.6", "3.8") for pin in seed(minor)}
    stack = load("nvidia-tf1")
    pins |= {pin for allowed in stack.sdists for pin in allowed.build.requires}
    files = [_wheel_of(*pin.split("==")) for pin in sorted(pins)]
    return [*files, *(f"{s.name}-{s.version}.tar.gz" for s in stack.sdists if s.name == "gast")]


def _wheel_of(name: str, version: str) -> str:
    # wheel itself was made for both until 0.38.
    both = name == "wheel" and Version(version) < Version("0.38")
    return f"{name}-{version}-{'py2.py3' if both else 'py3'}-none-any.whl"


def add(recipe: Recipe, *files: Path) -> None:
    """Real packages that have to do real work (pip, setuptools), beside the stand-ins."""
    for file in files:
        shutil.copyfile(file, recipe.public / file.name)


def _tensorflow(folder: Path, month: nvidia_tables.Month, payload: int) -> None:
    upstream, _, local = month.version.partition("+nv")
    year, _, number = local.partition(".")
    modules = {
        f"tensorflow/{path.relative_to(STANDINS)}": path.read_text().replace("UPSTREAM", upstream)
        for path in sorted(STANDINS.rglob("*.py"))
    }
    wheel(
        folder,
        "nvidia-tensorflow",
        month.version,
        # Normalised inside, as setuptools writes it; its file name keeps the month's zero.
        inside=f"{upstream}+nv{year}.{int(number)}",
        build=month.build,
        tags=_tags(month.python),
        requires=month.requires,
        extras={"horovod": month.horovod},
        modules=modules,
        payload=payload,
    )


def _library(folder: Path, name: str, version: str, python: str, payload: int) -> None:
    if name == "nvidia-horovod":
        _horovod(folder, version, python)
    else:
        wheel(folder, name, version, tags=LINUX, payload=payload)


def _horovod(folder: Path, version: str, python: str) -> None:
    digits = python.replace(".", "")
    modules = {
        "horovod/__init__.py": f'__version__ = "{version}"\n',
        "horovod/tensorflow/__init__.py": "",
        # The doctor looks for the extension itself; nothing loads this one.
        f"horovod/tensorflow/mpi_lib.cpython-{digits}-x86_64-linux-gnu.so": "a stand-in",
    }
    wheel(folder, "nvidia-horovod", version, tags=_tags(python), requires=HOROVOD, modules=modules)


def _tags(python: str) -> str:
    digits = python.replace(".", "")
    return f"cp{digits}-cp{digits}{'m' if python in ('3.6', '3.7') else ''}-linux_x86_64"


def _public_modules(name: str, version: str) -> dict[str, str]:
    module = MODULES.get(name, escaped(name))
    return {f"{module}/__init__.py": f'__version__ = "{version}"\n'}


def _traps(recipe: Recipe) -> None:
    """What the public index really holds under NVIDIA's names: placeholders, stubs, other CUDA majors."""
    for row in table("pypi_nvidia_names"):
        name = row["name"]
        for version in row["placeholder_versions"].split():
            _trap(recipe, name, version)
        for version in _ends(row["real_versions"]):
            taken = {f"taken_from_the_public_index_{escaped(name)}.py": ""}
            wheel(recipe.public, name, version, tags=LINUX, modules=taken)
    _trap(recipe, "nvidia-tensorrt", "99.0.0", requires=("tensorrt",))
    _trap(recipe, "tensorrt", "11.4.0.106")
    _trap(recipe, "nvidia-pyindex", "1.0.9")


def _ends(real: str) -> Iterator[str]:
    """The first and the last of "12.0.1.189(2022-12-08)..12.9.3.13(2026-10-30) n=24"."""
    versions = [part.partition("(")[0] for part in real.partition(" ")[0].split("..")]
    yield from dict.fromkeys(filter(None, versions))


def _trap(recipe: Recipe, name: str, version: str, requires: tuple[str, ...] = ()) -> None:
    code = TRAP.format(trace=str(recipe.trace), name=f"{name} {version}")
    sdist(recipe.public, name, version, setup=code, modules={}, requires=requires)
