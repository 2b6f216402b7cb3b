"""What the loader makes of NVIDIA's libraries in the target, in plain processes without any framework."""

import os
import re
import sys

from ..cuda import compiler_tools, libraries, library_loads, loader_search
from ..facts import Facts, from_error
from ..packaging import linked, origins

DOCUMENT = "target"
DEADLINE = 40

_BUDGET = 30.0  # seconds for all loads
_HEADERS = 6.0  # seconds for reading files' headers
_FOLDERS = 50  # of LD_LIBRARY_PATH
_RUNTIME = re.compile(r"libcudart\.so\.\d{1,2}(?:\.\d)?\Z")
_STUB = "libcuda.so"  # a file: the driver's own is a link to the one that has its version


def collect(context):
    facts = Facts(source="dlopen in forked children of the target's interpreter")
    facts.put("ld_library_path", loader_search.search_path(context.environ), "LD_LIBRARY_PATH")
    sys_path = context.params.get("sys_path", sys.path)
    wheels = origins.wheel_libraries(sys_path)
    requests = [
        library_loads.Load(library, "dlopen", soname)
        for library in libraries.TABLE
        for soname in libraries.sonames(library)
    ]
    requests += [library_loads.Load(wheel.library, "wheel", wheel.path) for wheel in wheels]
    places = {}
    for wheel in wheels:
        places.setdefault(os.path.basename(wheel.path), wheel.path)
    whence = origins.Origins(context, wheels, (sys.prefix, sys.base_prefix))
    facts.put("libraries", library_loads.load_all(requests, places, whence, _BUDGET))
    facts.put("aside", aside(context, sys.prefix), "files in conda's and the toolkits' directories")
    facts.put("on_path", on_path(context), "files in LD_LIBRARY_PATH's directories")
    facts.put("toolkits", compiler_tools.toolkits(context), "files, nvcc --version")
    try:
        search = loader_search.Search(context, sys.executable)
        facts.put("linked", linked.Linked(sys_path, search, _HEADERS).facts(), "ELF headers")
    except OSError as error:
        facts.put("linked", from_error(error), "ELF headers")
    return facts


def aside(context, prefix):
    """A LibraryFile's facts for each SONAME that lies in a conda environment or a toolkit."""
    folders = [prefix + "/lib"] if os.path.isdir(context.path(prefix + "/conda-meta")) else []
    homes = [
        context.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if context.environ.get(name)
    ]
    homes += [
        "/usr/local/" + name for name in context.names("/usr/local") if name.startswith("cuda")
    ]
    for home in homes + ["/opt/cuda"]:
        folders += [home + "/lib64", home + "/extras/CUPTI/lib64"]
    found = {}
    for folder in folders:
        for name in context.names(folder):
            library = libraries.known(name)
            if library is not None and name in libraries.sonames(library):
                found.setdefault(name, folder + "/" + name)
    return [{"soname": name, "path": path} for name, path in sorted(found.items())]


def on_path(context):
    """A LibraryFile's facts for each CUDA runtime and stub of libcuda in LD_LIBRARY_PATH's directories."""
    return [
        {"soname": name, "path": folder.rstrip("/") + "/" + name}
        for folder in loader_search.search_path(context.environ)[:_FOLDERS]
        if folder
        for name in context.names(folder)
        if _RUNTIME.match(name) or (name == _STUB and _is_stub(folder, context))
    ]


def _is_stub(folder, context):
    """Beside a driver's (in WSL's directory all are files) lies what programs load: libcuda.so.1."""
    path = os.path.realpath(context.path(os.path.join(folder, _STUB)))
    return os.path.basename(path) == _STUB and "libcuda.so.1" not in context.names(folder)
