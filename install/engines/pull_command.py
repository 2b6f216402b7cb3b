"""What each engine is told so that it pulls an image from its registry, or loads it from an archive: pure."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec

from ...exit_codes import Cannot
from ..engine import EngineImage
from ..registry.image import Image, PullOptions

LOGIN = "config.json"  # in the folder: as `podman login` and `docker login` write it
_APPTAINER = ("APPTAINER", "SINGULARITY")


class PullCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an engine."""

    arguments: list[str]
    variables: dict[str, str] = {}  # beside the user's own
    login: str = ""  # what LOGIN has to hold before


def pull(held: EngineImage, image: Image, access: PullOptions, folder: Path) -> PullCommand:
    """Have the engine pull ``image`` by its digest; what it writes on the way lies in ``folder``.

    Its own mirrors, blocked registries, signature policy, proxies and logins hold.
    """
    if held.engine == "apptainer":
        return _apptainer(held, image, access, folder)
    if held.engine == "enroot":
        return _enroot(held, image, access, folder)
    login = _login(access) if access.user else ""
    if held.engine == "docker":  # which registries may be plain http is the daemon's setting
        variables = {"DOCKER_CONFIG": str(folder)} if login else {}
        return PullCommand(arguments=["pull", image.pinned], variables=variables, login=login)
    options = ["--tls-verify=false"] if access.insecure else []
    options += ["--authfile", str(folder / LOGIN)] if login else []
    return PullCommand(
        arguments=["pull", *options, image.pinned], variables={"TMPDIR": str(folder)}, login=login
    )


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


def _apptainer(held: EngineImage, image: Image, access: PullOptions, folder: Path) -> PullCommand:
    variables = _apptainer_folders(folder)
    for prefix in _APPTAINER:
        if access.insecure:
            variables[f"{prefix}_NOHTTPS"] = "1"
        if access.user:
            variables[f"{prefix}_DOCKER_USERNAME"] = access.user
            variables[f"{prefix}_DOCKER_PASSWORD"] = access.password
    arguments = ["pull", "--force", held.image_id, f"docker://{image.pinned}"]
    return PullCommand(arguments=arguments, variables=variables)


def _apptainer_folders(folder: Path) -> dict[str, str]:
    return {f"{one}_{name}": str(folder) for one in _APPTAINER for name in ("TMPDIR", "CACHEDIR")}


def _enroot(held: EngineImage, image: Image, access: PullOptions, folder: Path) -> PullCommand:
    """A digest stands where enroot's URIs have the tag; logins are those of its own .credentials."""
    registry, _, repository = image.name.partition("/")
    host = "" if registry == "docker.io" else f"{registry}#"
    variables = {"ENROOT_CACHE_PATH": str(folder / "cache"), "ENROOT_TEMP_PATH": str(folder)}
    if access.insecure:
        variables["ENROOT_ALLOW_HTTP"] = "y"
    source = f"docker://{host}{repository}:{image.manifest.digest}"
    return PullCommand(arguments=["import", "--output", held.image_id, source], variables=variables)


def _login(access: PullOptions) -> str:
    pair = base64.b64encode(f"{access.user}:{access.password}".encode()).decode()
    return msgspec.json.encode({"auths": {access.registry: {"auth": pair}}}).decode()
