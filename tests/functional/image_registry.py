"""Debian's docker-registry on loopback, and images that are pushed into it without any engine.

with serve_registry(tmp_path / "registry") as registry:
    pushed = registry.push("team/small", "1", [layer({"etc/hello": b"hello"})])
    registry.host              # "127.0.0.1:PORT"
    pushed.digest              # "sha256:…" of the manifest
    registry.requests()        # what was asked: method, path, status
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from certificates import Certificates
from processes import PATIENCE, ran

PROGRAM = shutil.which("docker-registry")
OCI = "application/vnd.oci.image"
DOCKER = "application/vnd.docker"
TYPES = {
    # manifest, config, layer (gzip), index
    "oci": (f"{OCI}.manifest.v1+json", f"{OCI}.config.v1+json", f"{OCI}.layer.v1.tar+gzip",
            f"{OCI}.index.v1+json"),
    "docker": (f"{DOCKER}.distribution.manifest.v2+json", f"{DOCKER}.container.image.v1+json",
               f"{DOCKER}.image.rootfs.diff.tar.gzip",
               f"{DOCKER}.distribution.manifest.list.v2+json"),
}  # fmt: skip


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    status: int


@dataclass(frozen=True)
class Pushed:
    """What is in the registry now."""

    repository: str
    digest: str  # "sha256:…", of the manifest or the index
    body: bytes  # of the manifest or the index, to the byte
    media_type: str
    config: bytes = b""
    layers: Sequence[bytes] = ()  # as they are on the way
    platform: Mapping[str, str] = field(default_factory=dict)


class Registry:
    """A running one."""

    def __init__(
        self,
        port: int,
        tls: Certificates | None,
        account: tuple[str, str] | None,
        log: Path,
        address: str,
    ) -> None:
        self.port = port
        self.host = f"{address}:{port}"
        self._tls = tls
        self.account = account
        self.url = f"{'https' if tls else 'http'}://{self.host}"
        self._log = log

    def push(
        self,
        repository: str,
        tag: str,
        layers: Sequence[bytes],
        *,
        config: Mapping[str, Any] | None = None,
        architecture: str = "amd64",
        style: str = "oci",
        variant: str = "",
    ) -> Pushed:
        """Push one image. layers: gzipped tars. config: what stands under "config" in the image's.

        tag: "" leaves it by its digest alone. style: "oci" or "docker".
        """
        built = image(
            layers, config=config, architecture=architecture, style=style, variant=variant
        )
        for blob in (*built.layers, built.config):
            self.push_blob(repository, blob)
        self.push_manifest(repository, tag or built.digest, built.body, built.media_type)
        return Pushed(**{**vars(built), "repository": repository})

    def push_index(
        self, repository: str, tag: str, images: Sequence[Pushed], *, style: str = "oci"
    ) -> Pushed:
        """Push an index of images that are in this repository."""
        body, media_type = index(images, style=style)
        digest = digest_of(body)
        self.push_manifest(repository, tag or digest, body, media_type)
        return Pushed(repository, digest, body, media_type)

    def push_blob(self, repository: str, data: bytes) -> str:
        """Its digest."""
        digest = digest_of(data)
        with self._ask("POST", f"/v2/{repository}/blobs/uploads/", b"") as answer:
            place = answer.headers["Location"]
        glue = "&" if "?" in place else "?"
        self._ask("PUT", f"{place}{glue}digest={digest}", data, "application/octet-stream").close()
        return digest

    def push_manifest(self, repository: str, reference: str, body: bytes, media_type: str) -> None:
        self._ask("PUT", f"/v2/{repository}/manifests/{reference}", body, media_type).close()

    def copy(self, source: str, repository: str, tag: str) -> None:
        """Copy an image with skopeo: from "containers-storage:…", "oci-archive:…", "docker-archive:…"."""
        skopeo = shutil.which("skopeo")
        if skopeo is None:
            pytest.skip("there is no skopeo program on this machine")
        argv = [skopeo, "copy", "--quiet", "--dest-tls-verify=false"]
        if self.account:
            argv += ["--dest-creds", ":".join(self.account)]
        target = f"docker://{self.host}/{repository}:{tag}"
        ran([*argv, source, target], check=True)

    def requests(self) -> list[Request]:
        """Everything that was asked so far, and answered."""
        found = re.findall(r'"([A-Z]+) (\S+) HTTP/[0-9.]+" (\d{3})', self._log.read_text())
        return [Request(method, path, int(status)) for method, path, status in found]

    def _ask(self, method: str, path: str, body: bytes | None, kind: str = "") -> Any:
        url = path if "://" in path else self.url + path
        headers = {"Content-Type": kind} if kind else {}
        if self.account:
            word = base64.b64encode(":".join(self.account).encode()).decode()
            headers["Authorization"] = f"Basic {word}"
        request = urllib.request.Request(url, body, headers, method=method)
        try:
            return _opener(self._tls).open(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from None


@contextmanager
def serve_registry(
    folder: Path,
    *,
    tls: Certificates | None = None,
    htpasswd: tuple[str, str] | None = None,
    address: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[Registry]:
    """Serve on the port, or a free one; skips the test where there is no docker-registry.

    folder: for its files. htpasswd: (user, password) that it asks for.
    """
    if PROGRAM is None:
        pytest.skip(
            "there is no docker-registry on this machine (Debian: apt install docker-registry)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "registry.log"
    for _ in range(3):  # somebody else may take the port before it does
        registry = Registry(port or _free_port(), tls, htpasswd, log, address)
        configuration = _configuration(folder, registry.host, tls, htpasswd)
        process = _start(configuration, log)
        try:
            if _answers(registry, process, tls):
                yield registry
                return
        finally:
            _stop(process)
    raise AssertionError(log.read_text())


def layer(files: Mapping[str, bytes]) -> bytes:
    """A gzipped tar of these files, the same bytes every time. A name ending in "/" is a folder."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name.rstrip("/"))
            entry.mode = 0o644
            entry.size = len(data)
            if name.endswith("/"):
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), 1, mtime=0)


