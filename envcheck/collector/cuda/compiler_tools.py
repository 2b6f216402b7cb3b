"""Where ptxas and libdevice lie, which XLA needs to compile for a GPU, and nvcc, which extensions need.

Which of these places a framework of a version looks into, and in which order, is for the checks to say.
"""

import glob
import os
import re

from ..facts import unavailable

_FLAG = re.compile(r"--xla_gpu_cuda_data_dir=(\S+)")
_RELEASE = re.compile(r"\bV(\d+\.\d+\.\d+)\b")
_TOOLKIT = re.compile(r'#define TF_CUDA_TOOLKIT_PATH "([^"\n]{1,4096})"')
_CONFIGS = (
    "include/third_party/gpus/cuda/cuda_config.h",
    "include/external/local_config_cuda/cuda/cuda/cuda_config.h",
)
_HEADERS = ("cublas_v2.h", "curand_kernel.h", "cusparse.h", "cusolverDn.h")
_LIMIT = 16  # files of one kind
_ANSWER = 4.0  # seconds for ptxas --version


def find(context, homes, sys_path, prefix):
    """A CompilerTool's facts for each ptxas and libdevice.

    homes: the framework's package directories. prefix: the interpreter's.
    """
    roots = _roots(context, homes, sys_path, prefix)
    ptxas = [("PATH", folder, "ptxas") for folder in context.environ.get("PATH", "").split(":")]
    ptxas += [(place, root, "bin/ptxas") for place, root in roots]
    libdevice = [(place, root, "nvvm/libdevice/libdevice.10.bc") for place, root in roots]
    # Where conda's cudatoolkit and Debian's nvidia-cuda-toolkit put it; XLA looks into neither.
    libdevice += [
        ("aside", prefix, "lib/libdevice.10.bc"),
        ("aside", "/usr/lib/nvidia-cuda-toolkit", "libdevice/libdevice.10.bc"),
    ]
    found = _there(context, "ptxas", ptxas) + _there(context, "libdevice", libdevice)
    versions = {}
    for tool in found:
        if tool["kind"] == "ptxas":
            real = os.path.realpath(context.path(tool["path"]))
            if real not in versions:
                versions[real] = _version(context, real)
            tool["version"] = versions[real]
    return found


def _roots(context, homes, sys_path, prefix):
    """[(place, directory)]: of each place those that may be a toolkit's root."""
    flags = _FLAG.findall(context.environ.get("XLA_FLAGS", ""))
    roots = [("XLA_FLAGS", flags[-1])] if flags else []
    roots += [("build", root) for root in _built_with(context, homes)]
    roots += [("/usr/local/cuda", "/usr/local/cuda"), ("/opt/cuda", "/opt/cuda")]
    for entry in sys_path:
        if entry:
            roots.append(("wheel", os.path.join(entry, "nvidia/cuda_nvcc")))
            roots += [
                ("wheel", folder) for folder in sorted(_listed(context, entry + "/nvidia", "cu1"))
            ]
    roots += [("framework", os.path.join(home, "cuda")) for home in homes]
    if os.path.isdir(context.path(os.path.join(prefix, "conda-meta"))):
        roots.append(("conda", prefix))
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        if context.environ.get(name):
            roots.append(("aside", context.environ[name]))
    roots += [("aside", folder) for folder in _listed(context, "/usr/local", "cuda-")]
    roots.append(("aside", "/usr/lib/cuda"))
    return roots


def toolkits(context):
    """A Toolkit's facts for each that has nvcc, or that a variable names."""
    environ = context.environ
    roots = [(name, environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    folders = environ.get("PATH", "").split(":")
    roots += [("PATH", os.path.dirname(one.rstrip("/"))) for one in folders if _nvcc(context, one)][
        :1
    ]
    roots += [("/usr/local/cuda", "/usr/local/cuda")]
    roots += [("aside", one) for one in _listed(context, "/usr/local", "cuda-")]
    found = []
    for place, root in roots:
        nvcc = _nvcc(context, os.path.join(root, "bin"))
        if nvcc or place.startswith("CUDA_"):
            version = _version(context, context.path(nvcc)) if nvcc else unavailable("absent")
            lacks = [
                name
                for name in _HEADERS
                if not os.path.isfile(context.path(os.path.join(root, "include", name)))
                and not glob.glob(context.path(os.path.join(root, "targets/*/include", name)))
            ]
            found.append({"place": place, "root": root, "nvcc": version, "lacks": lacks})
    return found[:_LIMIT]


def _nvcc(context, folder):
    path = os.path.join(folder, "nvcc")
    return path if folder and os.path.isfile(context.path(path)) else ""


def _listed(context, folder, start):
    names = context.names(folder)
    return [os.path.join(folder, name) for name in sorted(names) if name.startswith(start)]


def _built_with(context, homes):
    """The toolkit's directory that TensorFlow was built with, which it looks into at run time, too."""
    for home in homes:
        for header in _CONFIGS:
            found = _TOOLKIT.findall(context.text(os.path.join(home, header)))
            if found:
                return found[:1]
    return []


def _there(context, kind, candidates):
    found = []
    for place, root, name in candidates:
        path = os.path.join(root or ".", name)
        if os.path.isfile(context.path(path)) and len(found) < _LIMIT:
            tool = {"kind": kind, "place": place, "path": path, "root": root}
            if tool not in found:
                found.append(tool)
    return found


def _version(context, path):
    if not os.access(path, os.X_OK):
        return unavailable("no-permission", "it is not executable")
    result = context.run([path, "--version"], _ANSWER)
    release = _RELEASE.search(result.stdout.decode("utf-8", "replace")) if result.ok else None
    return release.group(1) if release else unavailable("error", result.describe())
