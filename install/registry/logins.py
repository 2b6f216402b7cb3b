"""User names and passwords for registries: where this user's engines keep them, and NGC_API_KEY.

Nothing is read before a registry asks, and nothing of it is ever shown.
Sources: containers-auth.json(5), docker's documentation of config.json and its credential helpers'
protocol, and NVIDIA's of nvcr.io ($oauthtoken).
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from .. import foreign_json, processes
from .reference import DOCKER_HUB

NGC = "nvcr.io"

_HELPER_SECONDS = 20.0  # to answer: it may have to wake a desktop's key ring
_LARGEST = 1 << 20  # bytes of an auth file
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HUBS = {"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}
_HUB_KEY = "https://index.docker.io/v1/"  # docker's own name of Docker Hub
_IDENTITY = "<token>"  # a helper's user name for an identity token
# Gives the helper its question on stdin: the host's name, which is no secret.
_ASK = 'printf %s "$1" | exec "$2" get'


class Login(msgspec.Struct, kw_only=True):
    """What opens a registry. Its repr says only where it is from."""

    source: str  # "/root/.docker/config.json", "NGC_API_KEY"
    engines: tuple[str, ...] = ()  # that find it by themselves
    user: str = ""
    password: str = ""
    identity_token: str = ""

    def __repr__(self) -> str:
        return f"Login({self.source!r})"


class _StoredLogin(msgspec.Struct, rename="lower"):
    auth: str | None = None
    username: str | None = None
    password: str | None = None
    identitytoken: str | None = None


class _AuthFile(msgspec.Struct, rename="camel"):
    auths: dict[str, _StoredLogin | None] | None = None
    cred_helpers: dict[str, str] | None = None
    creds_store: str | None = None


class _Answered(msgspec.Struct, rename="pascal"):
    """A helper's answer."""

    username: str = ""
    secret: str = ""


