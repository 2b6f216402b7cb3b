"""The engines of this machine as the probe sees them, and what is chosen and found on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_images import served
from podman import PodmanWorld
from processes import ran

from envcheck import collection
from envcheck.facts.base import known
from envcheck.install.engines import command, starting
from envcheck.install.engines.choose import choose


def test_what_may_be_set_is_what_a_start_can_have(
    podman_world: PodmanWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every limit, size and init of the Start is one that this podman really takes."""
    for name, value in podman_world.variables.items():
        monkeypatch.setenv(name, value)
    snapshot = collection.collect(only=["containers", "host", "pci"]).snapshot
    choice = choose("podman", snapshot)
    engine = choice.engine
    assert known(engine.storage_path) == str(podman_world.storage)
    with served(tmp_path / "registry") as image:
        there = f"sha256:{podman_world.id_of(podman_world.image('base'))}"
        start = starting.start(choice, there, image.reference, [], snapshot, {})
    here = command.Here(uid=0, gid=0, network="none", check=False)
    done = ran(command.argv(start, ["sh", "-c", "ulimit -l; ulimit -s"], here), text=True)
    assert done.returncode == 0, done.stderr
    asked = [limit in start.ulimits for limit in ("memlock", "stack")]
    assert asked[0] is (done.stdout.split()[0] == "unlimited")
    assert bool(start.remarks) is not (all(asked) and start.init)
