"""What each engine is told, so that it pulls or loads an image."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from envcheck.exit_codes import Cannot
from envcheck.install.engine import EngineImage, EngineName
from envcheck.install.engines import pull_command
from envcheck.install.engines.pull_command import PullCommand
from envcheck.install.registry.image import Blob, Image, PullOptions

FOLDER = Path("/r/.envcheck/tmp/engine")
DIGEST = "sha256:" + "a" * 64
PINNED = f"nvcr.io/nvidia/tensorflow@{DIGEST}"
NGC = PullOptions(registry="nvcr.io", user="$oauthtoken", password="s3cret")


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


def pull(engine: EngineName, access: PullOptions | None = None) -> PullCommand:
    return pull_command.pull(held(engine), image(), access or PullOptions(), FOLDER)


def test_podman_pulls_by_digest_with_its_own_settings() -> None:
    command = pull("podman")
    assert command.arguments == ["pull", PINNED] and not command.login
    assert command.variables == {"TMPDIR": str(FOLDER)}
    assert "--tls-verify=false" in pull("podman", PullOptions(insecure=True)).arguments


def test_docker_pulls_by_digest_with_its_own_settings() -> None:
    assert pull("docker") == PullCommand(arguments=["pull", PINNED])


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_a_login_that_the_engine_does_not_know_is_in_a_file_and_in_no_argument(
    engine: EngineName,
) -> None:
    command = pull(engine, NGC)
    assert "s3cret" not in str(command.arguments) + str(command.variables) + repr(NGC)
    assert str(FOLDER) in str(command.arguments) + str(command.variables)
    auth = json.loads(command.login)["auths"]["nvcr.io"]["auth"]
    assert base64.b64decode(auth) == b"$oauthtoken:s3cret"


def test_apptainer_writes_a_file_and_leaves_nothing_in_the_users_cache() -> None:
    command = pull("apptainer")
    assert command.arguments == ["pull", "--force", "/r/image.sif", f"docker://{PINNED}"]
    assert {command.variables[f"APPTAINER_{name}"] for name in ("TMPDIR", "CACHEDIR")} == {
        str(FOLDER)
    }
    assert "APPTAINER_NOHTTPS" not in command.variables
    given = pull("apptainer", NGC).variables
    assert given["APPTAINER_DOCKER_PASSWORD"] == "s3cret"


def test_enroot_writes_a_file_and_has_the_digest_where_a_tag_stands() -> None:
    command = pull("enroot")
    source = f"docker://nvcr.io#nvidia/tensorflow:{DIGEST}"
    assert command.arguments == ["import", "--output", "/r/image.sif", source]
    assert "ENROOT_ALLOW_HTTP" not in command.variables
    assert pull("enroot", PullOptions(insecure=True)).variables["ENROOT_ALLOW_HTTP"] == "y"


def test_archives(tmp_path: Path) -> None:
    archive = Path("/a/image.tar")
    for engine in ("podman", "docker"):
        command = pull_command.load(held(engine), archive, FOLDER)  # type: ignore[arg-type]
        assert command.arguments == ["load", "--input", "/a/image.tar"]
    built = pull_command.load(held("apptainer"), archive, FOLDER).arguments
    assert built == ["build", "--force", "/r/image.sif", "oci-archive:/a/image.tar"]
    layout = pull_command.load(held("apptainer"), tmp_path, FOLDER).arguments
    assert layout[-1] == f"oci:{tmp_path}"
    with pytest.raises(Cannot, match="enroot reads no image archives"):
        pull_command.load(held("enroot"), archive, FOLDER)
