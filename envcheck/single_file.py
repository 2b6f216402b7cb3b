"""Builds the collector into one file: for machines with nothing but a Python.

A ``.pyz`` is a zip that Python runs (`python3 envcheck-collector.pyz`). A ``.py`` is the same zip inside a
plain script, which also works where only standard input reaches the machine
(`ssh HOST python3 - < envcheck-collector.py`).
"""

from __future__ import annotations

import base64
import importlib.metadata
import importlib.util
import io
import textwrap
import zipfile
from pathlib import Path

from .exit_codes import CouldNotLook

_PACKAGE = Path(__file__).parent
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same sources give the same bytes

_MAIN = """\
import sys

if sys.version_info < (3, 6):
    sys.stderr.write("envcheck-collector: needs Python 3.6 or newer, this is %d.%d\\n" % sys.version_info[:2])
    sys.exit(2)
from envcheck.collector.main import main

sys.exit(main(sys.argv[1:]))
"""

_SCRIPT = '''\
#!/usr/bin/env python3
# envcheck-collector {version}: prints a Snapshot of this machine's GPU stack as JSON.
# Made by `envcheck collector`; the text at the end is a zip of readable Python sources.
import sys

if sys.version_info < (3, 6):
    sys.stderr.write("envcheck-collector: needs Python 3.6 or newer, this is %d.%d\\n" % sys.version_info[:2])
    sys.exit(2)

import base64
import os
import shutil
import tempfile

PACKAGE = """
{package}
"""


def main():
    try:
        folder = tempfile.mkdtemp(prefix="envcheck-collector-")
        path = os.path.join(folder, "envcheck-collector.pyz")
        with open(path, "wb") as file:
            file.write(base64.b64decode(PACKAGE))
    except OSError as error:
        sys.stderr.write("envcheck-collector: no room to unpack: %s\\n" % error)
        return 2
    try:
        sys.path.insert(0, path)
        from envcheck.collector.main import main as collect

        return collect(sys.argv[1:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
'''


def build_pyz() -> bytes:
    """The collector, pynvml and its licence as an executable zip."""
    buffer = io.BytesIO()
    buffer.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(_contents().items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()


def build_script() -> bytes:
    """The same as one plain Python file."""
    from . import __version__

    package = "\n".join(textwrap.wrap(base64.b64encode(build_pyz()).decode(), 100))
    return _SCRIPT.format(version=__version__, package=package).encode()


def _contents() -> dict[str, bytes]:
    files = {"__main__.py": _MAIN.encode(), "envcheck/__init__.py": b""}
    for path in (_PACKAGE / "collector").rglob("*.py"):
        files["envcheck/" + path.relative_to(_PACKAGE).as_posix()] = path.read_bytes()
    files.update(_pynvml())
    licence = _own_licence()
    if licence is not None:
        files["LICENSE"] = licence
    return files


def _pynvml() -> dict[str, bytes]:
    """nvidia-ml-py's one module and its licence, as ``envcheck.collector.vendor``."""
    found = importlib.util.find_spec("pynvml")
    if found is None or not found.origin:
        raise CouldNotLook(
            "nvidia-ml-py is not installed beside envcheck: pip install nvidia-ml-py"
        )
    vendor = "envcheck/collector/vendor/"
    files = {vendor + "__init__.py": b"", vendor + "pynvml.py": Path(found.origin).read_bytes()}
    for file in importlib.metadata.files("nvidia-ml-py") or []:
        if "licen" in file.name.lower():
            files[vendor + "pynvml-" + file.name] = Path(str(file.locate())).read_bytes()
    return files


def _own_licence() -> bytes | None:
    beside = _PACKAGE.parent / "LICENSE"
    if beside.is_file():
        return beside.read_bytes()
    for file in importlib.metadata.files("envcheck-gpu") or []:
        if file.name == "LICENSE":
            return Path(str(file.locate())).read_bytes()
    return None
