"""TensorFlow 1 and 2 in the target: what it was built with, which GPUs it sees, how it is set."""

import importlib
import os
import re
import sys

from .. import files, framework
from ..facts import is_unavailable, unavailable

DOCUMENT = "target"
IMPORTS = "tensorflow"
DEADLINE = 90

_DESCRIPTION = re.compile(
    r"(?P<pci>[0-9A-Fa-f:.]+)(?:, compute capability: (?P<capability>[\d.]+))?"
)

_CUDNN_NUMBER = re.compile(r"#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) (\d{1,3})\b")

_UNSAID = unavailable("not-supported", "this build does not say")
_WITHOUT_CUDA = unavailable("absent", "built without CUDA")


def collect(context):
    return framework.collect(context, "tensorflow", describe)


def describe(tf, facts):
    info = framework.ask(build_info, tf)
    source = "TensorFlow's build_info"
    known = {} if is_unavailable(info) else info
    cuda = known.get("is_cuda_build")
    cuda = framework.ask(lambda: bool(tf.test.is_built_with_cuda())) if cuda is None else bool(cuda)
    facts.put("cuda_build", cuda, source)
    unknown = info if is_unavailable(info) else _UNSAID if cuda else _WITHOUT_CUDA
    for field, keys in (
        ("built_cuda", ("cuda_version", "cuda_version_number")),
        ("built_cudnn", ("cudnn_version", "cudnn_version_number")),
    ):
        values = [str(known[key]) for key in keys if known.get(key)]
        facts.put(field, values[0] if values else unknown, source)
    header = framework.ask(_cudnn_header, framework.homes(tf)) if cuda else None
    if isinstance(header, str):
        facts.put("built_cudnn", header, "cudnn_version.h in TensorFlow's include directory")
    capabilities = known.get("cuda_compute_capabilities")
    facts.put(
        "built_capabilities", architectures(capabilities) if capabilities else unknown, source
    )
    tensorrt = known.get("is_tensorrt_build")
    facts.put(
        "tensorrt_build",
        framework.ask(_linked_to_tensorrt) if tensorrt is None else bool(tensorrt),
        source,
    )
    facts.put("built_tensorrt", framework.ask(_linked_tensorrt), "get_linked_tensorrt_version")
    first = framework.version_of(tf).startswith("1.") if hasattr(tf, "__version__") else False
    facts.put(
        "gpus",
        framework.ask(_local_devices if first else _physical_devices, tf),
        "device_lib.list_local_devices" if first else "tf.config.list_physical_devices",
    )
    framework.put_settings(
        facts,
        tf32=lambda: tf.config.experimental.tensor_float_32_execution_enabled(),
        amp=lambda: tf.config.optimizer.get_experimental_options().get("auto_mixed_precision"),
        xla=lambda: tf.config.optimizer.get_jit() or False,
        mixed_precision=_keras_policy,
    )


def _cudnn_header(homes):
    """The cuDNN that TensorFlow was built with, to the patch level, by the header that its wheel holds."""
    for home in homes:
        path = os.path.join(home, "include/third_party/gpus/cudnn/include/cudnn_version.h")
        if os.path.isfile(path):
            text = files.read(path, 1 << 16).decode("ascii", "replace")
            numbers = dict(_CUDNN_NUMBER.findall(text))
            return ".".join(numbers[part] for part in ("MAJOR", "MINOR", "PATCHLEVEL"))
    return None


def _keras_policy():
    """Keras's global precision policy, where importing TensorFlow brought Keras along."""
    keras = sys.modules.get("keras") or sys.modules.get("tf_keras")
    return keras.mixed_precision.dtype_policy().name if keras is not None else None


def build_info(tf):
    """The build's own record, as a dict: of TensorFlow 2.3 and later, or what older ones keep of it."""
    if hasattr(tf.sysconfig, "get_build_info"):
        return dict(tf.sysconfig.get_build_info())
    from tensorflow.python.platform import build_info as record

    kept = {key: value for key, value in vars(record).items() if not key.startswith("_")}
    if isinstance(kept.get("build_info"), dict):
        kept.update(kept.pop("build_info"))
    return {
        key: value for key, value in kept.items() if isinstance(value, (str, bool, list, tuple))
    }


def architectures(capabilities):
    """TensorFlow's build list in the snapshot's terms: "sm_80" has SASS, "compute_90" has PTX.

    To its build "compute_90" and "9.0" mean both, and "sm_80" means SASS alone (its configure.py).
    """
    found = []
    for capability in capabilities:
        word = str(capability).strip()
        digits = word.replace("compute_", "").replace("sm_", "").replace(".", "")
        names = (
            ["sm_" + digits] if word.startswith("sm_") else ["sm_" + digits, "compute_" + digits]
        )
        found += [name for name in names if name not in found]
    return found


def _linked_to_tensorrt():
    module = _tensorrt_module("is_tensorrt_enabled")
    return _UNSAID if module is None else bool(module.is_tensorrt_enabled())


def _linked_tensorrt():
    """The TensorRT that TensorFlow was compiled with; its versions have kept that in three modules."""
    module = _tensorrt_module("get_linked_tensorrt_version")
    if module is None:
        return _UNSAID
    version = ".".join(str(int(number)) for number in module.get_linked_tensorrt_version())
    return unavailable("absent", "built without TensorRT") if version == "0.0.0" else version


def _tensorrt_module(function):
    for name in (
        "tensorflow.compiler.tf2tensorrt._pywrap_py_utils",
        "tensorflow.compiler.tf2tensorrt.wrap_py_utils",
        "tensorflow.python.compiler.tensorrt.wrap_conversion",
    ):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(module, function):
            return module
    return None


def _physical_devices(tf):
    """TensorFlow 2's GPUs. It lists them without taking their memory, and tells no PCI address."""
    found = []
    for device in tf.config.list_physical_devices("GPU"):
        details = framework.ask(tf.config.experimental.get_device_details, device)
        details = {} if is_unavailable(details) else details
        gpu = {"name": str(details.get("device_name") or device.name), "description": device.name}
        gpu["pci_address"] = unavailable("not-supported", "TensorFlow 2 does not tell")
        capability = details.get("compute_capability")
        if capability:
            gpu["compute_capability"] = ".".join(str(number) for number in capability)
        found.append(gpu)
    return found


def _local_devices(tf):
    """TensorFlow 1's GPUs. It lists them by making them ready, which is what allow-growth is set for."""
    from tensorflow.python.client import device_lib

    return [
        local_gpu(device.name, device.physical_device_desc)
        for device in device_lib.list_local_devices()
        if device.device_type == "GPU"
    ]


def local_gpu(name, description):
    """A FrameworkGpu's facts from TensorFlow 1's words about a device."""
    gpu = {"name": name, "description": description}
    product, found, rest = description.partition("name: ")[2].partition(", pci bus id: ")
    match = _DESCRIPTION.match(rest) if found else None
    if match:
        gpu["name"] = product
        gpu["pci_address"] = match.group("pci").lower()
        if match.group("capability"):
            gpu["compute_capability"] = match.group("capability")
    return gpu
