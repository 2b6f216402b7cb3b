"""The environment variables of the programs that make an environment: few, and none of the user's wishes.

A ``PIP_INDEX_URL`` or ``UV_FIND_LINKS`` of this machine must not reach what the lock decides, and neither
must its proxies: these programs speak to envcheck on the loopback interface alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LD_LIBRARY_PATH")

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


def plain(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What every one of them gets."""
    return {
        **_picked(_KEPT, environ),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "NETRC": os.devnull,
        "PIP_CONFIG_FILE": os.devnull,
        "PYTHONNOUSERSITE": "1",
    }


def through(proxy: str) -> dict[str, str]:
    """Everything by http:// goes to envcheck's own index; its password stays off the command line."""
    names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
    return {**dict.fromkeys(names, proxy), "NO_PROXY": "", "no_proxy": ""}


def building(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a build gets beside that: where this machine's compilers and libraries are."""
    return _picked(_OF_COMPILERS, environ)


def bin_first(directory: Path, environment: Mapping[str, str]) -> str:
    """A PATH on which the environment's own programs come first."""
    return os.pathsep.join([str(directory / "bin"), environment.get("PATH", os.defpath)])


def _picked(names: tuple[str, ...], environ: Mapping[str, str] | None) -> dict[str, str]:
    source = os.environ if environ is None else environ
    return {name: source[name] for name in names if name in source}
