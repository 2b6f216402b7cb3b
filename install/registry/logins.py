"""User names and passwords for registries: from the auth files of podman and docker, and NGC_API_KEY.

Nothing is read before a registry asks, and no password is ever shown.
Sources: containers-auth.json(5), docker's documentation of config.json and of credential helpers, and
NVIDIA's of nvcr.io ($oauthtoken).
"""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ... import json_text
from .. import processes
from .reference import DOCKER_HUB

NGC = "nvcr.io"

_HELPER_SECONDS = 20.0  # a helper may have to unlock a desktop's key ring
_LARGEST = 1 << 20  # bytes of an auth file
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HUB_KEY = "https://index.docker.io/v1/"  # docker's own name of Docker Hub
_IDENTITY = "<token>"  # a helper's user name for an identity token, which docker alone can use
_ASK = 'printf %s "$1" | exec "$2" get'  # the registry's name on stdin, as the protocol has it


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """A user name and a password. Its repr shows only where it is from."""

    source: str  # "/root/.docker/config.json", "NGC_API_KEY"
    engines: tuple[str, ...] = ()  # that find it by themselves
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.source!r})"


class _AuthEntry(msgspec.Struct):
    auth: str = ""


class _AuthFile(msgspec.Struct, rename="camel"):
    auths: dict[str, _AuthEntry | None] = {}
    cred_helpers: dict[str, str] = {}
    creds_store: str = ""


class _HelperAnswer(msgspec.Struct, rename="pascal"):
    username: str = ""
    secret: str = ""


class Logins:
    """Looks logins up, each once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._found: dict[tuple[str, str], Login | None] = {}

    def __repr__(self) -> str:
        return "Logins()"

    def of(self, registry: str, repository: str = "") -> Login | None:
        """The login for this registry, or for this part of it: the first that engines would find."""
        key = registry, repository
        if key not in self._found:
            self._found[key] = next(self._all(registry, repository), None)
        return self._found[key]

    def hint(self, registry: str, repository: str = "") -> str:
        """What to do after a 401 or a 403."""
        if login := self.of(registry, repository):
            return f"the credentials for {registry} ({login.source}) are wrong or lack the right"
        key = "put an API key of NGC into NGC_API_KEY, or " if registry == NGC else ""
        return (
            f"the image's name may be wrong; if it is not public, {key}log in with podman login {registry} or"
            f" docker login {registry}"
        )

    def _all(self, registry: str, repository: str) -> Iterator[Login]:
        for path, engines in self._places():
            file = _read(path)
            helper = file.cred_helpers.get(registry) or file.creds_store
            asked = self._from_helper(helper, registry) if helper else None
            source = f"docker-credential-{helper}" if asked else str(path)
            if found := asked or _stored(file, registry, repository):
                yield Login(source=source, engines=engines, user=found[0], password=found[1])
        key = self._environ.get("NGC_API_KEY", "").strip()
        if registry == NGC and key:
            yield Login(source="NGC_API_KEY", user="$oauthtoken", password=key)

    def _places(self) -> list[tuple[Path, tuple[str, ...]]]:
        """The auth files in the engines' order, and which engines read each."""
        get, home = self._environ.get, Path(self._environ.get("HOME", "") or "/")
        runtime = get("XDG_RUNTIME_DIR") or f"/run/containers/{os.getuid()}"
        config = get("XDG_CONFIG_HOME") or home / ".config"
        podman = [Path(folder, "containers/auth.json") for folder in (runtime, config)]
        if named := get("REGISTRY_AUTH_FILE"):
            podman.insert(0, Path(named))
        docker = Path(get("DOCKER_CONFIG") or home / ".docker", "config.json")
        return [*((path, ("podman",)) for path in podman), (docker, ("podman", "docker"))]

    def _from_helper(self, helper: str, registry: str) -> tuple[str, str] | None:
        """Ask the program docker-credential-HELPER."""
        name, path = f"docker-credential-{helper}", self._environ.get("PATH")
        program = shutil.which(name, path=path) if _HELPER.fullmatch(helper) else None
        if program is None:
            return None
        key = _HUB_KEY if registry == DOCKER_HUB else registry
        argv = ["/bin/sh", "-c", _ASK, "sh", key, os.path.abspath(program)]  # noqa: PTH100
        result = processes.run(argv, deadline=_HELPER_SECONDS, env=self._environ)
        try:
            answer = json_text.read(result.stdout if result.ok else b"{}", _HelperAnswer)
        except ValueError:
            return None
        if answer.secret and answer.username != _IDENTITY:
            return answer.username, answer.secret
        return None


def _read(path: Path) -> _AuthFile:
    """An auth file; one that is broken or unreadable counts as empty, as it does for the engines' pulls."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        return _AuthFile() if len(data) > _LARGEST else json_text.read(data, _AuthFile)
    except (OSError, ValueError):
        return _AuthFile()


def _stored(file: _AuthFile, registry: str, repository: str) -> tuple[str, str] | None:
    """The login in the file itself, by its most specific entry."""
    parts = [registry, *(repository.split("/") if repository else [])]
    names = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    names += [f"https://{registry}", _HUB_KEY if registry == DOCKER_HUB else registry]
    entry = next(filter(None, map(file.auths.get, names)), _AuthEntry())
    try:
        text = base64.b64decode(entry.auth, validate=True).decode()
    except ValueError:
        return None
    user, _, password = text.rstrip("\0").partition(":")
    return (user, password) if user and password else None
