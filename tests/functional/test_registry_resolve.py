"""Tag → digest → image against a real registry: plain, TLS, with a log-in, and what it has not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import certificates
import msgspec
import pytest
from image_registry import Registry, digest_of, layer, serve_registry
from registry_home import QUICK, believe, log_in, settle

from envcheck.exit_codes import Cannot, CouldNotLook, UsageError
from envcheck.install.network.session import Session
from envcheck.install.registry.client import RegistryClient
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import parse

ACCOUNT = ("somebody", "pa:ss word")
LAYERS = [layer({"etc/": b"", "etc/hello": b"hello"}), layer({"etc/more": b"more" * 1000})]
CONFIG = {"Entrypoint": ["/entry"], "Cmd": ["bash"], "Env": ["A=1", "B=x=y"], "User": "1000",
          "Labels": {"version": "23.03"}}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with serve_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


def resolved(text: str, machine: str = "x86_64") -> Image:
    with Session(pause=QUICK) as session:
        return RegistryClient(session).resolve(parse(text), machine)


@pytest.mark.parametrize("style", ["oci", "docker"])
def test_an_image_is_described_to_the_byte(plain: Registry, style: str) -> None:
    pushed = plain.push(f"team/{style}", "1.0", LAYERS, config=CONFIG, style=style)
    image = resolved(f"{plain.host}/team/{style}:1.0")
    assert image.digest == image.manifest.digest == pushed.digest
    assert (image.manifest_text.encode(), image.config_text.encode()) == (
        pushed.body,
        pushed.config,
    )
    assert [blob.digest for blob in image.layers] == [digest_of(blob) for blob in LAYERS]
    assert image.download_bytes == sum(map(len, LAYERS))
    assert image.architecture == "amd64" and image.created_at == "2026-01-02T03:04:05Z"
    assert (image.entrypoint, image.command, image.user) == (["/entry"], ["bash"], "1000")
    assert image.environment == {"A": "1", "B": "x=y"} and image.labels == {"version": "23.03"}
    assert image.pinned == f"{plain.host}/team/{style}@{pushed.digest}"
    assert resolved(image.pinned) == msgspec.structs.replace(image, reference=image.pinned)


@pytest.mark.parametrize("style", ["oci", "docker"])
def test_of_an_index_this_machine_s_image_is_taken(plain: Registry, style: str) -> None:
    name = f"team/many-{style}"
    ours = plain.push(name, "", LAYERS[:1], style=style)
    arm = plain.push(name, "", LAYERS[1:], architecture="arm64", variant="v8", style=style)
    many = plain.push_index(name, "latest", [arm, ours], style=style)
    image = resolved(f"{plain.host}/{name}")
    assert (image.digest, image.manifest.digest) == (many.digest, ours.digest)
    assert resolved(f"{plain.host}/{name}", "aarch64").manifest.digest == arm.digest
    assert resolved(f"{plain.host}/{name}@{many.digest}").manifest.digest == ours.digest
    with pytest.raises(Cannot, match=r"not exist for linux/ppc64le.* linux/arm64, linux/amd64"):
        resolved(f"{plain.host}/{name}", "ppc64le")


def test_an_unknown_name_and_an_unknown_digest(plain: Registry) -> None:
    with pytest.raises(UsageError, match="has no tag 1 of team/nothing"):
        resolved(f"{plain.host}/team/nothing:1")
    plain.push("team/something", "1", LAYERS)
    digest = digest_of(b"nothing")
    with pytest.raises(UsageError, match=f"has no digest {digest} of team/something"):
        resolved(f"{plain.host}/team/something@{digest}")


def test_tls_by_an_authority_that_is_kept_for_the_registry_alone(
    tmp_path: Path, home: Path
) -> None:
    tls = certificates.make(tmp_path / "tls")
    with serve_registry(tmp_path / "registry", tls=tls, htpasswd=ACCOUNT) as registry:
        pushed = registry.push("team/secret", "1", LAYERS)
        name = f"{registry.host}/team/secret:1"
        with pytest.raises(CouldNotLook, match=f"certificate of {registry.host} cannot be trusted"):
            resolved(name)
        believe(home, registry.host, tls.authority)
        with pytest.raises(CouldNotLook, match="answers 401 Unauthorized") as caught:
            resolved(name)
        assert f"podman login {registry.host}" in caught.value.hint
        wrong = log_in(home, registry.host, ACCOUNT[0], "another")
        with pytest.raises(CouldNotLook, match="401") as caught:
            resolved(name)
        assert str(wrong) in caught.value.hint and "another" not in caught.value.hint
        log_in(home, registry.host, *ACCOUNT)
        assert resolved(name).digest == pushed.digest
