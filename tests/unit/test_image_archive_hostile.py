"""Archives of images that nobody should write: each is one sentence, and nothing else is read."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from image_registry import Pushed, descriptor, digest_of, image, layer

from envcheck.exit_codes import Cannot, UsageError
from envcheck.install.images.archive import ImageArchive

Files = dict[str, bytes]
OCI = "application/vnd.oci.image"
IMAGE = image([layer({"etc/one": b"one"}), layer({"etc/two": b"two"})], config={"User": "7"})
OTHER = image([layer({"etc/three": b"three"})])
ARM = image([layer({"etc/arm": b"arm"})], architecture="arm64")


def blobs(*images: Pushed) -> Files:
    data = [b for one in images for b in (one.body, one.config, *one.layers)]
    return {f"blobs/{digest_of(b).replace(':', '/')}": b for b in data}


def entry(one: Pushed, **more: Any) -> dict[str, Any]:
    return {**descriptor(one.body, one.media_type), **more}


def layout(*entries: dict[str, Any], **files: bytes) -> Files:
    index = json.dumps({"schemaVersion": 2, "manifests": list(entries)}).encode()
    return {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index, **files}


def tar(path: Path, files: Files, *odd: tarfile.TarInfo) -> str:
    with tarfile.open(path, "w") as out:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))
        for member in odd:
            out.addfile(member)
    return str(path)


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def refused(place: str, words: str, machine: str = "x86_64") -> str:
    with pytest.raises(UsageError, match=words) as told:
        ImageArchive(place, machine)
    assert str(told.value).startswith(place) and "\n" not in str(told.value)
    return str(told.value)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "an archive.tar"


NAMED = {"annotations": {"org.opencontainers.image.ref.name": "nvcr.io/team/small:1"}}


def test_a_plain_one_is_read(place: Path) -> None:
    made = tar(place, {**layout(entry(IMAGE, **NAMED)), **blobs(IMAGE)})
    read = ImageArchive(made, "x86_64")
    assert (read.image.reference, read.image.user) == ("nvcr.io/team/small:1", "7")
    assert read.image.digest == digest_of(IMAGE.body)


def test_one_for_each_platform(place: Path) -> None:
    """An index in the index, of which this archive may hold some images alone; and what is no image."""
    inner = json.dumps({"manifests": [
        entry(IMAGE, platform=dict(IMAGE.platform)), entry(ARM, platform=dict(ARM.platform)),
        entry(OTHER, platform={"architecture": "unknown", "os": "unknown"}),
    ]}).encode()  # fmt: skip
    outer = layout(descriptor(inner, f"{OCI}.index.v1+json"))
    named = {f"blobs/{digest_of(inner).replace(':', '/')}": inner}
    both = tar(place, {**outer, **named, **blobs(IMAGE, ARM, OTHER)})
    for machine, one in (("x86_64", IMAGE), ("aarch64", ARM)):
        read = ImageArchive(both, machine)
        assert read.image.manifest.digest == digest_of(one.body)
    with pytest.raises(
        Cannot, match="for linux/amd64, linux/arm64, and this machine is linux/s390x"
    ):
        ImageArchive(both, "s390x")
    alone = tar(place, {**outer, **named, **blobs(ARM)})
    with pytest.raises(Cannot, match="for linux/arm64, and this machine is linux/amd64"):
        ImageArchive(alone, "x86_64")


def test_links_lead_nowhere(place: Path) -> None:
    digest = f"blobs/{digest_of(IMAGE.config).replace(':', '/')}"
    files = {**layout(entry(IMAGE)), **blobs(IMAGE)}
    del files[digest]
    for target in ("/etc/passwd", "../../../etc/passwd", digest.rpartition("/")[2], "."):
        refused(tar(place, files, link(digest, target)), "is not in it")
    refused(tar(place, files, link(digest, "/etc/passwd", tarfile.LNKTYPE)), "is not in it")
    refused(tar(place, files, link(digest, "", tarfile.FIFOTYPE)), "is not in it")


def test_a_name_that_is_there_twice(place: Path) -> None:
    """Whoever unpacks it takes the last, whoever reads it in place may take the first."""
    member = tarfile.TarInfo("./index.json")
    refused(tar(place, {**layout(entry(IMAGE)), **blobs(IMAGE)}, member), "is in it twice")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.update({"index.json": b"[]"}), "not an image's archive"),
        (lambda f: f.update({"index.json": b"[" * 100_000}), "not an image's archive"),
        (lambda f: f.update({"index.json": b"\xff"}), "not an image's archive"),
        (lambda f: f.update({"index.json": b" " * (5 << 20)}), "index.json has 5242880 bytes"),
        (lambda f: f.update(layout()), "no images for linux/amd64 are in it"),
        (lambda f: f.update(layout(*[entry(IMAGE)] * 300)), "more than 256 manifests"),
        (
            lambda f: f.update(layout(entry(IMAGE, digest="sha256:../../x"))),
            "not an image's archive",
        ),
        (lambda f: f.update(layout(entry(IMAGE, size=-1))), "not an image's archive"),
        (lambda f: f.update(layout(entry(IMAGE, size=7))), "and should have 7"),
        (lambda f: f.pop("index.json"), "no index.json"),
    ],
)
def test_documents_that_are_wrong(place: Path, change: Callable[[Files], Any], words: str) -> None:
    files = {**layout(entry(IMAGE)), **blobs(IMAGE)}
    change(files)
    refused(tar(place, files), words)


def test_what_is_no_archive(tmp_path: Path) -> None:
    whole = Path(tar(tmp_path / "whole", {**layout(entry(IMAGE)), **blobs(IMAGE)})).read_bytes()
    wheels = Path(tar(tmp_path / "w", {"wheels/pylock.toml": b""})).read_bytes()
    for name, data, words in (
        ("text", b"hello", "this is not a whole tar"),
        ("empty", b"", "this is not a whole tar"),
        ("gz", gzip.compress(whole), "not a whole tar"),
        ("zstd", b"\x28\xb5\x2f\xfd0000", "not a whole tar"),
        ("wheels", wheels, "no index.json"),
    ):
        (tmp_path / name).write_bytes(data)
        refused(str(tmp_path / name), words)
    refused(str(tmp_path / "nothing-there"), "No such file")
    os.mkfifo(tmp_path / "fifo")  # would wait for ever; a device would never end
    for place in (tmp_path, tmp_path / "fifo", Path("/dev/zero")):
        refused(str(place), "this is not a file")