def image(
    layers: Sequence[bytes],
    *,
    config: Mapping[str, Any] | None = None,
    architecture: str = "amd64",
    style: str = "oci",
    variant: str = "",
) -> Pushed:
    """An image's documents, in no registry yet."""
    manifest_type, config_type, layer_type, _ = TYPES[style]
    platform = {"architecture": architecture, "os": "linux"}
    if variant:
        platform["variant"] = variant
    described = json.dumps({
        **platform, "created": "2026-01-02T03:04:05Z", "config": dict(config or {}),
        "rootfs": {"type": "layers", "diff_ids": [digest_of(gzip.decompress(b)) for b in layers]},
    }).encode()  # fmt: skip
    body = json.dumps({
        "schemaVersion": 2, "mediaType": manifest_type,
        "config": descriptor(described, config_type),
        "layers": [descriptor(blob, layer_type) for blob in layers],
    }, indent=3).encode()  # fmt: skip
    return Pushed("", digest_of(body), body, manifest_type, described, tuple(layers), platform)


def index(images: Sequence[Pushed], *, style: str = "oci") -> tuple[bytes, str]:
    """An index's bytes, and their media type."""
    media_type = TYPES[style][3]
    manifests = [
        {**descriptor(one.body, one.media_type), "platform": dict(one.platform)} for one in images
    ]
    body = {"schemaVersion": 2, "mediaType": media_type, "manifests": manifests}
    return json.dumps(body, indent=3).encode(), media_type


def descriptor(data: bytes, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest_of(data), "size": len(data)}


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def _configuration(
    folder: Path, host: str, tls: Certificates | None, htpasswd: tuple[str, str] | None
) -> Path:
    lines = [
        "version: 0.1",
        "log: {level: warn, accesslog: {disabled: false}}",
        f"storage: {{filesystem: {{rootdirectory: '{folder / 'data'}'}}, delete: {{enabled: true}}}}",
        "http:",
        f"  addr: {host}",
    ]
    if tls:
        lines.append(f"  tls: {{certificate: '{tls.certificate}', key: '{tls.key}'}}")
    if htpasswd:
        _accounts(folder / "accounts", *htpasswd)
        lines += ["auth:", f"  htpasswd: {{realm: tests, path: '{folder / 'accounts'}'}}"]
    path = folder / "registry.yml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _accounts(path: Path, user: str, password: str) -> None:
    htpasswd = shutil.which("htpasswd")
    if htpasswd is None:
        pytest.skip("there is no htpasswd on this machine (Debian: apt install apache2-utils)")
    argv = [htpasswd, "-inBC", "5", user]
    path.write_bytes(ran(argv, input=password.encode(), check=True).stdout)


def _start(configuration: Path, log: Path) -> subprocess.Popen[bytes]:
    assert PROGRAM is not None
    setpriv = shutil.which("setpriv")  # it ends with the tests, also where they are killed
    tied = [setpriv, "--pdeathsig", "TERM"] if setpriv else []
    with log.open("wb") as output:
        return subprocess.Popen(
            [*tied, PROGRAM, "serve", str(configuration)],
            env={"OTEL_TRACES_EXPORTER": "none", "PATH": "/usr/bin:/bin"},
            cwd=configuration.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


def _answers(
    registry: Registry, process: subprocess.Popen[bytes], tls: Certificates | None
) -> bool:
    url = f"{registry.url}/v2/"
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit and process.poll() is None:
        try:
            _opener(tls).open(url, timeout=PATIENCE).close()
        except urllib.error.HTTPError as error:
            error.close()  # 401: it is there
        except OSError:
            time.sleep(0.02)
            continue
        return process.poll() is None
    return False


def _opener(tls: Certificates | None) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if tls is not None:
        context = ssl.create_default_context(cafile=str(tls.authority))
        context.load_cert_chain(tls.certificate, tls.key)
        handlers.append(urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
