"""The PTX that compares a result with the first one: how many words differ, and where one of them is."""

import struct

from ..kernels.ptx import entry
from ..systems.shared.transfers.pattern_ptx import loop, places

NAME = "compare"
GRID, BLOCK = 1024, 256
STEP = GRID * BLOCK  # words: areas are multiples of so many
DIFFERENCE = struct.Struct(
    "<IIII"
)  # words that differ; of one of them place, what it is, what it was
PARAMETERS = (
    ("u64", "found_address"),
    ("u64", "wanted_address"),
    ("u64", "difference_address"),
    ("u32", "iteration_count"),
)


def text(grid=GRID, block=BLOCK):
    """The kernel, without a header. grid, block: smaller ones are for simulators.

    Whoever adds his count to a zero is the first, and he alone writes down what he saw.
    """
    declared = [
        ".reg .pred %more, %bad, %new, %first",
        ".reg .b32 %thread, %block, %count, %index, %value, %other, %wrong, %one",
        ".reg .b32 %at, %was, %should, %before",
        ".reg .b64 %found, %wanted, %wide, %difference",
    ]
    before = [
        "mov.u32 %index, %thread",
        "ld.param.u64 %difference, [difference_address]",
        "cvta.to.global.u64 %difference, %difference",
        "mov.u32 %wrong, 0",
        "mov.u32 %at, 0",
        "mov.u32 %was, 0",
        "mov.u32 %should, 0",
    ]
    lines = [
        "ld.global.u32 %value, [%found]",
        "ld.global.u32 %other, [%wanted]",
        "setp.ne.u32 %bad, %value, %other",
        "selp.u32 %one, 1, 0, %bad",
        "add.u32 %wrong, %wrong, %one",
        "mul.lo.u32 %one, %wrong, %one",  # 1 at the first word of this thread's that differs
        "setp.eq.u32 %new, %one, 1",
        "selp.u32 %at, %index, %at, %new",
        "selp.u32 %was, %value, %was, %new",
        "selp.u32 %should, %other, %should, %new",
        "add.u64 %%found, %%found, %d" % (4 * grid * block),
        "add.u64 %%wanted, %%wanted, %d" % (4 * grid * block),
        "add.u32 %%index, %%index, %d" % (grid * block),
    ]
    after = [
        "setp.ne.u32 %bad, %wrong, 0",
        "mov.u32 %before, 1",
        "@%bad atom.global.add.u32 %before, [%difference], %wrong",
        "setp.eq.u32 %first, %before, 0",
        "@%first st.global.u32 [%difference+4], %at",
        "@%first st.global.u32 [%difference+8], %was",
        "@%first st.global.u32 [%difference+12], %should",
        "ret",
    ]
    body = places(block, 4, "found", "wanted") + before + loop(lines) + after
    return entry(NAME, PARAMETERS, block, declared, body)
