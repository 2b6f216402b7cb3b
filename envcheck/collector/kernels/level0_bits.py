"""The bits of level 0: every signature vector in a small tile of its own, all tiles in one launch."""

import ctypes
from collections import Counter

from . import matrices, ptx_signature
from .memory import borrowed
from .vectors import S2H, SETS, SIZES, VECTORS, W16, encode, pack, width_vectors

LENGTH = 64  # of the dot products: as long as the longest vector needs
_UNWRITTEN = 0xFF


def vectors(instruction):
    """[(vector, accumulator input as a word)] for an instruction's types."""
    types = (instruction.input_type, instruction.output_type)
    chosen = [(VECTORS[name], 0) for name in SETS[types]]
    if types[1] == "fp32" and types[0] != "e4m3":  # in which W16's terms are not exact
        chosen.append((W16, encode(1, types[1])))
    if types[1] == "fp16":
        chosen.append((S2H, 0))
    if types[1] in ("fp32", "fp16"):
        chosen += [(vector, 0) for vector in width_vectors(*types)]
    return chosen


def signatures(driver, module, instruction):
    """The Signature records of an instruction. Raises CudaError."""
    chosen = vectors(instruction)
    result = _launch(driver, module.function(ptx_signature.name(instruction)), instruction, chosen)
    size = SIZES[instruction.output_type]
    tile = len(result) // len(chosen)
    found = []
    for number, (vector, accumulator) in enumerate(chosen):
        piece = result[number * tile : (number + 1) * tile]
        counts = Counter(piece[at : at + size] for at in range(0, tile, size))
        found.append(
            matrices.record(
                vector,
                instruction.input_type,
                instruction.output_type,
                LENGTH,
                counts,
                accumulator or None,
            )
        )
    return found


def _launch(driver, function, instruction, chosen):
    """D of all tiles, as bytes."""
    a, b, c = operands(instruction, chosen)
    with borrowed(driver, (len(a), len(b), len(c), len(c))) as (at_a, at_b, at_c, at_d):
        driver.upload(at_a, a)
        driver.upload(at_b, b)
        driver.upload(at_c, c)
        driver.fill(at_d, _UNWRITTEN, len(c))
        steps = ctypes.c_uint32(LENGTH // instruction.shape[2])
        arguments = list(map(ctypes.c_uint64, (at_a, at_b, at_c, at_d))) + [steps]
        driver.launch(function, len(chosen), instruction.threads, arguments)
        return driver.download(at_d, len(c))


def operands(instruction, chosen):
    """A, B and C of all tiles, as bytes, the way ``ptx_signature`` wants them."""
    m, n, _k = instruction.shape
    kind = instruction.input_type
    a = b"".join(matrices.left([vector], kind, m, LENGTH) for vector, _c in chosen)
    b = b"".join(matrices.right([vector], kind, n, LENGTH) for vector, _c in chosen)
    words = [pack(accumulator, instruction.output_type) for _vector, accumulator in chosen]
    return a, b, b"".join(word * (m * n) for word in words)
