"""PyTorch in the target: what it was built with, which GPUs it sees, how it is set."""

from .. import framework
from ..facts import unavailable

DOCUMENT = "target"
IMPORTS = "torch"
DEADLINE = 90


def collect(context):
    return framework.collect(context, "torch", describe)


def describe(torch, facts):
    cuda = framework.ask(lambda: torch.version.cuda)
    facts.put(
        "cuda_build", framework.ask(lambda: torch.version.cuda is not None), "torch.version.cuda"
    )
    facts.put(
        "built_cuda", cuda or unavailable("absent", "built without CUDA"), "torch.version.cuda"
    )
    facts.put("built_cudnn", framework.ask(_cudnn, torch), "torch._C._cudnn.getCompileVersion")
    facts.put(
        "built_capabilities", framework.ask(_architectures, torch), "torch._C._cuda_getArchFlags"
    )
    facts.put("tensorrt_build", False, "PyTorch links no TensorRT")
    facts.put("gpus", framework.ask(_gpus, torch), "torch.cuda")
    framework.put_settings(
        facts,
        tf32=lambda: torch.backends.cuda.matmul.allow_tf32,
        tf32_cudnn=lambda: torch.backends.cudnn.allow_tf32,
        matmul_precision=lambda: torch.get_float32_matmul_precision(),
        amp=lambda: torch.is_autocast_enabled(),
        cudnn=lambda: torch.backends.cudnn.version(),
    )


def _cudnn(torch):
    """The cuDNN that torch was compiled against, "9.1.0"; the one it loaded is among its libraries."""
    if torch.version.cuda is None:
        return unavailable("absent", "built without CUDA")
    numbers = torch._C._cudnn.getCompileVersion()
    return ".".join(str(number) for number in numbers)


def _architectures(torch):
    """ "sm_80" has SASS, "compute_90" has PTX. torch.cuda.get_arch_list says nothing without a GPU."""
    if torch.version.cuda is None:
        return unavailable("absent", "built without CUDA")
    try:
        return torch._C._cuda_getArchFlags().split()
    except AttributeError:  # private: another PyTorch may not have it
        return [str(one) for one in torch.cuda.get_arch_list()]


def _gpus(torch):
    if torch.version.cuda is None or not torch.cuda.is_available():
        if torch.version.cuda is not None:
            try:
                torch.cuda.init()
            except BaseException as error:
                framework.say("torch.cuda.init: %s: %s" % (type(error).__name__, error))
        return []
    return [
        _gpu(torch.cuda.get_device_properties(index)) for index in range(torch.cuda.device_count())
    ]


def _gpu(properties):
    gpu = {
        "name": str(properties.name),
        "description": str(properties),
        "compute_capability": "%d.%d" % (properties.major, properties.minor),
    }
    try:
        gpu["pci_address"] = "%04x:%02x:%02x.0" % (
            properties.pci_domain_id,
            properties.pci_bus_id,
            properties.pci_device_id,
        )
    except AttributeError:
        gpu["pci_address"] = unavailable("not-supported", "this PyTorch does not tell")
    return gpu
