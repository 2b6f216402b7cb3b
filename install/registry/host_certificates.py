"""Certificates that are kept for one registry alone, where podman and docker look for them.

Source: containers-certs.d(5), and https://docs.docker.com/engine/security/certificates/
"""

from __future__ import annotations

import contextlib
import os
import ssl
from pathlib import Path

import msgspec

# Below the user's home where there is no / in front.
_FOLDERS = (
    ".config/containers/certs.d",
    ".config/docker/certs.d",
    "/etc/containers/certs.d",
    "/etc/docker/certs.d",
)


class HostCertificates(msgspec.Struct, frozen=True, kw_only=True):
    authorities: tuple[Path, ...]  # *.crt, believed beside the system's
    own: tuple[
        tuple[Path, Path], ...
    ]  # *.cert with its *.key: shown to a registry that asks for one

    def load(self, context: ssl.SSLContext) -> None:
        """What cannot be read or is no certificate, the handshake will miss."""
        for path in self.authorities:
            with contextlib.suppress(OSError):  # ssl.SSLError is one
                context.load_verify_locations(cafile=path)
        for certificate, key in self.own:
            with contextlib.suppress(OSError):
                # Without a password, so that nobody is asked for one at the terminal.
                context.load_cert_chain(certificate, key, password=b"")


def of(names: tuple[str, ...]) -> HostCertificates | None:
    """What is kept for a registry of these names ("nvcr.io", "localhost:5000"); None where nothing is."""
    home = os.environ.get("HOME", "")
    authorities: list[Path] = []
    own: list[tuple[Path, Path]] = []
    for folder in (Path(home, folder, name) for folder in _FOLDERS for name in names):
        with contextlib.suppress(OSError):
            there = sorted(folder.iterdir())
            authorities += [path for path in there if path.suffix == ".crt"]
            pairs = [(p, p.with_suffix(".key")) for p in there if p.suffix == ".cert"]
            own += [pair for pair in pairs if pair[1].is_file()]
    if not (authorities or own):
        return None
    return HostCertificates(authorities=tuple(authorities), own=tuple(own))
