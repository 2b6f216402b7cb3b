"""Which certificates are believed: those of the machine, and those that the user names."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path

import certifi

from .pip_settings import pip_settings

# Beside OpenSSL's own SSL_CERT_FILE: what requests, curl and pip are configured with.
_NAMED = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")

# The system's store, for a Python whose OpenSSL was built to look elsewhere. Sources: the ca-certificates
# packages of Debian, Fedora, openSUSE and Alpine.
_SYSTEMS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def certificates(folder: Path, environ: Mapping[str, str] | None = None) -> str:
    """A PEM file: the system's certificates, else certifi's, and those set for pip, requests and curl.

    folder: where it is written, unless the system's alone are trusted.
    """
    source: Mapping[str, str] = os.environ if environ is None else environ
    settings = pip_settings(source)
    named = [source.get(name, "") for name in _NAMED]
    named += [settings["cert"].value] if "cert" in settings else []
    known = (source.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_SYSTEMS)
    found = next((one for one in known if one and Path(one).is_file()), "") or certifi.where()
    bundles = [one for one in dict.fromkeys([found, *named]) if one and Path(one).is_file()]
    if bundles == [found]:
        return found
    path = folder / "certificates.pem"
    path.write_bytes(b"\n".join(Path(one).read_bytes() for one in bundles))
    return str(path)
