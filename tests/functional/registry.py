"""Real packages, for stand-in indexes whose recipe needs them to do real work: pip, setuptools, gast's sdist.

They come from the index that this machine's pip is configured with, whatever that is.
"""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
import requests
from index_site import project_of
from processes import PATIENCE

from envcheck.install.network.public_index import public_index


def fetch(folder: Path, *filenames: str) -> list[Path]:
    """These very files; skips the test where the index does not answer or has them not."""
    folder.mkdir(parents=True, exist_ok=True)
    base = public_index(dict(os.environ)).url.rstrip("/")
    return [_fetch(folder, f"{base}/{project_of(name)}/", name) for name in filenames]


def _fetch(folder: Path, page: str, filename: str) -> Path:
    path = folder / filename
    if path.exists():
        return path
    try:
        with requests.Session() as session:
            answer = session.get(page, timeout=PATIENCE, headers={"Accept": "text/html"})
            answer.raise_for_status()
            links = re.findall(r'href="([^"#]+)', answer.text)
            (link,) = (link for link in links if link.rpartition("/")[2] == filename)
            file = session.get(urljoin(answer.url, html.unescape(link)), timeout=PATIENCE)
            file.raise_for_status()
    except (requests.RequestException, ValueError):
        pytest.skip(f"the configured package index does not give {filename}")
    path.write_bytes(file.content)
    return path
