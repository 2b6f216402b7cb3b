"""What an interpreter is asked: it runs this itself and prints the answer between two marks.

Nothing imports this file: its text is handed over with ``-c``, to any Python from 2.7 on. A chatty
``sitecustomize`` may print what it likes before and after.
"""

import json
import os
import platform
import struct
import sys
import sysconfig

libc = ""
if "CS_GNU_LIBC_VERSION" in os.confstr_names:  # only where it was compiled with glibc
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""

try:
    from importlib.util import find_spec

    modules = [name for name in ("venv", "ensurepip") if find_spec(name)]
except ImportError:  # Python 2
    modules = []

told = {
    "version": platform.python_version(),
    "implementation": platform.python_implementation(),
    "machine": platform.machine(),
    "bits": 8 * struct.calcsize("P"),
    "abi": sysconfig.get_config_var("SOABI") or "",
    "build": sysconfig.get_config_var("HOST_GNU_TYPE") or "",
    "debug": bool(sysconfig.get_config_var("Py_DEBUG")),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "executable": sys.executable or "",
    "base_executable": getattr(sys, "_base_executable", None) or "",
    "prefix": sys.prefix,
    "base_prefix": getattr(sys, "real_prefix", None) or getattr(sys, "base_prefix", sys.prefix),
    "libc": libc,
    "modules": modules,
}
print("@envcheck{@" + json.dumps(told) + "@}envcheck@")
