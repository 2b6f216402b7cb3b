"""What a version keeps outside of its directory, without an engine; and what tells an image's version."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from test_transaction import noted, versioned

from envcheck.exit_codes import EnvcheckError, NotPutBack
from envcheck.install.engine import EngineImage
from envcheck.install.engines import engine_storage
from envcheck.install.request import Request
from envcheck.install.transaction import (
    engine_images,
    existing,
    file_list,
    guard,
    layout,
    record,
    removal,
)
from envcheck.install.transaction.layout import Root, Version

A = "23.03-tf1-11111111"
WHEEL = "1.0-py3.11-33333333"
HELD = EngineImage(
    engine="podman",
    program="/usr/bin/podman",
    image_id="sha256:" + "1" * 64,
    tag=f"localhost/envcheck/ngc-tf1:{A}",
    reference="nvcr.io/nvidia/tensorflow@sha256:" + "2" * 64,
    before=False,
)


pytestmark = pytest.mark.usefixtures("scratch_home")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    made = Root(tmp_path / "root")
    guard.claim(made)
    return made


class Asked:
    """Engines that say what they are given, and what they were asked."""

    def __init__(self) -> None:
        self.there = True
        self.refusal: EnvcheckError | None = None
        self.released: list[str] = []

    def has(self, held: EngineImage) -> bool:
        if self.refusal is not None:
            raise self.refusal
        return self.there

    def release(self, held: EngineImage) -> bool:
        if self.refusal is not None:
            raise self.refusal
        self.released.append(held.tag)
        return True


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    monkeypatch.setattr(engine_storage, "has", made.has)
    monkeypatch.setattr(engine_storage, "release", made.release)
    return made


def imaged(root: Root, version_id: str = A, held: EngineImage = HELD, **changes: object) -> Version:
    """A container's version that was verified and is in use."""
    version = versioned(root, version_id)
    version.python.unlink()
    (version.directory / "bin").rmdir()
    for path in version.of_image:
        path.write_text("{}")
    engine_images.hold(version, held)
    file_list.write(version)
    record.write(version, noted(version_id, mode="container", image_bytes=1000, **changes))
    return version


# Names


def test_an_image_s_version_has_its_own_name() -> None:
    digest = "0123456789abcdef" * 4
    assert layout.version_id("23.03", "tf1", digest) == "23.03-tf1-01234567"
    assert layout.version_id("my_tag-1", "image", digest) == "my_tag-1-image-01234567"
    assert layout.version_id("", "image", digest) == "unnamed-image-01234567"
    assert layout.version_id("../a/b:c", "image", digest) == "a-b-c-image-01234567"
    longest = layout.version_id("t" * 128, "image", digest)
    assert len(longest) + len("-1000") < 128, "it is an engine's tag, too"
    for name in ("23.03-tf1-01234567", "untagged-image-01234567-2", longest, WHEEL):
        assert layout.is_id(name)
    for name in ("23.03-tf1-0123456", "23.03-gpu-01234567", "tf1-01234567", "x-image-01234567-"):
        assert not layout.is_id(name)


# Holding and letting go


def test_the_engine_lets_go_before_the_directory_goes(root: Root, engines: Asked) -> None:
    version = imaged(root)
    engines.refusal = NotPutBack("the image is in use", "podman rm x")
    with pytest.raises(NotPutBack, match="in use"):
        removal.discard(root, version)
    assert version.held.is_file(), "the next run knows what to remove"
    engines.refusal = None
    removal.discard(root, version)
    assert engines.released == [HELD.tag] and not version.directory.exists()


def test_each_version_has_a_name_of_its_own(root: Root, tmp_path: Path) -> None:
    tags = [engine_images.tag_of(place, A) for place in (root.path, tmp_path / "other" / "root")]
    assert tags[0] != tags[1] and all(tag.endswith(f":{A}") for tag in tags)
    version = imaged(root, held=msgspec.structs.replace(HELD, tag=tags[0]))
    assert engine_images.of(version) is not None
    assert engine_images.brought([version, version]) == [f"{HELD.reference} in podman"]


# The record and the wish


def test_the_mode_is_part_of_the_wish(root: Root, engines: Asked) -> None:
    asked = Request(mode="container", release="23.03")
    imaged(root, request=asked, inputs=record.inputs(asked), engine="podman")
    assert existing.in_root(root, asked) is not None
    assert existing.in_root(root, Request(release="23.03")) is None
    digest = "1" * 64
    assert existing.in_root(root, Request(mode="container", flavour="tf1"), digest) is not None
    assert existing.in_root(root, Request(mode="container", image="x.test/a"), digest) is not None
    assert existing.in_root(root, Request(mode="container", engine="podman"), digest) is not None
    assert existing.in_root(root, Request(mode="container", engine="docker"), digest) is None
    assert existing.in_root(root, Request(), digest) is None
