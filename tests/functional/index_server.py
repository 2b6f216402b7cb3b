"""A package index on loopback with real HTTP semantics: nginx where it is installed, else the same in Python.

with serve(folder_of_wheels, tmp_path / "index") as index:
    index.url          # "http://127.0.0.1:PORT/simple/"
    index.requests()   # what was asked: method, path, status, bytes sent, range
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

from certificates import Certificates
from index_site import JSON_TYPE, Offer, Site
from processes import PATIENCE
from python_server import Log, PythonServer

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


@dataclass(frozen=True, kw_only=True)
class Access:
    """How the index is reached."""

    user: str = ""  # basic auth
    password: str = ""
    tls: Certificates | None = None
    rate: int = 0  # bytes per second and connection for files; 0: as fast as it goes


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    status: int
    sent: int  # bytes of the body
    range: str
    accept: str
    agent: str


class Server(Protocol):
    def stop(self) -> None: ...


class Index:
    """A running index."""

    def __init__(self, site: Site, access: Access, port: int, log: Path) -> None:
        self.site = site
        self.access = access
        self.port = port
        self._log = log
        self._fences = 0
        scheme = "https" if access.tls else "http"
        self.origin = f"{scheme}://127.0.0.1:{port}"
        self.url = f"{self.origin}/simple/"

    @property
    def url_with_credentials(self) -> str:
        account = f"{quote(self.access.user, '')}:{quote(self.access.password, '')}@"
        return self.url.replace("://", f"://{account}", 1)

    def refresh(self) -> None:
        """After files were added to the folder, or replaced."""
        self.site.write()

    def requests(self) -> list[Request]:
        """Everything asked so far, in order of completion."""
        self._fences += 1
        fence = f"/fence/{self._fences}"
        _ask(f"{self.origin}{fence}", self.access.tls)
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            lines = self._log.read_text().splitlines()
            told = [_request(line) for line in lines if line.endswith("}")]
            if any(request.path == fence for request in told):
                return [request for request in told if not request.path.startswith("/fence/")]
            time.sleep(0.01)
        raise AssertionError("the index does not write its log")

    def asked(self, part: str) -> list[Request]:
        """Those whose path contains ``part``."""
        return [request for request in self.requests() if part in request.path]


@contextmanager
def serve(
    files: Path,
    folder: Path,
    *,
    offer: Offer | None = None,
    access: Access | None = None,
    nginx: bool | None = None,
) -> Iterator[Index]:
    """Serve the wheels and sdists in ``files``; ``folder`` is for the index's own files.

    nginx: None takes it where it is installed.
    """
    offer, access = offer or Offer(), access or Access()
    site = Site(files, folder / "site", offer)
    site.write()
    log = folder / "access.log"
    log.touch()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        port: int = listening.getsockname()[1]
        server = _start(nginx, listening, site, access, log)
        try:
            index = Index(site, access, port, log)
            _ask(f"{index.origin}/fence/0", access.tls)
            yield index
        finally:
            server.stop()


def _request(line: str) -> Request:
    record = json.loads(line)
    return Request(**{**record, "path": unquote(record["path"].partition("?")[0])})


def _start(
    nginx: bool | None, listening: socket.socket, site: Site, access: Access, log: Path
) -> Server:
    if nginx is None:
        nginx = NGINX is not None
    if nginx:
        return NginxServer(listening, site, access, log)
    account = f"{access.user}:{access.password}" if access.user else ""
    answers_json = site.offer.json
    return PythonServer(
        listening, site.root, Log(log), account, access.tls, access.rate, answers_json
    )


def _ask(url: str, tls: Certificates | None) -> None:
    """One request that is no part of the test; any answer is good."""
    context = ssl.create_default_context(cafile=str(tls.authority)) if tls else None
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    opener = urllib.request.build_opener(*handlers)
    try:
        opener.open(url, timeout=PATIENCE).close()
    except urllib.error.HTTPError as error:
        error.close()


CONFIGURATION = """
daemon off;
worker_processes 1;
{user}
pid nginx.pid;
error_log error.log warn;
events {{ worker_connections 256; }}
http {{
    client_body_temp_path temporary; proxy_temp_path temporary; fastcgi_temp_path temporary;
    uwsgi_temp_path temporary; scgi_temp_path temporary;
    log_format told escape=json
        '{{"method":"$request_method","path":"$request_uri","status":$status,"sent":$body_bytes_sent,'
        '"range":"$http_range","accept":"$http_accept","agent":"$http_user_agent"}}';
    access_log "{log}" told;
    sendfile on;
    types {{ text/html html; {json_type} json; application/octet-stream whl gz zip metadata; }}
    map $http_accept $page {{ default index.html; {map} }}
    server {{
        listen 127.0.0.1:{port}{ssl};
        {certificates}
        root {root};
        absolute_redirect off;
        location /fence/ {{ return 204; }}
        location /simple/ {{
            {auth}
            add_header Vary Accept;
            rewrite ^(?<place>.*)/$ $place/$page break;
            if (-d $request_filename) {{ return 301 $uri/; }}
        }}
        location /files/ {{ {auth} {rate} }}
    }}
}}
"""


class NginxServer:
    """nginx with one worker, with a configuration of its own, on a socket that is already bound."""

    def __init__(self, listening: socket.socket, site: Site, access: Access, log: Path) -> None:
        assert NGINX is not None
        folder = log.parent
        configuration = folder / "nginx.conf"
        configuration.write_text(self._configuration(folder, listening, site, access, log))
        number = listening.fileno()
        # It ends with the tests, also where they are killed.
        setpriv = shutil.which("setpriv")
        tied = [setpriv, "--pdeathsig", "TERM"] if setpriv else []
        self._process = subprocess.Popen(
            [
                *tied,
                NGINX,
                "-p",
                str(folder),
                "-c",
                str(configuration),
                "-e",
                str(folder / "error.log"),
            ],
            # How nginx takes over the listening sockets of the one before it.
            env={"NGINX": f"{number};", "PATH": os.environ.get("PATH", "")},
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait_until_it_runs(folder / "nginx.pid")

    def _wait_until_it_runs(self, pid: Path) -> None:
        """It writes its number once its configuration is accepted."""
        limit = time.monotonic() + PATIENCE
        while not pid.exists():
            if self._process.poll() is not None or time.monotonic() > limit:
                self.stop()
                raise AssertionError((pid.parent / "error.log").read_text())
            time.sleep(0.005)

    @staticmethod
    def _configuration(
        folder: Path, listening: socket.socket, site: Site, access: Access, log: Path
    ) -> str:
        certificates = auth = ""
        if access.tls:
            certificates = f'ssl_certificate "{access.tls.certificate}";'
            certificates += f' ssl_certificate_key "{access.tls.key}";'
        if access.user:
            hashed = base64.b64encode(hashlib.sha1(access.password.encode()).digest()).decode()
            (folder / "accounts").write_text(f"{access.user}:{{SHA}}{hashed}\n")
            auth = f'auth_basic "index"; auth_basic_user_file "{folder}/accounts";'
        pattern = JSON_TYPE.replace(".", r"\.").replace("+", r"\+")
        return CONFIGURATION.format(
            # Its default worker may not read a test's folder.
            user="user root;" if os.geteuid() == 0 else "",
            log=log,
            root=f'"{site.root}"',
            port=listening.getsockname()[1],
            ssl=" ssl" if access.tls else "",
            certificates=certificates,
            auth=auth,
            rate=f"limit_rate {access.rate};" if access.rate else "",
            json_type=JSON_TYPE,
            map=f'"~{pattern}" index.json;' if site.offer.json else "",
        )

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
