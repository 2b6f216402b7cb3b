"""The PTX text of a product's module: a signature kernel for each of its instructions, one rate kernel."""

from . import ptx_rate, ptx_signature
from .ptx import header


def text(product):
    """PTX of a ``ptx.Product``; its kernels are ``ptx_signature.name`` of each instruction and "rate"."""
    kernels = [ptx_signature.kernel(instruction) for instruction in product.instructions]
    return "\n".join([header(product)] + kernels + [ptx_rate.kernel(product.instructions[0])])
