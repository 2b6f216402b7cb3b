"""Which certificates are believed: those of the machine, and those that the user names.

Loaded once for all connections. truststore, on Linux, loads them anew for each of them, and lets only one
connection come about at a time.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
from pathlib import Path

# Beside OpenSSL's own SSL_CERT_FILE and SSL_CERT_DIR: what requests, curl and pip are told about.
_NAMED = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")

# The system's store, for a Python whose OpenSSL was built to look elsewhere. Sources: the ca-certificates
# packages of Debian, Fedora, openSUSE and Alpine.
_SYSTEMS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)

# What OpenSSL finds a certificate in a folder by: Fedora's default folder holds files of other names alone.
_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")


def verifying() -> ssl.SSLContext:
    """Trusts what OpenSSL reads from SSL_CERT_FILE and SSL_CERT_DIR, else the system's store, else certifi's
    list, and the bundles that requests, curl and pip are told about."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    loaded = _trust_system(context)
    named = [os.environ[name] for name in _NAMED if os.environ.get(name)]
    for bundle in dict.fromkeys(named):
        if bundle not in loaded:
            _trust(context, Path(bundle))
    if not loaded and not named:
        import certifi

        _trust(context, Path(certifi.where()))
    return context


def unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _trust_system(context: ssl.SSLContext) -> set[str]:
    """Files and folders that are trusted now; empty where there is none, as in a bare container."""
    context.set_default_verify_paths()
    defaults = ssl.get_default_verify_paths()
    found = {defaults.cafile} if context.cert_store_stats()["x509_ca"] else set()
    if defaults.capath and _has_certificates(Path(defaults.capath)):
        found.add(defaults.capath)
    if not found:
        system = next((path for path in _SYSTEMS if Path(path).is_file()), None)
        if system is not None:
            _trust(context, Path(system))
            found.add(system)
    return {path for path in found if path}


def _has_certificates(folder: Path) -> bool:
    return any(_HASHED.fullmatch(path.name) for path in folder.iterdir())


def _trust(context: ssl.SSLContext, bundle: Path) -> None:
    if bundle.is_dir():
        context.load_verify_locations(capath=bundle)
    elif bundle.is_file():
        # Where no certificates are in it, the handshake will say what is missing.
        with contextlib.suppress(ssl.SSLError):
            context.load_verify_locations(cafile=bundle)
