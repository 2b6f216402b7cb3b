"""Horovod, built by envcheck from its source distribution for the TensorFlow beside it, adds up across two
processes (opt-in: pytest -m slow; it downloads TensorFlow and compiles for minutes)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomli
import tomli_w
from cli import environment
from installing import Environment, Home
from processes import PATIENCE

import envcheck.install.catalogue
from envcheck.collector.packaging import horovod

pytestmark = pytest.mark.slow

RELEASE = "2.17.1"  # of tensorflow-cpu: the newest that Horovod 0.28.1 was seen to build for
HOROVOD = "0.28.1"
MINUTES = 30

# Every process contributes its rank plus one, twice; both must see 1 + 2.
ALLREDUCE = """\
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
assert hvd.gloo_built() and not hvd.mpi_built()
mine = tf.constant([float(hvd.rank() + 1)] * 2)
added = hvd.allreduce(mine, op=hvd.Sum).numpy().tolist()
print("rank %d of %d: %s" % (hvd.rank(), hvd.size(), added))
"""


def stack_file(folder: Path) -> Path:
    """A user's own stack: tensorflow-cpu's, with one release, and Horovod beside it."""
    catalogue = Path(envcheck.install.catalogue.__file__).parent / "stacks" / "tensorflow-cpu.toml"
    stack = tomli.loads(catalogue.read_text())
    (release,) = (one for one in stack["releases"] if one["release"] == RELEASE)
    release["extra-requirements"] = [f"horovod=={HOROVOD}"]
    stack |= {"name": "horovod-on-cpu", "releases": [release], "must-pass": ["FRM-001", "PKG-011"]}
    path = folder / "horovod-on-cpu.toml"
    path.write_text(tomli_w.dumps(stack))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    for program in ("cmake", "g++", "make"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing, and Horovod has to be compiled")
    folder = tmp_path_factory.mktemp("horovod")
    home = Home(folder / "home")
    return home.install(
        "--stack", stack_file(folder), "--release", RELEASE, "--python",
        f"{sys.version_info.major}.{sys.version_info.minor}",
        seconds=MINUTES * 60,
    )  # fmt: skip


def test_it_was_built_for_this_tensorflow(made: Environment) -> None:
    installed = made.installed()
    assert str(installed["horovod"]) == HOROVOD
    assert str(installed["tensorflow-cpu"]) == RELEASE
    assert made.doctor["PKG-011"]["outcome"] == "pass"
    assert "built for tensorflow" in made.doctor["PKG-011"]["detail"]
    (package,) = (one for one in made.lock["packages"] if one["name"] == "horovod")
    assert package["sdist"]["hashes"]["sha256"]


def test_what_it_was_built_with_is_read_from_its_file(made: Environment) -> None:
    (folder,) = Path(made.prefix).glob("lib/python3.*/site-packages/horovod/tensorflow")
    result = horovod.extension("tensorflow", str(folder), "mpi_lib*.so")
    assert (result["operations"], result["nccl"]["unavailable"]) == (["gloo"], "absent")


def test_two_processes_add_up(made: Environment, tmp_path: Path) -> None:
    script = tmp_path / "allreduce.py"
    script.write_text(ALLREDUCE)
    done = subprocess.run(
        [made.python, "-m", "horovod.runner.launch", "-np", "2", "-H", "localhost:2", "--gloo",
         made.python, script],
        capture_output=True,
        text=True,
        env=environment(**made.home.variables, PATH=f"{made.prefix}/bin:/usr/bin:/bin"),
        timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    output = set(re.findall(r"rank \d of \d: \[.*?\]", done.stdout))
    assert output == {"rank 0 of 2: [3.0, 3.0]", "rank 1 of 2: [3.0, 3.0]"}
