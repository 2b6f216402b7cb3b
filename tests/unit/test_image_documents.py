"""References to images, manifests, indexes and configs as bytes; and the lock as a file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.exit_codes import Cannot, CouldNotLook, EnvcheckError, UsageError
from envcheck.install.registry import documents
from envcheck.install.registry.documents import ImageIndex, ImageManifest
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import Reference, parse

ASKED = parse("nvcr.io/nvidia/tensorflow:23.03-tf1-py3")
OCI = "application/vnd.oci.image"
MANIFEST = f"{OCI}.manifest.v1+json"
DIGEST = "sha256:" + "a" * 64


def layer(number: int = 1, **changes: Any) -> dict[str, Any]:
    kind = f"{OCI}.layer.v1.tar+gzip"
    return {"mediaType": kind, "digest": f"sha256:{number:064x}", "size": number, **changes}


def config_data(**changes: Any) -> bytes:
    rootfs = {"type": "layers", "diff_ids": [DIGEST]}
    return json.dumps(
        {"architecture": "amd64", "os": "linux", "rootfs": rootfs, **changes}
    ).encode()


CONFIG = config_data(config={"Env": ["A=b=c", "D"], "Entrypoint": None, "Cmd": ["x"]})


def manifest_data(of: bytes = CONFIG, **changes: Any) -> bytes:
    described = {
        "mediaType": f"{OCI}.config.v1+json",
        "digest": documents.digest_of(of),
        "size": len(of),
    }
    whole = {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": [layer()]}
    return json.dumps({**whole, **changes}).encode()


def read(data: bytes) -> ImageIndex | ImageManifest:
    return documents.read(ASKED, data)


def image(config: bytes = CONFIG) -> Image:
    data = manifest_data(config)
    found = read(data)
    assert isinstance(found, ImageManifest)
    return documents.image_of(ASKED, documents.digest_of(data), data, found, config, "x86_64")


@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        (b"", CouldNotLook, "not valid JSON"),
        (b"<html>", CouldNotLook, "not valid JSON"),
        (b"\xff\xfe", CouldNotLook, "not UTF-8"),
        (b"[]", CouldNotLook, "Expected `object`"),
        (b"{}", CouldNotLook, "config"),
        (b"[" * 100_000, CouldNotLook, "sends a broken"),
        (b'{"schemaVersion": 1, "fsLayers": []}', CouldNotLook, "config"),
        (manifest_data(manifests=[]), CouldNotLook, "at once"),
        (manifest_data(layers=[]), CouldNotLook, "layers"),
        (manifest_data(layers=[layer(digest="sha256:12")]), CouldNotLook, "layers[0].digest"),
        (manifest_data(layers=[layer(digest="sha512:" + "a" * 128)]), CouldNotLook, "digest"),
        (manifest_data(layers=[layer(digest=DIGEST + "/../x")]), CouldNotLook, "digest"),
        (manifest_data(layers=[layer(digest=DIGEST + "\n")]), CouldNotLook, "digest"),
        (manifest_data(layers=[layer(size=-1)]), CouldNotLook, "layers[0].size"),
        (manifest_data(layers=[layer(size=1 << 60)]), CouldNotLook, "layers[0].size"),
        (manifest_data(layers=[layer(size="7")]), CouldNotLook, "layers[0].size"),
        (manifest_data(layers=[layer()] * 1001), CouldNotLook, "layers"),
        (manifest_data(config={**layer(), "mediaType": "application/vnd.x"}), UsageError,
         "not a container image"),
        (b'{"schemaVersion": 2, "manifests": [{}]}', CouldNotLook, "index"),
    ],
)  # fmt: skip
def test_nonsense_is_one_sentence(data: bytes, kind: type[EnvcheckError], says: str) -> None:
    with pytest.raises(kind) as caught:
        read(data)
    text = str(caught.value)
    assert says in text and "nvcr.io" in text and "\n" not in text and len(text) < 400


@pytest.mark.parametrize(
    ("config", "kind", "says"),
    [
        (b"{", CouldNotLook, "config"),
        (b"{}", Cannot, "not name its platform"),
        (config_data(os="windows"), Cannot, "only for windows/amd64"),
        (config_data(architecture="arm64"), Cannot, "only for linux/arm64"),
        (config_data(config={"Env": "A"}), CouldNotLook, "config.Env"),
    ],
)
def test_a_config_that_does_not_fit(config: bytes, kind: type[EnvcheckError], says: str) -> None:
    with pytest.raises(kind) as caught:
        image(config)
    assert says in str(caught.value) and "nvcr.io" in str(caught.value)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,manifestslayers012 ').map(str.encode))
def test_anything_is_read_or_refused(data: bytes) -> None:
    try:
        read(data)
    except EnvcheckError as error:
        assert "nvcr.io" in str(error)


HASH = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("ubuntu", "docker.io", "library/ubuntu", "latest", ""),
        ("ubuntu:22.04", "docker.io", "library/ubuntu", "22.04", ""),
        ("docker.io/ubuntu", "docker.io", "library/ubuntu", "latest", ""),
        ("index.docker.io/ubuntu:1", "docker.io", "library/ubuntu", "1", ""),
        ("tensorflow/tensorflow:2.15.0-gpu", "docker.io", "tensorflow/tensorflow", "2.15.0-gpu", ""),
        ("nvcr.io/nvidia/tensorflow:23.03-tf1-py3", "nvcr.io", "nvidia/tensorflow",
         "23.03-tf1-py3", ""),
        ("nvcr.io/x", "nvcr.io", "x", "latest", ""),
        ("localhost/x", "localhost", "x", "latest", ""),
        ("localhost:5000/x:1", "localhost:5000", "x", "1", ""),
        ("host:5000/a/b/c", "host:5000", "a/b/c", "latest", ""),
        ("[::1]:5000/x:1", "[::1]:5000", "x", "1", ""),
        ("127.0.0.1:5000/x", "127.0.0.1:5000", "x", "latest", ""),
        ("Host/x", "Host", "x", "latest", ""),
        (f"nvcr.io/x@{HASH}", "nvcr.io", "x", "", HASH),
        (f"nvcr.io/x:1@{HASH}", "nvcr.io", "x", "1", HASH),
        (f"ubuntu@{HASH}", "docker.io", "library/ubuntu", "", HASH),
        ("a.b/c__d/e-f--g.h:T_.-x", "a.b", "c__d/e-f--g.h", "T_.-x", ""),
    ],
)  # fmt: skip
def test_what_docker_understands(
    text: str, registry: str, repository: str, tag: str, digest: str
) -> None:
    found = parse(text)
    assert found == Reference(registry=registry, repository=repository, tag=tag, digest=digest)
    assert parse(str(found)) == found
    assert found.name == f"{registry}/{repository}" and found.wanted == (digest or tag)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nvcr.io/",
        "nvcr.io//x",
        "a/b/",
        "nvcr.io/NVIDIA/tensorflow",
        "Ubuntu",
        "nvcr.io/a..b",
        "nvcr.io/-a",
        "nvcr.io/a___b",
        "nvcr.io/../etc",
        "nvcr.io/x:",
        "nvcr.io/x:.1",
        "nvcr.io/x:" + "a" * 129,
        "nvcr.io/x@",
        "nvcr.io/x@sha256:abc",
        f"nvcr.io/x@{HASH.upper()}",
        f"nvcr.io/x@{HASH}@{HASH}",
        "nvcr.io/" + "a/" * 130 + "b",
        "a_b.c/x",
        "host:port/x",
        "0123456789abcdef" * 4,
        "nvcr.io/a b",
        "nvcr.io/a\nb",
        "nvcr.io#nvidia/tensorflow:1",
        "docker://nvcr.io/nvidia/tensorflow:1",
        "https://nvcr.io/x",
    ],
)
def test_what_names_no_image_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 800


@given(st.text(max_size=60) | st.text(alphabet="ab.:/@-_A0[]#", max_size=30))
def test_anything_is_an_image_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except UsageError:
        return
    assert parse(str(found)) == found
