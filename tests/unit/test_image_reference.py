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
    ("text", "what"),
    [
        ("", "'' is not a part"),
        ("nvcr.io/", "'' is not a part"),
        ("nvcr.io//x", "'' is not a part"),
        ("a/b/", "'' is not a part"),
        ("nvcr.io/NVIDIA/tensorflow", "'NVIDIA' is not a part of a name: a-z (no capital letters)"),
        ("Ubuntu", "'Ubuntu' is not a part"),
        ("nvcr.io/a..b", "'a..b' is not a part"),
        ("nvcr.io/-a", "'-a' is not a part"),
        ("nvcr.io/a___b", "'a___b' is not a part"),
        ("nvcr.io/../etc", "'..' is not a part"),
        ("nvcr.io/x:", "'' is not a tag"),
        ("nvcr.io/x:.1", "'.1' is not a tag"),
        ("nvcr.io/x:" + "a" * 129, "is not a tag"),
        ("nvcr.io/x@", "'' is not sha256: and 64"),
        ("nvcr.io/x@sha256:abc", "'sha256:abc' is not sha256: and 64"),
        (f"nvcr.io/x@{DIGEST.upper()}", "is not sha256: and 64"),
        (f"nvcr.io/x@{DIGEST}@{DIGEST}", "is not sha256: and 64"),
        ("nvcr.io/" + "a/" * 130 + "b", "more than 255 characters"),
        ("a_b.c/x", "not a registry's host name"),
        ("host:port/x", "not a registry's host name"),
        ("0123456789abcdef" * 4, "an image's id"),
        ("nvcr.io/a b", "'a b' is not a part"),
        ("nvcr.io/a\nb", r"'a\nb' is not a part"),
        ("nvcr.io#nvidia/tensorflow:1", "'nvcr.io#nvidia' is not a registry's host name"),
        ("docker://nvcr.io/nvidia/tensorflow:1", "without docker://"),
        ("https://nvcr.io/x", "without https://"),
    ],
)
def test_what_names_no_image_is_said(text: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 800


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        parse("https://user:secret@nvcr.io/x")
    assert "secret" not in str(caught.value) + caught.value.hint


@given(st.text(max_size=60) | st.text(alphabet="ab.:/@-_A0[]#", max_size=30))
def test_anything_is_an_image_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except UsageError:
        return
    assert parse(str(found)) == found
