"""Builds the collector into one file: for machines with nothing but a Python."""

from __future__ import annotations

import base64
import importlib.metadata
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from . import nvidia_ml_py
from .exit_codes import CouldNotLook

_PACKAGE = Path(__file__).parent
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same sources give the same bytes

_OLD = """\
import os
import sys

if sys.version_info < (3, 6):
    sys.stderr.write("envcheck-collector: needs Python 3.6 or newer, this is %d.%d\\n" % sys.version_info[:2])
    sys.exit(2)
"""

_MAIN = (
    _OLD
    + """\
from envcheck.collector.runtime.shadows import hidden

with hidden():
    import signal

    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main() knows what to do about Ctrl-C
    from envcheck.collector.main import main

    sys.exit(main(sys.argv[1:]))
"""
)

_SCRIPT = '''\
#!/usr/bin/env python3
# envcheck-collector {version}: prints a Snapshot of this machine's GPU stack as JSON.
# Made by `envcheck collector`; the text at the end is a zip of readable Python sources.
{old}

def real(path):
    try:
        return os.path.realpath(path)
    except OSError:  # relative to a working directory that is gone
        return path


# What lies beside this script, or on PYTHONPATH, must not stand in for the standard library.
ASIDE = [os.path.dirname(__file__) or "."] if "__file__" in globals() else []
if not sys.flags.ignore_environment:
    ASIDE += [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
ASIDE = [real(entry) for entry in ASIDE]
sys.path[:] = [entry for entry in sys.path if entry and real(entry) not in ASIDE]

NUMBER = 0
while NUMBER < 3:  # standard streams that are closed: the file in memory must not get their numbers
    NUMBER = os.open(os.devnull, os.O_RDWR)
os.close(NUMBER)

import base64
import signal

if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main() knows what to do about Ctrl-C

PACKAGE = """
{package}
"""


def in_memory(data):
    """The path of a file in memory that holds the data and goes with this process. Raises OSError."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("envcheck-collector")
    else:
        import ctypes

        number = ctypes.CDLL(None).memfd_create(b"envcheck-collector", 1)
    process = "/proc/%d" % os.getpid()
    path = "%s/fd/%d" % (process, number)
    if number < 0 or os.stat(process).st_uid != os.geteuid() or not os.path.isfile(path):
        raise OSError("no file in memory that other processes can read")
    while data:
        data = data[os.write(number, data) :]
    return path


def run(path):
    sys.path.insert(0, path)
    from envcheck.collector.main import main as collect

    return collect(sys.argv[1:])


def main():
    data = base64.b64decode(PACKAGE)
    try:
        path = in_memory(data)
    except (OSError, AttributeError, ImportError):
        return on_disk(data)
    return run(path)


def on_disk(data):
    import shutil
    import tempfile

    folder = None
    try:
        try:
            folder = tempfile.mkdtemp(prefix="envcheck-collector-")
            path = os.path.join(folder, "envcheck-collector.pyz")
            with open(path, "wb") as file:
                file.write(data)
        except OSError as error:
            sys.stderr.write("envcheck-collector: no room to unpack: %s\\n" % error)
            return 2
        return run(path)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
'''


def build_pyz(probes: Mapping[str, Path]) -> bytes:
    """The collector, pynvml and its licence, and other packages' probes, as an executable zip."""
    buffer = io.BytesIO()
    buffer.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(_contents(probes).items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()


def build_script(probes: Mapping[str, Path]) -> bytes:
    """The same as one plain Python file."""
    from . import __version__

    text = base64.b64encode(build_pyz(probes)).decode()
    package = "\n".join(text[at : at + 100] for at in range(0, len(text), 100))
    return _SCRIPT.format(version=__version__, old=_OLD, package=package).encode()


def _contents(probes: Mapping[str, Path]) -> dict[str, bytes]:
    files = {"__main__.py": _MAIN.encode(), "envcheck/__init__.py": b""}
    for path in (_PACKAGE / "collector").rglob("*.py"):
        files["envcheck/" + path.relative_to(_PACKAGE).as_posix()] = path.read_bytes()
    files.update(_pynvml())
    if probes:
        folder = "envcheck/collector/foreign_probes/"
        files[folder + "__init__.py"] = b""
        files.update({f"{folder}{name}.py": file.read_bytes() for name, file in probes.items()})
    licence = _own_licence()
    if licence is not None:
        files["LICENSE"] = licence
    return files


def _pynvml() -> dict[str, bytes]:
    """nvidia-ml-py's one module, its version and its licence, as ``envcheck.collector.vendor``."""
    module = nvidia_ml_py.file()
    if module is None or module.name != "pynvml.py":
        raise CouldNotLook(
            "nvidia-ml-py is not installed beside envcheck: pip install nvidia-ml-py"
        )
    files = {"__init__.py": b"", "pynvml.py": module.read_bytes()}
    try:
        distribution = importlib.metadata.distribution("nvidia-ml-py")
    except importlib.metadata.PackageNotFoundError:
        distribution = None
    if distribution is not None:
        for file in distribution.files or []:
            if "licen" in file.name.lower():
                files["pynvml-" + file.name] = Path(str(file.locate())).read_bytes()
    return {"envcheck/collector/vendor/" + name: data for name, data in files.items()}


def _own_licence() -> bytes | None:
    beside = _PACKAGE.parent / "LICENSE"
    if beside.is_file():
        return beside.read_bytes()
    for file in importlib.metadata.files("envcheck-gpu") or []:
        if file.name == "LICENSE":
            return Path(str(file.locate())).read_bytes()
    return None
