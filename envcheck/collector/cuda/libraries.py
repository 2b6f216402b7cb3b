"""NVIDIA's libraries: their SONAMEs, and how each is asked which version it is.

SONAMEs: the CUDA toolkits' and wheels' own files. Version functions and their numbers: cuda_runtime_api.h,
library_types.h (GetProperty), cudnn_version.h, NvInferRuntimeBase.h, nccl.h, nvrtc.h, nvJitLink.h, and
for CUPTI docs.nvidia.com/cupti/api/group__CUPTI__VERSION__API.html.
"""

import ctypes
import re
from collections import namedtuple

from ..facts import unavailable
from . import dl

# name: without suffix. sonames: {major: versions after ".so."}; major is the CUDA toolkit's, for cuDNN
# and TensorRT their own. queries: the ways to ask for the version, the first one there is counts.
Library = namedtuple("Library", "name sonames queries")

# style: "property" f(int kind, int *value), "pointer" f(int *value), "pair" f(int *major, int *minor),
# "value" size_t f(void), "check" status f(void): 0 where its own version fits its dependencies'.
Query = namedtuple("Query", "function style decode")


def dotted(*numbers):
    return ".".join(str(number) for number in numbers)


def cuda(number):
    """12090 is "12.9"; None for what is no such number."""
    return dotted(number // 1000, number % 1000 // 10) if 1000 <= number < 1000000 else None


def thousands_then_ten_thousands(switch):
    """A decoder of major*1000+minor*100+patch below ``switch``, and of major*10000+... from there on."""

    def decode(number):
        if 1000 <= number < switch:
            return dotted(number // 1000, number % 1000 // 100, number % 100)
        if switch <= number < 10000000:
            return dotted(number // 10000, number % 10000 // 100, number % 100)
        return None

    return decode


cudnn = thousands_then_ten_thousands(90000)  # 8907 is 8.9.7, 90100 is 9.1.0
tensorrt = thousands_then_ten_thousands(10000)  # 8601 is 8.6.1, 100300 is 10.3.0
nccl = thousands_then_ten_thousands(10000)  # 2708 is 2.7.8, 21805 is 2.18.5


def cupti(number):
    """130000 is "13.0". Before CUDA 13 it is the API's own count, which stands for no one release."""
    return dotted(number // 10000, number % 10000 // 100) if number >= 130000 else None


def _property(prefix):
    return (Query(prefix + "GetProperty", "property", dotted),)


def _cudnn_part(part):
    # A part that exports no cudnnGetVersion of its own checks itself against the one it depends on.
    return (
        Query("cudnnGetVersion", "value", cudnn),
        Query("cudnn%sVersionCheck" % part, "check", cudnn),
    )


def _spread(name, queries, **sonames):
    return Library(
        name,
        {major.lstrip("v"): tuple(versions.split()) for major, versions in sonames.items()},
        queries,
    )


_INFER = {"v5": "5", "v6": "6", "v7": "7", "v8": "8", "v9": "9", "v10": "10", "v11": "11"}

TABLE = (
    _spread("libcuda", (Query("cuDriverGetVersion", "pointer", cuda),), v10="1"),
    _spread(
        "libcudart",
        (Query("cudaRuntimeGetVersion", "pointer", cuda),),
        v10="10.0 10.1 10.2",
        v11="11.0",
        v12="12",
        v13="13",
    ),
    _spread("libcublas", _property("cublas"), v10="10.0 10", v11="11", v12="12", v13="13"),
    _spread("libcublasLt", _property("cublasLt"), v10="10", v11="11", v12="12", v13="13"),
    _spread("libcufft", _property("cufft"), v10="10.0 10", v11="10", v12="11", v13="12"),
    _spread("libcurand", _property("curand"), v10="10.0 10", v11="10", v12="10", v13="10"),
    _spread("libcusolver", _property("cusolver"), v10="10.0 10", v11="10 11", v12="11", v13="12"),
    _spread("libcusparse", _property("cusparse"), v10="10.0 10", v11="11", v12="12", v13="12"),
    _spread("libnvJitLink", (Query("nvJitLinkVersion", "pair", dotted),), v12="12", v13="13"),
    _spread(
        "libnvrtc",
        (Query("nvrtcVersion", "pair", dotted),),
        v10="10.0 10.1 10.2",
        v11="11.0 11.1 11.2",
        v12="12",
        v13="13",
    ),
    _spread(
        "libcupti",
        (Query("cuptiGetVersion", "pointer", cupti),),
        v10="10.0 10.1 10.2",
        v11="11.0 11.1 11.2 11.3 11.4 11.5 11.6 11.7 11.8",
        v12="12",
        v13="13",
    ),
    _spread("libnvToolsExt", (), v10="1", v11="1", v12="1"),
    _spread(
        "libnccl", (Query("ncclGetVersion", "pointer", nccl),), v10="2", v11="2", v12="2", v13="2"
    ),
    _spread("libcudnn", (Query("cudnnGetVersion", "value", cudnn),), v7="7", v8="8", v9="9"),
    _spread("libcudnn_ops_infer", _cudnn_part("OpsInfer"), v8="8"),
    _spread("libcudnn_ops_train", _cudnn_part("OpsTrain"), v8="8"),
    _spread("libcudnn_cnn_infer", _cudnn_part("CnnInfer"), v8="8"),
    _spread("libcudnn_cnn_train", _cudnn_part("CnnTrain"), v8="8"),
    _spread("libcudnn_adv_infer", _cudnn_part("AdvInfer"), v8="8"),
    _spread("libcudnn_adv_train", _cudnn_part("AdvTrain"), v8="8"),
    _spread("libcudnn_graph", _cudnn_part("Graph"), v9="9"),
    _spread("libcudnn_ops", _cudnn_part("Ops"), v9="9"),
    _spread("libcudnn_cnn", _cudnn_part("Cnn"), v9="9"),
    _spread("libcudnn_adv", _cudnn_part("Adv"), v9="9"),
    _spread("libcudnn_ext", (), v9="9"),
    _spread("libcudnn_heuristic", (), v9="9"),
    _spread("libcudnn_engines_precompiled", (), v9="9"),
    _spread("libcudnn_engines_runtime_compiled", (), v9="9"),
    _spread("libcudnn_engines_tensor_ir", (), v9="9"),
    _spread("libnvinfer", (Query("getInferLibVersion", "value", tensorrt),), **_INFER),
    _spread("libnvinfer_plugin", (), **_INFER),
    _spread("libnvonnxparser", (), **_INFER),
)
NAMES = {library.name: library for library in TABLE}

# Whose functions only forward to another library, by the version after ".so.": they load that one when
# they are called, and abort the process where it cannot be loaded. cuDNN 8 also aborts where it can be
# and a constructor of what it needs misses libcuda: only loaded beforehand does it do no harm.
_FORWARDS = {"libcudnn": {"8": "libcudnn_ops_infer.so.8", "9": "libcudnn_graph.so.9"}}

_FILE = re.compile(r"(lib\w+?)(?:-[0-9a-f]{6,})?\.so(?:\.(\d+)(?:\.[\d.]*)?)?\Z")


def known(filename):
    """The Library that a file is by its name ("libcudart-d0da41ae.so.11.0"), or None."""
    match = _FILE.match(filename)
    return NAMES.get(match.group(1)) if match else None


def forwards_to(library, filename):
    """The SONAME of the library that has to be loaded before this file's functions are called, or None."""
    match = _FILE.match(filename)
    return _FORWARDS.get(library.name, {}).get(match.group(2)) if library and match else None


def sonames(library):
    """Its SONAMEs, each once, oldest first."""
    seen = []
    for versions in library.sonames.values():
        for version in versions:
            name = "%s.so.%s" % (library.name, version)
            if name not in seen:
                seen.append(name)
    return seen


def ask(handle, library, region):
    """{"version", "version_from"} as the library itself reports them.

    handle: from dl.load. region: the dl.Mapping it lies in. dlsym also finds the functions of a library's
    dependencies, so only a function that lies in the library's own file counts as its own.
    """
    own = None if region is None else region.path
    regions = dl.mappings()
    for query in library.queries:
        address = dl.symbol(handle, query.function)
        home = None if address is None else dl.at(address, regions)
        if home is None or (own is not None and home.path != own):
            continue
        return {
            "version": _STYLES[query.style](handle, address, query),
            "version_from": query.function,
        }
    return {
        "version": unavailable("not-supported", "it exports no function that reports its version")
    }


def _ask_property(handle, address, query):
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int))(address)
    numbers = []
    for kind in range(3):  # major, minor, patch
        value = ctypes.c_int(-1)
        status = function(kind, ctypes.byref(value))
        if status != 0 or value.value < 0:
            return _refused(query, status)
        numbers.append(value.value)
    return query.decode(*numbers)


def _ask_pointer(handle, address, query):
    value = ctypes.c_int(-1)
    status = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))(address)(
        ctypes.byref(value)
    )
    return _refused(query, status) if status != 0 else _decoded(query, value.value)


