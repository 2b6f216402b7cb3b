"""Facts about a target: a Python environment, seen by its own interpreter."""

from __future__ import annotations

from typing import Literal

from .base import NOT_COLLECTED, Address, Facts, Maybe

# Those that are looked at, by their modules' names.
FRAMEWORKS = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}


class TargetInterpreter(Facts, frozen=True, kw_only=True):
    executable: str
    version: str  # "3.8.18"
    implementation: str  # "CPython"
    kind: Literal["interpreter", "virtualenv", "conda"]
    prefix: str
    base_prefix: str
    architecture: str  # of the interpreter: "x86_64"
    libc: Maybe[str] = NOT_COLLECTED
    user_site: Maybe[bool] = NOT_COLLECTED  # on sys.path
    pip: Maybe[bool] = NOT_COLLECTED  # it can be imported: uv's environments have none
    uv: Maybe[bool] = NOT_COLLECTED  # uv made the environment (pyvenv.cfg)
    externally_managed: Maybe[bool] = NOT_COLLECTED  # pip refuses to change it (PEP 668)
    sys_path: list[str] = []


class Overwritten(Facts, frozen=True, kw_only=True):
    """Files that a distribution recorded, and that now have the content that another one recorded."""

    by: str  # the other one's name
    files: int  # that both recorded with different content
    example: str  # one that was read and compared


class Distribution(Facts, frozen=True, kw_only=True):
    name: str  # as in its metadata
    normalized: str  # PEP 503
    version: str
    location: str  # directory on sys.path
    summary: str = ""
    installer: Maybe[str] = NOT_COLLECTED
    requires: Maybe[list[str]] = NOT_COLLECTED  # Requires-Dist, as written
    files: Maybe[int] = NOT_COLLECTED  # files in RECORD; absent where there is none
    compiled: Maybe[int] = (
        NOT_COLLECTED  # shared libraries in RECORD, where its own code stands there, too
    )
    missing: list[str] = []  # the first 20 of RECORD's files that are not on disk
    missing_count: int = 0
    cut_off: list[str] = []  # RECORD's shared libraries that end before their own headers say
    overwritten: list[Overwritten] = []  # where another one's files replaced its own
    keras_2: str = ""  # what in its code only Keras 2 has: "tf_keras"
    shadowed: bool = False  # an earlier sys.path entry holds the same name


class HorovodExtension(Facts, frozen=True, kw_only=True):
    framework: str  # "tensorflow", "torch", "mxnet"
    present: bool  # the extension's .so is in the distribution
    # "nccl", "mpi", "gloo", "cuda": those that its file holds calls of
    operations: Maybe[list[str]] = NOT_COLLECTED
    nccl: Maybe[str] = NOT_COLLECTED  # "libnccl.so.2" where it is linked to it, "2.19.3" built in


class Packages(Facts, frozen=True, kw_only=True):
    distributions: list[
        Distribution
    ] = []  # of this field only: frameworks, CUDA, their known troubles
    # what the frameworks require, and theirs in turn: what of it is installed is among the distributions
    required: Maybe[list[str]] = NOT_COLLECTED
    horovod_extensions: Maybe[list[HorovodExtension]] = NOT_COLLECTED


class PackageInLock(Facts, frozen=True, kw_only=True):
    """A package of the lock that envcheck installed an environment from. Names are normalised (PEP 503)."""

    name: str
    version: str  # as locked
    found: Maybe[str] = NOT_COLLECTED  # the version that is there now; absent where it is gone
    since: Maybe[str] = NOT_COLLECTED  # when that was installed: UTC, "2026-11-22T04:33:08Z"


class AddedPackage(Facts, frozen=True, kw_only=True):
    """A package that is there and not in the lock."""

    name: str
    version: str
    since: Maybe[str] = NOT_COLLECTED


class InstalledLock(Facts, frozen=True, kw_only=True):
    """The lock of an environment that envcheck installed, beside what is there; absent in any other."""

    path: Maybe[str] = NOT_COLLECTED
    stack: Maybe[str] = NOT_COLLECTED  # "tensorflow-cpu"
    release: Maybe[str] = NOT_COLLECTED
    created_at: Maybe[str] = NOT_COLLECTED
    gpu: Maybe[bool] = NOT_COLLECTED  # whether the stack is for GPUs
    packages: Maybe[list[PackageInLock]] = NOT_COLLECTED
    added: list[AddedPackage] = []


