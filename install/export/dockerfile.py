"""The Dockerfile in a bundle: `docker build` of its directory installs it on a plain base."""

from __future__ import annotations

from ... import __version__
from ...data import table
from .. import pylock
from ..catalogue.model import Stack
from ..fit.gpu_rules import needed_driver
from ..lockfile import Lockfile
from . import template


def render(stack: Stack, lock: Lockfile, *, carries_python: bool) -> bytes:
    """carries_python: one that envcheck runs with is in the bundle, so that the base needs none."""
    labels = {
        "org.opencontainers.image.title": lock.stack,
        "org.opencontainers.image.version": lock.release,
        "org.opencontainers.image.description": stack.title,
        "envcheck.stack": lock.stack,
        "envcheck.release": lock.release,
        "envcheck.version": __version__,
        "envcheck.lock": f"sha256:{pylock.digest(lock)}",
    }
    if lock.provided:
        labels["envcheck.provided"] = ",".join(sorted(lock.provided))
    built = {package.file.sha256 for package in lock.packages if package.file.kind == "sdist"}
    builds = [sdist.build for sdist in stack.sdists if sdist.sha256 in built]
    programs = {program for build in builds for program in build.programs}
    (base,) = (row["reference"] for row in table("image_bases") if row["use"] == "wheel")
    text = template.render(
        "Dockerfile.j2",
        what=f"{lock.stack} {lock.release}",
        tag=f"{lock.stack}:{lock.release}".replace("+", "-"),
        driver=_driver(stack, lock.release) if stack.gpu else "",
        base=base,
        packages=[*([] if carries_python else ["python3"]), *sorted(programs)],
        variables=stack.environment,
        labels=labels,
    )
    return text.encode()


def _driver(stack: Stack, release: str) -> str:
    """The driver that the host needs: an image brings none."""
    found = next((one for one in stack.releases if one.release == release), None)
    needed = needed_driver(found) if found else ""
    driver = f"driver {needed} or newer" if needed else "a driver: which is not known"
    return f"{driver}, for CUDA {found.cuda}" if found and found.cuda and needed else driver
