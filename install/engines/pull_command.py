"""What each engine is told so that it pulls an image from its registry, or loads it from an archive: pure."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...exit_codes import Cannot
from ..engine import EngineImage, EngineName
from ..registry.image import Image, PullOptions


class PullCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an engine."""

    arguments: list[str]
    variables: dict[str, str] = {}  # beside the user's own
    files: dict[str, str] = {}  # to be written before, by their names in the folder


def pull(held: EngineImage, image: Image, access: PullOptions, folder: Path) -> PullCommand:
    """Have the engine pull ``image`` by its digest; what it writes on the way lies in ``folder``.

    Its own mirrors, blocked registries, signature policy, proxies and logins hold.
    """
    return _PULLS[held.engine](held, image, access, folder)


def load(held: EngineImage, archive: Path, folder: Path) -> PullCommand:
    """Have the engine load an archive, or (not docker) an OCI layout's directory. Raises Cannot."""
    if held.engine in ("podman", "docker"):
        arguments = ["load", "--input", str(archive)]
        return PullCommand(arguments=arguments, variables={"TMPDIR": str(folder)})
    if held.engine == "apptainer":
        source = f"{'oci' if archive.is_dir() else 'oci-archive'}:{archive}"
        arguments = ["build", "--force", held.image_id, source]
        return PullCommand(arguments=arguments, variables=_apptainer_folders(folder))
    raise Cannot(
        f"{held.engine} reads no image archives.",
        "name another engine (--engine podman), or install without --offline",
    )


def _podman(_held: EngineImage, image: Image, access: PullOptions, folder: Path) -> PullCommand:
    insecure = ["--tls-verify=false"] if access.insecure else []
    login = ["--authfile", str(folder / "auth.json")] if access.user else []
    return PullCommand(
        arguments=["pull", *insecure, *login, image.pinned],
        variables={"TMPDIR": str(folder)},
        files={"auth.json": _auth_file(access)} if access.user else {},
    )


def _docker(_held: EngineImage, image: Image, access: PullOptions, folder: Path) -> PullCommand:
    """Which registries may be plain http is the daemon's setting."""
    return PullCommand(
        arguments=["pull", image.pinned],
        variables={"DOCKER_CONFIG": str(folder)} if access.user else {},
        files={"config.json": _auth_file(access)} if access.user else {},
    )


def _apptainer(held: EngineImage, image: Image, access: PullOptions, folder: Path) -> PullCommand:
    variables = _apptainer_folders(folder)
    for prefix in _APPTAINER:
        if access.insecure:
            variables[f"{prefix}_NOHTTPS"] = "1"
        if access.user:
            variables[f"{prefix}_DOCKER_USERNAME"] = access.user
            variables[f"{prefix}_DOCKER_PASSWORD"] = access.password
    return PullCommand(
        arguments=["pull", "--force", held.image_id, f"docker://{image.pinned}"],
        variables=variables,
    )


_APPTAINER = ("APPTAINER", "SINGULARITY")


def _apptainer_folders(folder: Path) -> dict[str, str]:
    return {f"{one}_{name}": str(folder) for one in _APPTAINER for name in ("TMPDIR", "CACHEDIR")}


def _enroot(held: EngineImage, image: Image, access: PullOptions, folder: Path) -> PullCommand:
    """A digest stands where enroot's URIs have the tag; logins are those of its own .credentials."""
    registry, _, repository = image.name.partition("/")
    host = "" if registry == "docker.io" else f"{registry}#"
    variables = {
        "ENROOT_CACHE_PATH": str(folder / "cache"),
        "ENROOT_TEMP_PATH": str(folder),
    }
    if access.insecure:
        variables["ENROOT_ALLOW_HTTP"] = "y"
    source = f"docker://{host}{repository}:{image.manifest.digest}"
    return PullCommand(arguments=["import", "--output", held.image_id, source], variables=variables)


def _auth_file(access: PullOptions) -> str:
    """As `podman login` and `docker login` write it."""
    pair = base64.b64encode(f"{access.user}:{access.password}".encode()).decode()
    return msgspec.json.encode({"auths": {access.registry: {"auth": pair}}}).decode()


_PULLS: dict[EngineName, Callable[[EngineImage, Image, PullOptions, Path], PullCommand]] = {
    "podman": _podman,
    "docker": _docker,
    "apptainer": _apptainer,
    "enroot": _enroot,
}
