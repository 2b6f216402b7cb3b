"""What frameworks' own words mean: why an import failed, and why no GPU was found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...data.sonames import component_of
from ...findings.model import Remedy
from ...findings.shell import word


class Cause(NamedTuple):
    """A pattern in a framework's words, and what it means.

    says: the end of a sentence; text and commands: the remedy. All are formatted with the pattern's
    groups ({0} is the whole match) and with {pip}, the target's own pip as a command; "{update}" stands
    for the commands that update the driver.
    """

    pattern: str
    says: str
    text: str
    commands: tuple[str, ...]
    source: str


IMPORT = (
    Cause(
        r"version `(GLIBC_[\d.]+)' not found",
        "it needs {1}, which this system's C library does not have",
        "Use a wheel made for an older system, or a container, which brings its own C library.",
        ("ldd --version | head -1",),
        "NVIDIA/tensorflow#32",
    ),
    Cause(
        r"version `((?:GLIBCXX|CXXABI)_[\d.]+)' not found",
        "it needs {1} of libstdc++, and an older one was loaded",
        "See which libstdc++ comes first: LD_LIBRARY_PATH and conda often put an old one in front.",
        ("ldconfig -p | grep libstdc++", "echo $LD_LIBRARY_PATH"),
        "the GNU C++ library's ABI policy",
    ),
    Cause(
        r"(?<![\w.+-])(lib[\w.+-]+): cannot open shared object file",
        "the loader does not find {1}",
        "Install the package that brings it.",
        ("{library}",),
        "dlopen(3)",
    ),
    Cause(
        r"undefined symbol: (iJIT_\w+)",
        "MKL 2024.1 and later have no {1}, which it was linked with",
        "Take an older MKL, or a newer build of the framework.",
        ("conda install 'mkl<2024.1'",),
        "pytorch#123097",
    ),
    Cause(
        r"undefined symbol: (\S+)",
        "its libraries are of different versions ({1} is missing)",
        "Install it again over itself, and see whether LD_LIBRARY_PATH puts another library in front.",
        ("echo $LD_LIBRARY_PATH",),
        "ld.so(8)",
    ),
    Cause(
        r"(?<!\S)(\S+): cannot allocate memory in static TLS block",
        "{1} wants thread-local storage and was loaded too late",
        "Load it first.",
        ("export LD_PRELOAD={1}",),
        "ld.so(8)",
    ),
    Cause(
        r"file too short|invalid ELF header|wrong ELF class",
        "one of its libraries is damaged or was made for another processor",
        "Install it again over itself.",
        (),
        "ld.so(8)",
    ),
    Cause(
        r"failed to map segment from shared object",
        "its libraries may not be executed where they lie: the file system is mounted noexec, or "
        "memory has run out",
        "Put the environment on a file system without noexec.",
        ("findmnt -o TARGET,OPTIONS -T .",),
        "mount(8)",
    ),
    Cause(
        r"only a directory of that name is there",
        "its module is gone, and a directory of its name is left",
        "Uninstall what is left of it, and install it again.",
        (),
        "Python's documentation, namespace packages",
    ),
    Cause(
        r"No module named '?([\w.]+)'?",
        "the module {1}, which it needs, is not installed",
        "Install what brings that module; some names differ from their package's.",
        ("{pip} check", "{pip} install {1}"),
        "Python's documentation, ModuleNotFoundError",
    ),
)

# Why a process died, by signal number.
SIGNALS = {
    4: "its code uses instructions that this CPU does not have (AVX, in most wheels)",
    6: "it gave up by itself",
    7: "memory that it had mapped could not be read: a full /dev/shm, or a damaged disk",
    9: "it was killed, as the kernel does when memory runs out",
    11: "a library crashed",
}

NO_GPU = (
    Cause(
        r"Could not load dynamic library '([^']+)'; dlerror: (?!\1)(lib[^\s:]+): cannot open",
        "{1} needs {2}, and the loader does not find that",
        "Install the package that brings it.",
        ("{library}",),
        "NVIDIA/tensorflow#110",
    ),
    Cause(
        r"Could not load dynamic library '(?!libcuda\.so|libnvinfer)([^']+)'",
        "the loader does not find {1}",
        "Install the package that brings it, or put its directory on the loader's path.",
        ("{library}",),
        "tensorflow#60854, #45930",
    ),
    Cause(
        r"Loaded runtime CuDNN library: (\S+) but source was compiled with: (\S+?)[.,;]?(?:\s|$)",
        "cuDNN {1} was loaded, and it was built with {2}",
        "Install a cuDNN of the same major, and at least that minor version.",
        (),
        "TensorFlow's own message",
    ),
    Cause(
        r"kernel version (\S+) does not match DSO version (\S+)",
        "the kernel module is {1} and libcuda is {2}",
        "Reload the driver's modules, or reboot.",
        ("sudo fuser -v /dev/nvidia*", "sudo reboot"),
        "TensorFlow's own message",
    ),
    Cause(
        r"NVIDIA driver on your system is too old \(found version (\d+)\)",
        "it finds the driver too old",
        "Update the driver, or install a build for an older CUDA.",
        ("{update}",),
        "PyTorch's own message",
    ),
    Cause(
        r"Ignoring visible gpu device .{0,200}?(?:core count|multiprocessor count): (\d+)",
        "it leaves out a GPU with only {1} multiprocessors beside a larger one",
        "Lower the limit that TensorFlow sets by itself.",
        ("export TF_MIN_GPU_MULTIPROCESSOR_COUNT={1}",),
        "tensorflow#3430",
    ),
    Cause(
        r"Ignoring visible gpu device .{0,200}?[Cc]ompute capability (\d+\.\d+).{0,200}?minimum required"
        r" Cuda capability is (\d+\.\d+)",
        "it leaves out a GPU of compute capability {1}, and was built for {2} and later",
        "Use a build that still has code for this GPU.",
        (),
        "tensorflow#473",
    ),
    Cause(
        r"(CUDA-enabled jaxlib is not installed|[Tt]orch not compiled with CUDA enabled)",
        "it was installed without its CUDA half",
        "Install the CUDA build.",
        (),
        "JAX's and PyTorch's own messages",
    ),
    Cause(
        r"failed call to cuInit: .{0,200}?(CUDA_ERROR_\w+|UNKNOWN ERROR \(\d+\))",
        "cuInit fails in it with {1}",
        "See DRV-004 and the variables that hide GPUs.",
        ("echo $CUDA_VISIBLE_DEVICES",),
        "cuda.h, CUresult",
    ),
    Cause(
        r"Could not find cuda drivers on your machine|Found no NVIDIA driver on your system",
        "it finds no libcuda.so.1",
        "Put the driver's libcuda on the loader's path.",
        ("ldconfig -p | grep libcuda.so.1",),
        "tensorflow#63362",
    ),
    Cause(
        r"Unable to initialize backend 'cuda': (.{1,160})",
        "it says: {1}",
        "Follow its message.",
        (),
        "JAX's own message",
    ),
    Cause(
        r"torch\.cuda\.init: (?:\w+: )?(.{1,160})|CUDA initialization: (.{1,160})",
        "it says: {1}",
        "Follow its message.",
        (),
        "PyTorch's own message",
    ),
    Cause(
        r"\b(CUDA_ERROR_\w+)",
        "CUDA answers {1}",
        "See what DRV-004 says.",
        (),
        "cuda.h, CUresult",
    ),
    Cause(
        r"Cannot dlopen some GPU libraries",
        "it could not load some of its CUDA libraries",
        "Install the libraries that its log and LIB-008 name.",
        (),
        "NVIDIA/tensorflow#110",
    ),
)


class Explained(NamedTuple):
    """A cause that was found: the end of a sentence, the words it rests on, and what to do."""

    says: str
    words: str
    remedy: Remedy


def explain(
    table: Iterable[Cause],
    lines: Iterable[str],
    pip: str,
    cuda: str = "",
    update: Iterable[str] = (),
) -> Explained | None:
    """The first cause of the table, in its order, that one of the lines bears out.

    pip: the target's pip as a command. cuda: the version that the framework was built with, or "".
    update: the commands that update the driver, for {update}.
    """
    lines = list(lines)
    for cause in table:
        for line in lines:
            found = re.search(cause.pattern, line)
            if found is not None:
                return _explained(cause, found, line, pip, cuda, update)
    return None


def _explained(
    cause: Cause, found: re.Match[str], line: str, pip: str, cuda: str, update: Iterable[str]
) -> Explained:
    groups = [found.group(0), *(group for group in found.groups() if group is not None), "", ""]
    missing = next((group for group in reversed(groups) if group.startswith("lib")), "")
    quoted = [word(group) for group in groups]
    library = install_library(missing, pip, cuda)
    return Explained(
        cause.says.format(*groups),
        line.strip()[:300],
        Remedy(
            cause.text.format(*groups),
            [
                line
                for command in cause.commands
                for line in (
                    update
                    if command == "{update}"
                    else [command.format(*quoted, pip=pip, library=library)]
                )
            ],
        ),
    )


def install_library(soname: str, pip: str, cuda: str = "") -> str:
    """The command that brings a library by its SONAME, or that looks for it.

    cuda: the version that whoever asks for the library was built with, or "".
    """
    name, _, version = soname.partition(".so.")
    part = component_of(soname)
    major = cuda.partition(".")[0]
    if part is None or (part == "cudnn" and version in ("", "5", "6", "7")) or major == "10":
        return f"ldconfig -p | grep -F {word(name or soname)}"
    if not major and part in ("cublas", "cuda-runtime", "nvjitlink"):
        major = version.partition(".")[0]
    if major not in ("11", "12", "13"):
        return f"ldconfig -p | grep -F {word(name)}"
    pinned = f"=={version}.*" if part == "cudnn" else ""
    # The wheels for CUDA 13 carry no suffix, but for the libraries with a version of their own.
    suffix = "" if major == "13" and part not in ("cudnn", "nccl") else f"-cu{major}"
    return f"{pip} install {word(f'nvidia-{part}{suffix}{pinned}')}"
