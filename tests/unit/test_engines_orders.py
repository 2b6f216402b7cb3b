"""How engines take an image, and what their words mean."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from envcheck.exit_codes import Cannot
from envcheck.install.engine import EngineImage, EngineName
from envcheck.install.engines import image_inspect, orders
from envcheck.install.engines.troubles import TROUBLES, told
from envcheck.install.registry.image import Blob, Image

FOLDER = Path("/r/.envcheck/tmp/engine")
DIGEST = "sha256:" + "a" * 64


@dataclass
class Mirror:
    host: str = "127.0.0.1:5005"
    repository: str = "secret/nvidia/tensorflow"


def image(reference: str = "nvcr.io/nvidia/tensorflow:23.03-tf1-py3") -> Image:
    blob = Blob(digest=DIGEST, size=3, media_type="m")
    return Image(
        reference=reference,
        digest=DIGEST,
        manifest=blob,
        config=blob,
        layers=[],
        architecture="amd64",
        manifest_text="{}",
        config_text="{}",
    )


def held(engine: EngineName) -> EngineImage:
    return EngineImage(
        engine=engine,
        program=f"/usr/bin/{engine}",
        image_id="/r/image.sif" if engine in ("apptainer", "enroot") else DIGEST,
        tag="localhost/envcheck/ngc-tf1:1",
        reference=image().pinned,
        before=False,
    )


def pull(engine: EngineName) -> orders.Order:
    return orders.pull(held(engine), image(), Mirror(), FOLDER)


def test_podman_keeps_the_name_and_asks_the_mirror_alone_without_a_login() -> None:
    order = pull("podman")
    assert order.arguments[-1] == f"nvcr.io/nvidia/tensorflow@{DIGEST}"
    assert order.arguments[order.arguments.index("--authfile") + 1] == str(FOLDER / "auth.json")
    assert order.files["auth.json"].strip() == "{}"
    registries = order.files["registries.conf"]
    assert 'prefix = "nvcr.io/nvidia/tensorflow"' in registries
    assert 'location = "127.0.0.1:5005/secret/nvidia/tensorflow"' in registries
    assert order.variables["CONTAINERS_REGISTRIES_CONF"] == str(FOLDER / "registries.conf")
    assert order.variables["TMPDIR"] == str(FOLDER)


def test_docker_pulls_by_digest_from_loopback() -> None:
    name = f"127.0.0.1:5005/secret/nvidia/tensorflow@{DIGEST}"
    assert pull("docker").arguments == ["pull", "--quiet", name]


def test_apptainer_writes_a_file_without_https_and_without_the_users_cache() -> None:
    order = pull("apptainer")
    source = f"docker://127.0.0.1:5005/secret/nvidia/tensorflow@{DIGEST}"
    assert order.arguments == ["pull", "--force", "/r/image.sif", source]
    assert order.variables["APPTAINER_NOHTTPS"] == "1"
    assert {order.variables[f"APPTAINER_{name}"] for name in ("TMPDIR", "CACHEDIR")} == {
        str(FOLDER)
    }


def test_enroot_writes_a_file_and_names_the_image_by_its_tag() -> None:
    order = pull("enroot")
    source = "docker://127.0.0.1:5005#secret/nvidia/tensorflow:23.03-tf1-py3"
    assert order.arguments == ["import", "--output", "/r/image.sif", source]
    assert order.variables["ENROOT_ALLOW_HTTP"] == "y"
    assert order.variables["ENROOT_CONFIG_PATH"].startswith(str(FOLDER))


def test_archives() -> None:
    archive = Path("/a/image.tar")
    for engine in ("podman", "docker"):
        order = orders.load(held(engine), archive, FOLDER)  # type: ignore[arg-type]
        assert order.arguments == ["load", "--quiet", "--input", "/a/image.tar"]
    built = orders.load(held("apptainer"), archive, FOLDER).arguments
    assert built == ["build", "--force", "/r/image.sif", "oci-archive:///a/image.tar"]
    with pytest.raises(Cannot, match="enroot reads no image archives"):
        orders.load(held("enroot"), archive, FOLDER)


# (engine, what it said, what it means, a word of the hint)
SAID = [
    (
        "podman",
        'Error: writing blob: storing blob to file "/var/tmp/storage123/1": write'
        " /var/tmp/storage123/1: no space left on device",
        "there is no space left for podman at /var/tmp/storage123/1",
        "podman system df",
    ),
    (
        "podman",
        'Error: writing blob: adding layer with blob "sha256:0a": Error processing tar file(exit status 1):'
        " open /etc/group: no space left on device",
        "there is no space left in podman's storage",
        "podman info",
    ),
    (
        "docker",
        "failed to register layer: Error processing tar file(exit status 1): no space left on device",
        "there is no space left in docker's storage",
        "docker system df",
    ),
    (
        "docker",
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/…",
        "this user may not talk to docker's server",
        "usermod",
    ),
    (
        "docker",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?",
        "docker's server does not answer",
        "systemctl start docker",
    ),
    (
        "podman",
        "Error: image used by 3e4ffee635c1d1a31453810e1c3c88276a20a572a149ea56138e148bbc30d188: image"
        " is in use by a container: consider listing external containers",
        "a container of podman's uses the image (3e4ffee635c1d1a31453810e1c3c88276a20a572",
        "podman rm 3e4ffee635c1",
    ),
    (
        "docker",
        "Error response from daemon: conflict: unable to remove repository reference"
        ' "localhost/x:1" (must force) - container 0123456789ab is using its referenced image 9e9b',
        "a container of docker's uses the image (0123456789ab)",
        "docker rm 0123456789ab",
    ),
    (
        "podman",
        "Error: Source image rejected: Running image docker://x is rejected by policy.",
        "podman's policy.json rejects the image",
        "policy.json",
    ),
    (
        "podman",
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
        "podman knows no CDI device nvidia.com/gpu=all",
        "nvidia-ctk cdi list",
    ),
    (
        "podman",
        "Error: runc: runc create failed: error setting rlimit type 7: operation not permitted",
        "podman may not raise resource limits here",
        "install again",
    ),
    (
        "podman",
        'Error: unsupported manifest media type "application/x"',
        "podman does not know the format of this image's manifest",
        "newer podman",
    ),
]


@pytest.mark.parametrize(("engine", "said", "meaning", "hint"), SAID)
def test_an_engines_words_become_a_sentence(
    engine: str, said: str, meaning: str, hint: str
) -> None:
    sentence, advice = told(engine, said)
    assert sentence.startswith(meaning), sentence
    assert hint in advice


def test_every_pattern_leaves_no_brace_behind() -> None:
    for trouble in TROUBLES:
        fill = {"engine": "podman", "what": ""}
        assert "{" not in trouble.sentence.format_map(fill) + trouble.hint.format_map(fill)


def test_words_that_nobody_knows_are_the_engines_own_last_ones_without_the_secret() -> None:
    said = "Trying to pull 127.0.0.1:5/s3cret/x...\nError: s3cret went wrong\n\n"
    assert told("podman", said, "s3cret") == ("podman says: … went wrong", "")
    assert told("podman", "") == ("podman says: it said nothing", "")
    assert len(told("podman", "x" * 5000)[0]) < 400


def test_what_an_engine_prints_of_an_image() -> None:
    podman = '[{"Id": "03dd", "RepoTags": ["localhost/base:1"], "RepoDigests": null}]'
    docker = '[{"Id": "sha256:03dd", "RepoTags": [], "RepoDigests": ["a@sha256:1"]}]'
    assert image_inspect.read(podman) == image_inspect.Stored(
        id="sha256:03dd", tags=["localhost/base:1"]
    )
    assert image_inspect.read(docker) == image_inspect.Stored(
        id="sha256:03dd", digests=["a@sha256:1"]
    )
    for nothing in ("[]", "", "{}", "[1]"):
        assert image_inspect.read(nothing) is None
