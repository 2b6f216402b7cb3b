"""The name of an installed image leads to how it is started."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from envcheck.install.engine import Start, Wiring
from envcheck.install.start import start_file

REF = "registry.test/tf:1"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "data" / "envcheck" / "envs" / "image-tf"
    own = root / "1-image-0badf00d" / ".envcheck"
    for folder in (own, root / ".envcheck"):
        folder.mkdir(parents=True)
    owner = {"owner": "envcheck", "layout": 1, "created_at": "2026-11-21T00:00:00Z"}
    (root / ".envcheck" / "owner.json").write_bytes(msgspec.json.encode(owner))
    (root / "current").symlink_to("1-image-0badf00d")
    wiring = Wiring(kind="none", arguments=[])
    start = Start(
        engine="podman",
        program="/usr/bin/podman",
        image="sha256:1",
        reference=REF,
        wiring=wiring,
        gpus=0,
    )
    (own / "start.json").write_bytes(msgspec.json.encode(start))


def test_an_image_that_its_engine_knows_by_its_digest_alone() -> None:
    found = start_file.of_image(REF)
    assert found is not None and found.image == "sha256:1"
    assert start_file.of_image(REF, "podman") == found


def test_one_that_another_user_may_have_prepared(tmp_path: Path) -> None:
    (tmp_path / "data" / "envcheck" / "envs" / "image-tf").chmod(0o777)
    assert start_file.of_image(REF) is None


@pytest.mark.parametrize("name", ["registry.test/tf:2", "registry.test/other:1", "UPPER", ""])
def test_another_image(name: str) -> None:
    assert start_file.of_image(name) is None


def test_another_engine() -> None:
    assert start_file.of_image(REF, "docker") is None
