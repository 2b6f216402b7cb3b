"""A home without anybody's settings, for the tests of registries."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

_ENGINES = "REGISTRY_AUTH_FILE DOCKER_CONFIG NGC_API_KEY XDG_CONFIG_HOME"
_BUNDLES = "REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PIP_CERT"


def settle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME, and all that logins and certificates are looked for by, in this folder: the home."""
    home = folder / "home"
    home.mkdir()
    for name in [
        *_ENGINES.split(),
        *_BUNDLES.split(),
        *(n for n in os.environ if n.lower().endswith("_proxy")),
    ]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "runtime"))
    monkeypatch.setenv("NETRC", str(folder / "netrc"))
    return home


def log_in(home: Path, host: str, user: str, password: str) -> Path:
    """As `docker login` leaves it."""
    path = home / ".docker" / "config.json"
    path.parent.mkdir(exist_ok=True)
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    path.write_text(json.dumps({"auths": {host: {"auth": auth}}}))
    return path
