"""`envcheck bundle` and `--offline`: all of it in one place, and from there without a network."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import planted_modules
import pytest
from alone import ALONE
from cli import environment
from demo_stack import MINOR, Demo, demo, sentence, stack_file, the_registry
from installing import Home
from processes import PATIENCE, ran
from wheel_maker import stand_ins, wheel

from envcheck.install.catalogue.load import seed
from envcheck.install.export import own_wheel


def alone(
    home: Home, *argv: str | Path, code: int = 0, **changes: str
) -> subprocess.CompletedProcess[bytes]:
    result = ran([*ALONE, *map(str, argv)], env=environment(**(home.variables | changes)))
    assert result.returncode == code, result.stderr.decode() + result.stdout.decode()
    return result


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """With stand-ins for what envcheck itself needs, too."""
    with demo(tmp_path_factory.mktemp("demo")) as running:
        for name, version in stand_ins(own_wheel.build().requires):
            wheel(running.files, name, version)
        running.index.refresh()
        yield running


@pytest.fixture(scope="module")
def bundle(shop: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    made = folder / "demo bundle"
    run = Home(folder / "home").envcheck("bundle", *shop.selection, "--output", made)
    assert run.returncode == 0, run.stderr.decode()
    assert f"sh '{made.name}'/setup.sh" in run.stdout.decode()
    return made


def test_the_manifest_lists_every_file_with_its_hash(bundle: Path) -> None:
    report = json.loads((bundle / "bundle.json").read_bytes())
    files = {str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file()}
    assert files == {*report["files"], "bundle.json"}
    for name, listed in report["files"].items():
        data = (bundle / name).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (listed["sha256"], listed["size"])
    assert (report["stack"], report["release"], report["python"]) == ("demo", "2.0", MINOR)
    assert MINOR in report["pythons"]
    assert stat.S_IMODE((bundle / "setup.sh").stat().st_mode) & stat.S_IXUSR
    assert any(name.startswith("envcheck/uv-") for name in report["files"])


def test_it_installs_without_a_network(bundle: Path, tmp_path: Path, no_network: None) -> None:
    home = Home(tmp_path / "home")
    plan = alone(home, sys.executable, "-m", "envcheck", "install", "--plan", "--offline", bundle)
    output = plan.stdout.decode()
    assert "\n  copy        " in output and "download" not in output
    assert not (home.folder / "cache" / "envcheck" / "downloads").exists()
    install = [sys.executable, "-m", "envcheck", "install", "--yes", "--format", "json"]
    done = json.loads(alone(home, *install, "--offline", bundle).stdout)
    assert done["result"] == "installed"
    prefix = Path(done["environment"]["prefix"])
    assert subprocess.run([prefix / "bin/python", "-c", "import demo_lib"], check=True)
    again = json.loads(alone(home, *install, "--offline", bundle).stdout)
    assert again["result"] == "already"


def test_a_damaged_file_is_named_with_both_hashes(bundle: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(bundle, tmp_path / "copy"))
    (file,) = broken.glob("files/demo_lib-*.whl")
    right = hashlib.sha256(file.read_bytes()).hexdigest()
    data = bytearray(file.read_bytes())
    data[1000] ^= 1
    file.write_bytes(data)
    home = Home(tmp_path / "home")
    text = sentence(home.envcheck("install", "--offline", broken, "--yes"), 2)
    assert file.name in text and right in text and hashlib.sha256(data).hexdigest() in text
    assert not home.root("demo").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--output", "/"], "this exists already"),
        (["--output", "/nowhere-at-all/x"], "there is no directory /nowhere-at-all"),
        (["--output", "x.tar.gz"], "a directory or a plain .tar"),
        ([], "--output tensorflow.tar"),
        (["--output", "x", "--python", "3"], "this is not a version of Python"),
        (["--output", "x", "--for", "/nowhere.json"], "/nowhere.json: No such file"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], word: str) -> None:
    result = Home(tmp_path).envcheck("bundle", *arguments)
    assert result.returncode in (2, 3)
    assert word in result.stderr.decode() and "Traceback" not in result.stderr.decode()


def test_envchecks_own_wheel_is_right(tmp_path: Path) -> None:
    """From this checkout, and again from where it was unpacked."""
    own = own_wheel.build()
    assert own == own_wheel.build()
    with zipfile.ZipFile(io.BytesIO(own.data)) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
        (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
        rows = list(csv.reader(archive.read(record).decode().splitlines()))
    assert sorted(name for name, _hash, _size in rows) == sorted(names)
    assert {"envcheck/install/pipeline.py", "envcheck/data/gpus.csv"} <= set(names)
    assert any(name.endswith("stacks/tensorflow.toml") for name in names)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from envcheck.install.export import own_wheel\n"
        "assert own_wheel.__file__.startswith(sys.argv[1]), own_wheel.__file__\n"
        "made = own_wheel.build(); print(made.sha256, *made.requires)"
    )
    result = subprocess.run(
        [sys.executable, "-P", "-c", code, tmp_path / "site"],
        check=True, capture_output=True, env=environment(), timeout=PATIENCE, cwd=tmp_path,
    )  # fmt: skip
    digest, *requires = result.stdout.decode().split()
    assert digest == own.sha256 and requires == own.requires


@pytest.mark.slow
def test_setup_brings_envcheck_to_a_bare_machine(tmp_path: Path, no_network: None) -> None:
    """With real packages from the configured registry, then with nothing but Python and the bundle."""
    stack = stack_file(tmp_path / "small.toml", "2.5.1", distribution="absl-py")
    maker = Home(tmp_path / "maker")
    made = tmp_path / "a bundle"
    run = maker.envcheck(
        "bundle", "--stack", stack, "--python", sys.executable, "--output", made,
        *the_registry(),
    )  # fmt: skip
    if run.returncode == 4:
        pytest.skip(f"no package registry is reachable: {run.stderr.decode().splitlines()[-1]}")
    assert run.returncode == 0, run.stderr.decode()
    home = Home(tmp_path / "home")
    python = Path(sys.executable).resolve()
    planted = planted_modules.plant(tmp_path / "planted")
    script = ["env", f"PYTHONPATH={planted}", "sh", made / "setup.sh"]
    result = alone(home, *script, PYTHON=str(python))
    assert planted_modules.ran(planted) == []
    command = result.stdout.decode().strip()
    assert command.endswith(f"install --mode wheel --offline '{made}'")
    done = alone(home, "sh", "-c", f"{command} --yes --format json")
    assert json.loads(done.stdout)["result"] == "installed"
    assert b"already" in alone(home, "sh", "-c", f"{command} --format json").stdout
    assert seed(MINOR)[0].partition("==")[2] in str(list(made.glob("files/pip-*.whl")))
