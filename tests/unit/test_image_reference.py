"""References to images, as docker reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.exit_codes import UsageError
from envcheck.install.registry.reference import Reference, parse

DIGEST = "sha256:" + "0123456789abcdef" * 4


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
        (f"nvcr.io/x@{DIGEST}", "nvcr.io", "x", "", DIGEST),
        (f"nvcr.io/x:1@{DIGEST}", "nvcr.io", "x", "1", DIGEST),
        (f"ubuntu@{DIGEST}", "docker.io", "library/ubuntu", "", DIGEST),
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
        f"nvcr.io/x@{DIGEST.upper()}",
        f"nvcr.io/x@{DIGEST}@{DIGEST}",
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
