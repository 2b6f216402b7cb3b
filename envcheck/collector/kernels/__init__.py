"""The micro-kernels: matrix products whose bits, rate and hardware traces show which unit computed them.

Three levels, so that it can be seen where the chain breaks: L0, PTX through the driver alone; L1, the
target's own cuBLAS; L2, the target's framework. Each level of each GPU runs in a process of its own, which
streams its records (``records.py``); what dies costs one mode. Nothing is judged here.
"""

LEVELS = ("L0", "L1", "L2")
MODES = ("fp32", "tf32", "fp16", "bf16", "int8", "fp8")
REFERENCE = "fp32"  # the control of L0 and L1, and what the other modes' rates are compared with

# What a mode's matrices hold, and what comes out: (input, output) types. cuBLAS is timed with the last, which
# is what a framework asks it for.
TYPES = {
    "fp32": (("fp32", "fp32"),),
    "tf32": (("fp32", "fp32"),),
    "fp16": (("fp16", "fp32"), ("fp16", "fp16")),
    "bf16": (("bf16", "fp32"), ("bf16", "bf16")),
    "int8": (("int8", "int32"),),
    "fp8": (("e4m3", "fp32"),),
}
