"""The variables that change how a GPU stack behaves. A list of what may be read, not of what may not."""

import difflib
import os
import re

from ..credentials import SECRET_NAME, strip
from ..facts import Facts

DOCUMENT = "target"
DEADLINE = 5

_VALUE_LIMIT = 4096  # characters

NAMES = frozenset(
    (
        # the interpreter and the loader
        "CONDA_PREFIX LD_AUDIT LD_LIBRARY_PATH LD_PRELOAD PYTHONHOME PYTHONNOUSERSITE PYTHONPATH "
        "VIRTUAL_ENV "
        # the driver and the runtime
        "CUDA_DEVICE_MAX_CONNECTIONS CUDA_DEVICE_ORDER CUDA_DISABLE_PTX_JIT CUDA_FORCE_PTX_JIT "
        "CUDA_HOME CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING CUDA_PATH CUDA_VISIBLE_DEVICES "
        "NVIDIA_TF32_OVERRIDE "
        # the libraries beside the frameworks
        "BNB_CUDA_VERSION NUMBA_DISABLE_CUDA NUMBA_ENABLE_CUDASIM "
        # what the container toolkit reads
        "NVIDIA_DISABLE_REQUIRE NVIDIA_DRIVER_CAPABILITIES NVIDIA_VISIBLE_DEVICES "
        # what NVIDIA's TensorFlow container says of itself
        "NVIDIA_TENSORFLOW_VERSION "
        # what a scheduler says of the GPUs that it gave
        "SLURM_GPUS_ON_NODE SLURM_JOB_GPUS SLURM_JOB_ID SLURM_STEP_GPUS "
        # frameworks
        "KERAS_BACKEND OMP_NUM_THREADS PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION "
        "TF_CPP_MIN_LOG_LEVEL TF_DETERMINISTIC_OPS TF_ENABLE_CUBLAS_TENSOR_OP_MATH_FP32 "
        "TF_ENABLE_CUDNN_TENSOR_OP_MATH_FP32 TF_FORCE_GPU_ALLOW_GROWTH TF_USE_LEGACY_KERAS "
        "TF_XLA_FLAGS TORCH_ALLOW_TF32_CUBLAS_OVERRIDE XLA_FLAGS "
    ).split()
)
PREFIXES = tuple(
    (
        "CUBLASLT_ CUBLAS_ CUDA_CACHE_ CUDA_MPS_ CUDNN_ HOROVOD_ JAX_ NCCL_ NVIDIA_REQUIRE_ PYTORCH_ "
        "TF_CUDNN_ TF_DISABLE_ TF_ENABLE_AUTO_MIXED_PRECISION TF_FP16_ TF_GPU_ TF_TRT_ TORCH_CUDNN_ "
        "XLA_PYTHON_CLIENT_"
    ).split()
)
_DIRECTORIES = ("CUDA_HOME", "CUDA_PATH")  # of a toolkit
_PATHS = 50  # directories
_NUMBER = re.compile(r"\d+")
_ALLOWED = re.compile(r"(?:%s).*\Z" % "|".join(PREFIXES), re.S)


def collect(context):
    facts = Facts(source="the target's environment variables")
    facts.put(
        "variables",
        {
            name: strip(value)[0][:_VALUE_LIMIT]
            for name, value in context.environ.items()
            if (name in NAMES or _ALLOWED.match(name)) and not SECRET_NAME.search(name)
        },
    )
    named = [name for name in _DIRECTORIES if context.environ.get(name)]
    gone = [name for name in named if not os.path.isdir(context.path(context.environ[name]))]
    facts.put("absent_directories", gone, "stat(2)")
    paths = [context.environ.get(name, "") for name in _DIRECTORIES + ("LD_LIBRARY_PATH",)]
    near = {path: _nearly(context, path) for path in ":".join(paths).split(":")[:_PATHS] if path}
    facts.put("misspelt", {path: there for path, there in near.items() if there}, "stat(2)")
    if context.environ.get("CUDA_CACHE_PATH"):
        facts.put("cuda_cache_writable", _writable(context.environ["CUDA_CACHE_PATH"]), "access(2)")
    return facts


def _writable(path):
    """Whether this user may write to a directory, or make it."""
    path = os.path.abspath(path)
    while not os.path.lexists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)


def _nearly(context, path):
    """The directory that is there and nearly called so; "" where the path is, or its number differs."""
    parts = path.rstrip("/").split("/")
    for index in range(1, len(parts)):
        above = "/".join(parts[:index]) or "/"
        if not os.path.isdir(context.path(os.path.join(above, parts[index]))):
            number = _NUMBER.findall(parts[index])
            names = [one for one in context.names(above) if _NUMBER.findall(one) == number]
            for name in difflib.get_close_matches(parts[index], names, 1, 0.8):
                meant = "/".join(parts[:index] + [name] + parts[index + 1 :])
                return meant if os.path.isdir(context.path(meant)) else ""
            break
    return ""