class Logins:
    """Safe for threads."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._files: list[tuple[Path, _AuthFile]] | None = None
        self._found: dict[tuple[str, str], Login | None] = {}
        self._lock = threading.Lock()
        self.remarks: list[str] = []  # on files and helpers that do not work, each one sentence

    def __repr__(self) -> str:
        return "Logins()"

    def of(self, registry: str, repository: str = "") -> Login | None:
        """The one for this registry, or for this part of it: the first that is found, as engines do."""
        with self._lock:
            key = registry, repository
            if key not in self._found:
                logins = self._everywhere(registry, repository)
                self._found[key] = next(logins, None)
            return self._found[key]

    def hint(self, registry: str, repository: str = "") -> str:
        """What to do where a registry refuses: it is asked after a 401 or a 403."""
        login = self.of(registry, repository)
        if login is not None and login.identity_token:
            return (
                f"the login for {registry} ({login.source}) is an identity token, which envcheck cannot use;"
                f" log in with a user name and an access token: podman login {registry}"
            )
        if login is not None:
            return f"the credentials for {registry} ({login.source}) are wrong or lack the right"
        ways = [f"log in with podman login {registry} or docker login {registry}"]
        if registry == NGC:
            ways.insert(0, "put an API key of NGC into NGC_API_KEY")
        said = ", or ".join(ways)
        remarks = "".join(f"; {remark}" for remark in self.remarks)
        return f"the image's name may be wrong; if it is not public, {said}{remarks}"

    def _everywhere(self, registry: str, repository: str) -> Iterator[Login]:
        *podmans, dockers = self._places()
        if self._files is None:
            self._files = [(p, f) for p in (*podmans, dockers) if (f := self._read(p)) is not None]
        for path, file in self._files:
            # More asked for than there might be: a helper is only asked once nothing better is there.
            helper = (file.cred_helpers or {}).get(registry) or file.creds_store
            entry = _entry(file.auths or {}, registry, repository)
            for login in (
                self._helped(helper, registry, path) if helper else None,
                self._written(entry, path) if entry else None,
            ):
                if login is not None:
                    everybody = ("podman", "docker", "apptainer")
                    login.engines = everybody if path == dockers else ("podman",)
                    yield login
        key = self._environ.get("NGC_API_KEY", "").strip()
        if registry == NGC and key:
            yield Login(source="NGC_API_KEY", user="$oauthtoken", password=key)

    def _places(self) -> list[Path]:
        """podman's first, then docker's, each as they look for them."""
        say, home = self._environ.get, Path(self._environ.get("HOME", "") or "/")
        named = say("REGISTRY_AUTH_FILE")
        return [
            *([Path(named)] if named else []),
            Path(
                say("XDG_RUNTIME_DIR") or f"/run/containers/{os.getuid()}", "containers/auth.json"
            ),
            Path(say("XDG_CONFIG_HOME") or home / ".config", "containers/auth.json"),
            Path(say("DOCKER_CONFIG") or home / ".docker", "config.json"),
        ]

    def _read(self, path: Path) -> _AuthFile | None:
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST + 1)
            if len(data) > _LARGEST:
                raise ValueError
            return foreign_json.decode(data, _AuthFile) if data.strip() else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._remark(f"{path} cannot be read: {error.strerror}")
        except ValueError:
            self._remark(f"{path} is ignored: it is not an auth file of podman or docker")
        return None

    def _written(self, entry: _StoredLogin, path: Path) -> Login | None:
        """What stands in the file itself."""
        user, password = entry.username or "", entry.password or ""
        if entry.auth:
            try:
                text = base64.b64decode(entry.auth, validate=True).decode()
            except (binascii.Error, ValueError):
                self._remark(f"{path} is ignored in part: one of its entries is not base64")
                return None
            user, _, password = text.rstrip("\0").partition(":")
        identity = entry.identitytoken or ""
        if not (user or identity):
            return None
        return Login(source=str(path), user=user, password=password, identity_token=identity)

    def _helped(self, helper: str, registry: str, path: Path) -> Login | None:
        """What the program docker-credential-HELPER knows."""
        name = f"docker-credential-{helper}"
        found = (
            shutil.which(name, path=self._environ.get("PATH"))
            if _HELPER.fullmatch(helper)
            else None
        )
        if found is None:
            self._remark(f"{path} names the program {name!r}, which is not there")
            return None
        for asked in [_HUB_KEY, DOCKER_HUB] if registry == DOCKER_HUB else [registry]:
            argv = ["/bin/sh", "-c", _ASK, "sh", asked, os.path.abspath(found)]  # noqa: PTH100
            result = processes.run(argv, deadline=_HELPER_SECONDS, env=self._environ)
            try:
                said = foreign_json.decode(result.stdout, _Answered) if result.ok else None
            except ValueError:
                said = None
            if said is not None and said.secret:
                if said.username == _IDENTITY:
                    return Login(source=name, identity_token=said.secret)
                return Login(source=name, user=said.username, password=said.secret)
            if not result.ok and result.code != 1:  # 1: it knows nothing of this registry
                self._remark(f"{name} {result.describe()}")
        return None

    def _remark(self, sentence: str) -> None:
        if sentence not in self.remarks:
            self.remarks.append(sentence)


def _entry(
    auths: Mapping[str, _StoredLogin | None], registry: str, repository: str
) -> _StoredLogin | None:
    """The most particular one: of the repository, of what is above it, of the registry."""
    parts = [registry, *(repository.split("/") if repository else [])]
    for length in range(len(parts), 0, -1):
        entry = auths.get("/".join(parts[:length]))
        if entry is not None and length > 1:
            return entry
    # The registry as a whole, under any of the names that engines have given it over the years.
    for key, entry in auths.items():
        if entry is not None and _host(key) == registry and "/" not in _bare(key):
            return entry
    return None


def _bare(key: str) -> str:
    """ "nvcr.io" of "https://nvcr.io/v1/"; a namespace stays: "nvcr.io/nvidia"."""
    _, separator, rest = key.partition("://")
    if separator:
        return rest.partition("/")[0]
    return re.sub(r"/v[12]/?$", "", key).rstrip("/")


def _host(key: str) -> str:
    host = _bare(key).partition("/")[0]
    return DOCKER_HUB if host in _HUBS else host
