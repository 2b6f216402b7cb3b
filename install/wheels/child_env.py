"""The environment variables of the programs that make an environment: few, and none of the user's settings.

A ``PIP_INDEX_URL`` or ``UV_FIND_LINKS`` of this machine must not reach what the lock decides. What resolves
asks the network, and gets this user's proxies and certificates for that; what installs asks nobody.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .. import places
from ..network import trust
from ..network.pip_settings import pip_settings

_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LD_LIBRARY_PATH")
_FIXED = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "NO_COLOR": "1",
    "NETRC": os.devnull,
    "PIP_CONFIG_FILE": os.devnull,
    "PYTHONNOUSERSITE": "1",
}

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_OF_THE_NETWORK = (*_PROXIES, *map(str.lower, _PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR")

# How a compiler that stands beside the system's is found (environment modules, Spack, conda's own).
_OF_COMPILERS = (
    "CC",
    "CXX",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "CMAKE_PREFIX_PATH",
    "PKG_CONFIG_PATH",
)


def plain() -> dict[str, str]:
    """What every one of them gets."""
    return _picked(_KEPT, os.environ) | _FIXED


def building() -> dict[str, str]:
    """What a build gets beside that: where this machine's compilers and libraries are."""
    return _picked(_OF_COMPILERS, os.environ)


def online(scratch: Path, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a program that asks indexes gets beside that: proxies, certificates, and the netrc file.

    scratch: a folder for a file with all certificates that are trusted.
    """
    source: Mapping[str, str] = os.environ if environ is None else environ
    kept = _picked(_OF_THE_NETWORK, source)
    for name in ("NO_PROXY", "no_proxy"):  # no proxy knows this machine's own addresses
        kept[name] = ",".join([*filter(None, [source.get(name)]), "127.0.0.1", "localhost", "::1"])
    settings = pip_settings(source)
    if "proxy" in settings:
        kept |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), settings["proxy"].value)
    trusted = trust.certificates(scratch, source)
    if Path(trusted).parent == scratch:
        kept["SSL_CERT_FILE"] = trusted
    netrc = source.get("NETRC") or str(Path(source.get("HOME") or places.home()) / ".netrc")
    # uv makes its store of credentials, with a lock, where there is none: not in this user's home.
    own = {"UV_SYSTEM_CERTS": "1", "UV_CREDENTIALS_DIR": str(scratch / "credentials")}
    return {**own, "NETRC": netrc, **kept}


def bin_first(directory: Path, environment: Mapping[str, str]) -> str:
    """A PATH on which the environment's own programs come first."""
    return os.pathsep.join([str(directory / "bin"), environment.get("PATH", os.defpath)])


def _picked(names: tuple[str, ...], source: Mapping[str, str]) -> dict[str, str]:
    return {name: source[name] for name in names if source.get(name)}
