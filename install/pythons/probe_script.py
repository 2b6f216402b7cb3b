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

path = sys.executable or ""
prefix = getattr(sys, "real_prefix", None) or getattr(sys, "base_prefix", sys.prefix)
if prefix != sys.prefix:  # a virtual environment: the interpreter that it was made with
    ends = ("{}.{}".format(*sys.version_info), "3", "")
    bases = [getattr(sys, "_base_executable", None)]
    bases += [f"{prefix}/bin/python{end}" for end in ends]
    path = next(
        (base for base in bases if base and base != path and os.access(base, os.X_OK)), path
    )

machine = platform.machine()  # the kernel's
if struct.calcsize("P") == 4:  # what a process of 32 bits sees of a kernel of 64
    machine = {"x86_64": "i686", "aarch64": "armv7l"}.get(machine, machine)

answer = {
    "version": platform.python_version(),
    "implementation": platform.python_implementation(),
    "architecture": machine,
    "abi": sysconfig.get_config_var("SOABI") or "",
    "build": sysconfig.get_config_var("HOST_GNU_TYPE") or "",
    "debug": bool(sysconfig.get_config_var("Py_DEBUG")),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "path": path,
    "in_environment": prefix != sys.prefix,
    "libc": libc,
    "has_venv": len(modules) == 2,
}
print("@envcheck{@" + json.dumps(answer) + "@}envcheck@")
