"""The store's fetch of one file over TLS on loopback, beside curl, with and without sha256sum:

    .venv/bin/python benchmarks/store.py --scratch DIR [--mib 1024] [--repeat 3]

nginx serves a file of random bytes; both fetch it in turn, and the medians count. What the store fetches it
also verifies, so that the second of curl's figures is the one to compare with. The last column is the time
that the processor was at work.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from envcheck.install.lockfile import LockedFile
from envcheck.install.network.session import Session
from envcheck.install.store.fetch import Fetcher
from envcheck.install.store.store import Store

MIB = 1 << 20
CONF = """\
daemon off; pid {top}/pid; events {{}}
http {{ access_log off; sendfile on; client_body_temp_path {top}/t; proxy_temp_path {top}/t;
  fastcgi_temp_path {top}/t; uwsgi_temp_path {top}/t; scgi_temp_path {top}/t;
  server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {top}/cert.pem; ssl_certificate_key {top}/key.pem;
    root {top}/served; }} }}
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scratch", type=Path, required=True)
    arguments.add_argument("--mib", type=int, default=1024)
    arguments.add_argument("--repeat", type=int, default=3)
    asked = arguments.parse_args()
    top = Path(tempfile.mkdtemp(dir=asked.scratch))
    try:
        top.chmod(0o755)  # nginx's workers are another user's
        sha256 = _file(top / "served" / "big.whl", asked.mib)
        with _served(top) as url:
            _measure(
                top,
                LockedFile(name="big.whl", url=url, sha256=sha256, size=asked.mib * MIB),
                asked.repeat,
            )
    finally:
        shutil.rmtree(top)


def _file(path: Path, mib: int) -> str:
    path.parent.mkdir()
    checksum = hashlib.sha256()
    with path.open("wb") as file:
        for _ in range(mib):
            piece = os.urandom(MIB)
            checksum.update(piece)
            file.write(piece)
    return checksum.hexdigest()


@contextmanager
def _served(top: Path) -> Iterator[str]:
    certificate = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    argv = ["openssl", *certificate.split(), "-addext", "subjectAltName=IP:127.0.0.1"]
    argv += ["-keyout", str(top / "key.pem"), "-out", str(top / "cert.pem")]
    subprocess.run(argv, check=True, capture_output=True)
    os.environ["SSL_CERT_FILE"] = str(top / "cert.pem")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (top / "nginx.conf").write_text(CONF.format(top=top, port=port))
    argv = ["nginx", "-p", str(top), "-c", str(top / "nginx.conf"), "-e", str(top / "error.log")]
    server = subprocess.Popen(argv)
    try:
        for _ in range(100):
            time.sleep(0.1)
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
        yield f"https://127.0.0.1:{port}/big.whl"
    finally:
        server.terminate()
        server.wait()


def _measure(top: Path, file: LockedFile, repeat: int) -> None:
    out = top / "out"

    def store() -> None:
        with Session() as session, Fetcher(Store(out), session) as fetcher:
            fetcher.want(file)
            fetcher.wait()

    def curl() -> None:
        certificate = str(top / "cert.pem")
        argv = ["curl", "-sS", "--cacert", certificate, "-o", str(out), file.url]
        subprocess.run(argv, check=True)

    def verified() -> None:
        curl()
        subprocess.run(["sha256sum", str(out)], check=True, stdout=subprocess.DEVNULL)

    ways = {"envcheck's store": store, "curl": curl, "curl and sha256sum": verified}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(repeat):
        for name, way in ways.items():
            taken[name].append(_seconds(way))
            shutil.rmtree(out) if out.is_dir() else out.unlink()
    for name, seconds in taken.items():
        middle, busy = map(statistics.median, zip(*seconds, strict=True))
        rate = (file.size or 0) / MIB / middle
        sys.stdout.write(f"{name:20} {middle:6.2f} s  {rate:6.0f} MiB/s  {busy:6.2f} s\n")


def _seconds(way: Callable[[], None]) -> tuple[float, float]:
    """On the clock, and of the processor: this process's and its children's."""
    started, before = time.perf_counter(), os.times()
    way()
    return time.perf_counter() - started, sum(os.times()[:4]) - sum(before[:4])


if __name__ == "__main__":
    main()
