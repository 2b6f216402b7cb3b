"""kill -9 and a full disk at every change of a file: bundles and a fleet's answers are whole or not there."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from disk_changes import NEVER, changing, full
from test_bundle_hostile import FILES, index
from transaction_parts import die, in_child
from whole import whole

from envcheck.facts import snapshot as snapshots
from envcheck.fleet.folder import FleetFolder, Member
from envcheck.install.bundle import writing

pytestmark = pytest.mark.usefixtures("scratch_home")


def at_every_change(work: Callable[[], object], check: Callable[[int], object]) -> None:
    """check: what has to be so whenever ``work`` was killed or had no room, by how it ended."""
    for happen, again in ((die, False), (full, False), (full, True)):
        number, ended = 0, 0
        while ended != NEVER:
            ended = in_child(lambda: changing(number, happen, work, again))  # noqa: B023
            # 0: where the directory is there that cannot be made
            assert ended in ((NEVER, -signal.SIGKILL) if happen is die else (NEVER, 3, 0))
            check(ended)
            number += 1
        assert number > 3, "there are that many changes at least"


@pytest.mark.parametrize("name", ["bundle", "bundle.tar"])
def test_there_is_never_half_a_bundle(tmp_path: Path, name: str) -> None:
    target = tmp_path / "out" / name
    target.parent.mkdir()

    def contents() -> dict[str, bytes]:
        if target.is_dir():
            files = [path for path in target.rglob("*") if path.is_file()]
            return {str(path.relative_to(target)): path.read_bytes() for path in files}
        with tarfile.open(target) as tar:
            found = {one.name.partition("/")[2]: tar.extractfile(one) for one in tar}
            return {path: file.read() for path, file in found.items() if file is not None}

    def check(ended: int) -> None:
        if ended == 3:
            assert not list(target.parent.iterdir()), "a full disk leaves nothing"
        if target.exists():
            held = contents()
            listed = json.loads(held.pop("bundle.json"))["files"]
            for path, data in held.items():
                assert hashlib.sha256(data).hexdigest() == listed.pop(path)["sha256"]
            assert not listed
        shutil.rmtree(target.parent)
        target.parent.mkdir()

    at_every_change(lambda: writing.write(target, index(), FILES), check)


def test_what_a_fleet_s_machines_answered_stays_whole(tmp_path: Path) -> None:
    folder, data = FleetFolder(tmp_path / "fleet"), snapshots.dump(whole())
    folder.path.mkdir()

    def work() -> None:
        try:
            members = [folder.keep(name, data, []) for name in ("a", "b")]
            folder.write_roster("ansible", [*members, Member(name="c", outcome="unreachable")])
        except OSError:
            raise SystemExit(3) from None

    def check(ended: int) -> None:
        kept = {path.stem: path.read_bytes() for path in folder.path.glob("[!.]*.json")}
        roster = kept.pop("fleet", None)
        assert {*kept.values()} <= {data}
        if roster is not None:
            assert {one.name for one in folder.members() if one.outcome == "answered"} <= {*kept}
        if ended == NEVER:
            assert kept.keys() == {"a", "b"}

    at_every_change(work, check)