class ConfigSetting(Facts, frozen=True, kw_only=True):
    section: str  # "global", "install", "env" for a variable
    key: str
    value: str  # credentials removed
    credentials: bool = False  # a user name, password or token stood in it


class ConfigFile(Facts, frozen=True, kw_only=True):
    tool: Literal["pip", "uv"]  # uv's was collected before 0.3
    level: Literal["global", "user", "site", "environment"]
    path: str  # the file; for level "environment" the variable's name
    mode: Maybe[str] = NOT_COLLECTED
    settings: Maybe[list[ConfigSetting]] = NOT_COLLECTED


class PackagingConfig(Facts, frozen=True, kw_only=True):
    """pip's configuration as it reaches the target; credentials are noted, never kept."""

    files: list[ConfigFile] = []
    pyindex_traces: list[str] = []  # files that carry what nvidia-pyindex writes


class Library(Facts, frozen=True, kw_only=True):
    """One NVIDIA library: which file a process really mapped, and what it says of itself."""

    name: str  # "libcudnn_ops", without suffix and SONAME version
    how: Literal[
        "framework", "dlopen", "wheel"
    ]  # mapped by the framework, by SONAME, by its wheel's path
    soname: Maybe[str] = NOT_COLLECTED
    path: Maybe[str] = NOT_COLLECTED  # as mapped; unavailable with the loader's own words
    version: Maybe[str] = NOT_COLLECTED  # as the loaded library itself reports it
    version_from: str = ""  # the function that was asked
    origin: Maybe[
        Literal["wheel", "LD_PRELOAD", "LD_LIBRARY_PATH", "ld.so.cache", "system", "conda", "rpath"]
    ] = NOT_COLLECTED
    distribution: Maybe[str] = NOT_COLLECTED  # whose RECORD holds the file
    distribution_version: Maybe[str] = NOT_COLLECTED


class LibraryFile(Facts, frozen=True, kw_only=True):
    """One of NVIDIA's libraries in a directory that the loader does not search by itself."""

    soname: str
    path: str


class WantedLibrary(Facts, frozen=True, kw_only=True):
    """A library that a file asks for, and where the loader's search for it ends."""

    soname: str
    how: Literal["needed", "named"]  # linked to it; or its name is among the file's constants
    path: Maybe[str] = NOT_COLLECTED  # absent where it is found nowhere
    # "environment": where the loader does not look, so that another package has to load it first
    origin: Maybe[Literal["rpath", "LD_LIBRARY_PATH", "ld.so.cache", "system", "environment"]] = (
        NOT_COLLECTED
    )
    instead: list[str] = []  # the same library's files of other versions, where it is absent


class LinkedFile(Facts, frozen=True, kw_only=True):
    """A file of the environment that asks for a library of NVIDIA's or a framework's."""

    path: str
    distribution: Maybe[str] = (
        NOT_COLLECTED  # whose RECORD holds the file, or whose folder it is in
    )
    distribution_version: Maybe[str] = NOT_COLLECTED
    built_here: Maybe[bool] = NOT_COLLECTED  # not from a wheel that is made for many machines
    wants: list[WantedLibrary] = []
    undefined: list[str] = []  # the first symbols of a framework that none of its libraries defines


class Toolkit(Facts, frozen=True, kw_only=True):
    """A CUDA toolkit that extensions may be compiled with, in the order in which PyTorch looks for one.

    place: "aside" where it does not look; "PATH" of the first that PATH leads to.
    """

    place: Literal["CUDA_HOME", "CUDA_PATH", "PATH", "/usr/local/cuda", "aside"]
    root: str
    nvcc: Maybe[str] = NOT_COLLECTED  # "11.2.152"
    lacks: list[str] = []  # headers of libraries that extensions include


class Loader(Facts, frozen=True, kw_only=True):
    ld_library_path: list[str] = []
    libraries: list[Library] = []  # how: "dlopen" and "wheel"
    aside: list[LibraryFile] = []  # in the conda environment and in toolkits
    on_path: list[
        LibraryFile
    ] = []  # CUDA runtimes and stubs of libcuda in LD_LIBRARY_PATH's directories
    toolkits: Maybe[list[Toolkit]] = NOT_COLLECTED
    linked: Maybe[list[LinkedFile]] = NOT_COLLECTED  # without the frameworks' and NVIDIA's own


