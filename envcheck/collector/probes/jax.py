"""JAX in the target: what it was built with, which GPUs it sees, how it is set."""

import importlib

from .. import framework
from ..cuda import libraries
from ..facts import unavailable

DOCUMENT = "target"
IMPORTS = "jax"
DEADLINE = 90

# Where JAX keeps what it knows of its CUDA half: a plugin, or in older ones jaxlib itself.
_CUDA_HALVES = ("jax_cuda13_plugin", "jax_cuda12_plugin", "jax_cuda11_plugin", "jaxlib.cuda")


def collect(context):
    return framework.collect(context, "jax", describe)


def describe(jax, facts):
    half, versions = _cuda_half()
    source = half or "jaxlib"
    facts.put("cuda_build", versions is not None, source)
    facts.put("built_cuda", _built(versions, "cuda_runtime_build_version", libraries.cuda), source)
    facts.put("built_cudnn", _built(versions, "cudnn_build_version", libraries.cudnn), source)
    facts.put("built_capabilities", unavailable("not-supported", "JAX does not say"), source)
    facts.put("tensorrt_build", False, "JAX links no TensorRT")
    facts.put("gpus", framework.ask(_gpus, jax), "jax.devices")
    framework.put_settings(
        facts,
        tf32=lambda: jax.config.jax_default_matmul_precision,
        jaxlib=lambda: importlib.import_module("jaxlib").__version__,
        cuda_plugin=lambda: half,
        platform=lambda: jax.default_backend(),
    )


def _cuda_half():
    """(its name, its module of versions), or (None, None) where JAX has no CUDA half."""
    for name in _CUDA_HALVES:
        try:
            return name, importlib.import_module(name + "._versions")
        except ImportError:
            continue
        except BaseException as error:
            framework.say("%s: %s: %s" % (name, type(error).__name__, error))
    return None, None


def _built(versions, function, decode):
    if versions is None:
        return unavailable("absent", "JAX has no CUDA plugin here")
    try:
        number = getattr(versions, function)()
    except BaseException as error:
        return unavailable("not-supported", "%s: %s" % (type(error).__name__, error))
    return decode(number) or unavailable("error", "%s says %r" % (function, number))


def _gpus(jax):
    try:
        devices = jax.devices("gpu")
    except RuntimeError as error:
        # This is how JAX says that it has none; why it has none stands in the message.
        framework.say("jax.devices('gpu'): %s" % " ".join(str(error).split()))
        return []
    found = []
    for device in devices:
        gpu = {
            "name": str(device.device_kind),
            "description": str(device),
            "pci_address": unavailable("not-supported", "JAX does not tell"),
        }
        capability = getattr(device, "compute_capability", None)
        if capability:
            gpu["compute_capability"] = str(capability)
        found.append(gpu)
    return found
