"""A certificate authority of the tests' own and a loopback server's certificate, by the openssl program."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from processes import ran

_NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost{more}\nbasicConstraints=critical,CA:FALSE\n"


@dataclass(frozen=True)
class Certificates:
    authority: Path  # what a client has to trust
    certificate: Path
    key: Path


def make(folder: Path, *more: str) -> Certificates:
    """more: other names that the server has, "IP:…" or "DNS:…". Skips the test where there is no openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl program on this machine")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "names").write_text(_NAMES.format(more="".join(f",{name}" for name in more)))
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for arguments in (
        ["req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
         "-subj", "/CN=envcheck tests", "-addext", "keyUsage=critical,keyCertSign"],
        ["req", *new_key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1"],
        ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
         "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem"],
    ):  # fmt: skip
        ran([openssl, *arguments], cwd=folder, check=True)
    return Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