def _ask_pair(handle, address, query):
    major, minor = ctypes.c_int(-1), ctypes.c_int(-1)
    function = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)
    )
    status = function(address)(ctypes.byref(major), ctypes.byref(minor))
    if status != 0 or min(major.value, minor.value) < 0:
        return _refused(query, status)
    return query.decode(major.value, minor.value)


def _ask_value(handle, address, query):
    return _decoded(query, ctypes.CFUNCTYPE(ctypes.c_size_t)(address)())


def _ask_check(handle, address, query):
    status = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    if status != 0:
        return unavailable(
            "error",
            "%s returned %d: its version is not that of the libraries it depends "
            "on" % (query.function, status),
        )
    version = dl.symbol(handle, "cudnnGetVersion")
    if version is None:
        return unavailable(
            "not-supported", "it reports no version, and depends on nothing that does"
        )
    return _decoded(query, ctypes.CFUNCTYPE(ctypes.c_size_t)(version)())


_STYLES = {
    "property": _ask_property,
    "pointer": _ask_pointer,
    "pair": _ask_pair,
    "value": _ask_value,
    "check": _ask_check,
}


def _decoded(query, number):
    version = query.decode(number)
    if version is not None:
        return version
    return unavailable(
        "not-supported", "%s says %d, which is no version of the library" % (query.function, number)
    )


def _refused(query, status):
    return unavailable("error", "%s returned %d" % (query.function, status))
