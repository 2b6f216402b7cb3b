"""A bundle on a clean Debian 12 and 13: made here, installed there by the commands that it prints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_stack import stack_file, the_registry
from installing import Home

pytestmark = pytest.mark.slow

# What a user without root types in a root without a network: a shell command, in the home.
_INSIDE = (
    'root=$1 command=$2; mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" || exit 99\n'
    'exec chroot "$root" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/home/ann USER=ann'
    ' setpriv --reuid=ann --regid=ann --init-groups sh -c "cd /home/ann && $command"'
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a stack with a wheel for each Python, from the registry that this machine is configured with."""
    folder = tmp_path_factory.mktemp("maker")
    stack = stack_file(folder / "small.toml", "6.0.3", distribution="pyyaml")
    text = stack.read_text()
    pythons = '["3.10", "3.11", "3.12", "3.13", "3.14"]'
    stack.write_text(re.sub(r"python = \[.*\]", f"python = {pythons}", text))
    made = folder / "small.tar"
    run = Home(folder).envcheck("bundle", stack, "--output", made, *the_registry())
    if run.returncode == 4:
        pytest.skip(f"no package registry is reachable: {run.stderr.decode().splitlines()[-1]}")
    assert run.returncode == 0, run.stderr.decode()
    (folder / "printed").write_text(run.stdout.decode().partition("without a network:\n")[2])
    return made


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def root(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    if os.geteuid():
        pytest.skip("only root makes a root")
    if not all(map(shutil.which, ("debootstrap", "unshare", "chroot", "setpriv"))):
        pytest.skip("no debootstrap on this machine (Debian: apt install debootstrap)")
    folder = tmp_path_factory.mktemp(request.param)
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    mirrors = subprocess.run(targets, capture_output=True, text=True, check=False).stdout.split()
    mirror = [one for one in mirrors if one.rstrip("/").endswith("/debian")][:1]
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", "--include=python3", request.param, folder, *mirror],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"debootstrap could not get {request.param}: {made.stdout.splitlines()[-1:]}")
    folder.chmod(0o755)  # it becomes everybody's "/"
    subprocess.run(["chroot", folder, "useradd", "--create-home", "ann"], check=True)
    yield folder
    shutil.rmtree(folder)


def typed(root: Path, command: str) -> str:
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--net", "--fork", "--propagation", "private",
         "sh", "-c", _INSIDE, "sh", root, command],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 99:
        pytest.skip("this machine lets nobody make name spaces")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_printed_commands_install_it(bundle: Path, root: Path) -> None:
    shutil.copy(bundle, root / "home/ann")
    subprocess.run(["chroot", root, "chown", "-R", "ann", "/home/ann"], check=True)
    printed = (bundle.parent / "printed").read_text().split("\n")
    command = typed(root, " && ".join(line for line in printed if line)).strip()
    assert "Installed and verified: demo 6.0.3" in typed(root, command)
    told = typed(root, f"{command.split()[0]} run python -c 'import yaml; print(yaml.__version__)'")
    assert told == "6.0.3\n"
