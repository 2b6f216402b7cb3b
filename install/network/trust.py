"""Which certificates are believed: those of the machine, and those that the user names."""

from __future__ import annotations

import contextlib
import os
import re
import ssl
from collections.abc import Iterable
from pathlib import Path

# Beside OpenSSL's own SSL_CERT_FILE and SSL_CERT_DIR: what requests, curl and pip are configured with.
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

# What OpenSSL finds a certificate in a folder by: Fedora's default folder holds files of other names alone.
_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")


def verifying(bundles: Iterable[str] = ()) -> ssl.SSLContext:
    """Trusts what OpenSSL finds by itself, else the system's store or certifi's list; and the bundles."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_default_verify_paths()
    defaults = ssl.get_default_verify_paths()
    named = {*bundles, *(os.environ.get(name, "") for name in _NAMED)}
    if not (context.cert_store_stats()["x509_ca"] or _is_hashed(defaults.capath)):
        import certifi

        named.add(next(filter(os.path.isfile, _SYSTEMS), certifi.where()))
    for bundle in named - {"", defaults.cafile}:
        load(context, bundle)
    return context


def unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def load(context: ssl.SSLContext, bundle: str) -> None:
    """Trust a file or a folder; one without certificates is ignored, and the handshake fails."""
    kind = "capath" if Path(bundle).is_dir() else "cafile"
    with contextlib.suppress(OSError):  # ssl.SSLError is one
        context.load_verify_locations(**{kind: bundle})


def _is_hashed(folder: str | None) -> bool:
    with contextlib.suppress(OSError):
        return any(_HASHED.fullmatch(path.name) for path in Path(folder or os.devnull).iterdir())
    return False
