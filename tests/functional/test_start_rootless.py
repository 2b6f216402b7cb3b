"""`envcheck run` as an ordinary user, in rootless podman: files are theirs, inside and outside."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
from rootless import UID, rootless_podman
from started import installed, plain_start


def test_the_callers_uid_is_theirs_inside_and_outside(base_tar: Path) -> None:
    with rootless_podman(base_tar) as user:
        start = plain_start("podman", user.podman, user.image)
        made = installed(user.home, {}, msgspec.structs.replace(start, keep_id=True))
        shutil.chown(made.work, UID, UID)
        script = 'id -u; touch made && touch "$HOME/x" && echo home; exit 3'
        done = user.run(
            [user.python, "-m", "envcheck", "run", "--", "sh", "-c", script],
            cwd=made.work,
        )
        assert (done.returncode, done.stdout) == (3, f"{UID}\nhome\n"), done.stderr
        assert (made.work / "made").stat().st_uid == UID
        assert user.run([user.podman, "ps", "--all", "--quiet"]).stdout == ""
    assert not user.folder.exists()
