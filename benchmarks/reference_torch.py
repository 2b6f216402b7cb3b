"""The reference for benchmarks/tensor_cores.py: PyTorch's matmul, timed by Triton's do_bench (median).

Run by the target's interpreter, which has PyTorch and Triton: ``python reference_torch.py N MODE...``
prints {"mode": TFLOP/s} as JSON.
"""

import json
import sys

import torch
from triton.testing import do_bench

TYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}


def tflops(mode: str, n: int) -> float:
    """TFLOP/s of an n x n x n product of random matrices in this mode."""
    torch.backends.cuda.matmul.allow_tf32 = mode == "tf32"
    a = torch.randn(n, n, device="cuda", dtype=TYPES[mode])
    b = torch.randn(n, n, device="cuda", dtype=TYPES[mode])
    milliseconds = do_bench(lambda: torch.matmul(a, b), return_mode="median")
    return 2 * n**3 / float(milliseconds) / 1e9


if __name__ == "__main__":
    print(json.dumps({mode: tflops(mode, int(sys.argv[1])) for mode in sys.argv[2:]}))