class FrameworkGpu(Facts, frozen=True, kw_only=True):
    name: str
    description: Maybe[str] = NOT_COLLECTED
    pci_address: Maybe[Address] = NOT_COLLECTED
    compute_capability: Maybe[str] = NOT_COLLECTED


class CompilerTool(Facts, frozen=True, kw_only=True):
    """A ptxas or a libdevice, one of which XLA takes to compile for a GPU.

    place: "PATH", or whose directory ``root`` is: "XLA_FLAGS" names it, "build" is the toolkit that the
    framework was built with, "framework" its own package, "aside" where XLA never looks by itself.
    """

    kind: Literal["ptxas", "libdevice"]
    place: Literal[
        "PATH",
        "XLA_FLAGS",
        "build",
        "/usr/local/cuda",
        "/opt/cuda",
        "wheel",
        "framework",
        "conda",
        "aside",
    ]
    path: str
    root: str = ""
    version: Maybe[str] = NOT_COLLECTED  # "12.5.82"; a libdevice has none


class Trial(Facts, frozen=True, kw_only=True):
    """One thing that a framework was made to do on its first GPU: "xla", "conv2d float16"."""

    name: str
    outcome: Literal["ok", "failed", "crashed", "timeout", "not-supported"]
    seconds: Maybe[float] = NOT_COLLECTED
    error: str = ""  # "TypeName: message", or how its process ended


class ErrorFile(Facts, frozen=True, kw_only=True):
    """A file that a failed import's error names, or that its traceback passes through."""

    path: str
    named: bool = False  # in the message itself
    distribution: Maybe[str] = NOT_COLLECTED  # whose RECORD holds the file
    distribution_version: Maybe[str] = NOT_COLLECTED
    brought_by: str = ""  # the variable that holds its directory: "LD_LIBRARY_PATH"
    cut_off: bool = False  # it ends before its own headers say


class Shadow(Facts, frozen=True, kw_only=True):
    """A module of a project's directory that is found before the installed one of its name."""

    module: str
    file: str
    hides: str  # the file that is found without it
    by: Literal["PYTHONPATH", "cwd", "user-site", "sys.path"]


class Framework(Facts, frozen=True, kw_only=True):
    """One framework, imported in a process of its own by the target's interpreter."""

    name: Literal["tensorflow", "torch", "jax"]
    imported: bool
    import_error: Maybe[str] = NOT_COLLECTED  # "TypeName: message"
    import_seconds: Maybe[float] = NOT_COLLECTED
    error_files: list[
        ErrorFile
    ] = []  # of the failed import: the message's, then the innermost first
    shadows: list[Shadow] = []  # of modules that the import uses, or may use where it failed
    version: Maybe[str] = NOT_COLLECTED
    file: Maybe[str] = NOT_COLLECTED
    cuda_build: Maybe[bool] = NOT_COLLECTED
    tensorrt_build: Maybe[bool] = NOT_COLLECTED
    built_tensorrt: Maybe[str] = NOT_COLLECTED  # "5.0.2"; TensorFlow's alone
    built_cuda: Maybe[str] = NOT_COLLECTED  # "12.5.1", as the framework says
    built_cudnn: Maybe[str] = NOT_COLLECTED  # "9", "9.3.0"
    built_capabilities: Maybe[list[str]] = NOT_COLLECTED  # "sm_80" has SASS, "compute_90" has PTX
    gpus: Maybe[list[FrameworkGpu]] = NOT_COLLECTED
    log: list[str] = []  # what it printed about CUDA and GPUs, the first 60 lines
    settings: dict[
        str, str
    ] = {}  # "tf32", "amp", "xla", "memory_growth" as the framework reports them
    libraries: list[Library] = []  # how: "framework"
    compiler_tools: Maybe[list[CompilerTool]] = NOT_COLLECTED
    trials: Maybe[list[Trial]] = NOT_COLLECTED  # where it sees a GPU
    trial_log: list[str] = []  # as log, of the trials' process


class Environment(Facts, frozen=True, kw_only=True):
    variables: dict[str, str] = {}  # those that change how a GPU stack behaves; set ones only
    # whether this user may write to CUDA_CACHE_PATH, where that is set
    cuda_cache_writable: Maybe[bool] = NOT_COLLECTED
    # of the variables that name a toolkit those whose directory is not there
    absent_directories: list[str] = []
    # of those that name directories: {one that is not there: one that is, and is nearly called so}
    misspelt: dict[str, str] = {}
