"""The PTX of memory tests: write a pattern, count what differs from it, and read.

Word number i of a pattern is (i * FACTOR + seed) ^ mask: no two words of an area are equal, so that what
landed at another address shows, too. Each kernel runs on GRID blocks, and each iteration of its loop takes
one place a thread, beside its neighbours' places; areas are multiples of STEP bytes.
"""

import struct

from ....kernels.ptx import Product, entry, header

FACTOR = 2177342782468422677  # odd, below 2^63
MASK = (1 << 64) - 1
GRID, BLOCK = 1024, 256
STEP = GRID * BLOCK * 16  # bytes: of one iteration of the widest loop
RESULT = struct.Struct("<IIIII")  # wrong words, first, last, differing bits low and high
NOTHING_WRONG = (0, 0xFFFFFFFF, 0, 0, 0)

# Driver 384 and later take it, for all chips since Kepler.
_LANGUAGE = Product((0, 0), (99, 9), "6.0", "sm_30", ())
_DECLARED = [
    ".reg .pred %more",
    ".reg .b32 %thread, %block, %count",
    ".reg .b64 %place, %wide",
]


def text(grid=GRID, block=BLOCK):
    """The PTX of all kernels. grid, block: smaller ones are for simulators."""
    kernels = [_write(grid, block), _check(grid, block), _read(grid, block)]
    return "\n".join([header(_LANGUAGE)] + kernels)


def places(block, size, *names):
    """Each address moves to the thread's own place, ``size`` bytes wide."""
    body = [
        "mov.u32 %thread, %tid.x",
        "mov.u32 %block, %ctaid.x",
        "mad.lo.u32 %%thread, %%block, %d, %%thread" % block,
    ]
    for name in names:
        body += [
            "ld.param.u64 %%%s, [%s_address]" % (name, name),
            "cvta.to.global.u64 %%%s, %%%s" % (name, name),
            "mul.wide.u32 %%wide, %%thread, %d" % size,
            "add.u64 %%%s, %%%s, %%wide" % (name, name),
        ]
    return body + ["ld.param.u32 %count, [iteration_count]"]


def loop(lines):
    body = ["NEXT:"] + lines
    return body + ["sub.u32 %count, %count, 1", "setp.ne.u32 %more, %count, 0", "@%more bra NEXT"]


def _kernel(name, grid, block, parameters, declared, size, before, lines, after):
    """An area's kernel, of whose loop an iteration takes ``size`` bytes a thread."""
    parameters = (("u64", "place_address"),) + parameters + (("u32", "iteration_count"),)
    step = ["add.u64 %%place, %%place, %d" % (size * grid * block)]
    body = places(block, size, "place") + before + loop(lines + step) + after + ["ret"]
    return entry(name, parameters, block, _DECLARED + declared, body)


_PATTERN = (("u64", "seed"), ("u64", "mask"))
_WORDS = [".reg .b64 %index, %factor, %seed, %mask, %value"]
_FIRST_WORD = [
    "ld.param.u64 %seed, [seed]",
    "ld.param.u64 %mask, [mask]",
    "mov.u64 %%factor, %d" % FACTOR,
    "cvt.u64.u32 %index, %thread",
]
_VALUE = ["mad.lo.u64 %value, %index, %factor, %seed", "xor.b64 %value, %value, %mask"]


_RESULT = ["ld.param.u64 %result, [result_address]", "cvta.to.global.u64 %result, %result"]


def _write(grid, block):
    lines = [
        *_VALUE,
        "st.global.u64 [%place], %value",
        "add.u64 %%index, %%index, %d" % (grid * block),
    ]
    return _kernel("write", grid, block, _PATTERN, _WORDS, 8, _FIRST_WORD, lines, [])


def _check(grid, block):
    declared = [
        *_WORDS,
        ".reg .pred %bad",
        ".reg .b32 %wrong, %one, %number, %low, %high, %seen, %left, %right",
        ".reg .b64 %found, %differs, %bits, %result",
    ]
    before = [
        *_FIRST_WORD,
        *_RESULT,
        "mov.u32 %wrong, 0",
        "mov.u32 %low, 4294967295",
        "mov.u32 %high, 0",
        "mov.u64 %bits, 0",
    ]
    lines = [
        "ld.global.u64 %found, [%place]",
        *_VALUE,
        "xor.b64 %differs, %found, %value",
        "setp.ne.u64 %bad, %differs, 0",
        "selp.u32 %one, 1, 0, %bad",
        "add.u32 %wrong, %wrong, %one",
        "cvt.u32.u64 %number, %index",
        "selp.u32 %seen, %number, %low, %bad",
        "min.u32 %low, %low, %seen",
        "selp.u32 %seen, %number, %high, %bad",
        "max.u32 %high, %high, %seen",
        "or.b64 %bits, %bits, %differs",
        "add.u64 %%index, %%index, %d" % (grid * block),
    ]
    after = [
        "cvt.u32.u64 %left, %bits",
        "shr.u64 %bits, %bits, 32",
        "cvt.u32.u64 %right, %bits",
        "setp.ne.u32 %bad, %wrong, 0",
        "@%bad red.global.add.u32 [%result], %wrong",
        "@%bad red.global.min.u32 [%result+4], %low",
        "@%bad red.global.max.u32 [%result+8], %high",
        "@%bad red.global.or.b32 [%result+12], %left",
        "@%bad red.global.or.b32 [%result+16], %right",
    ]
    parameters = _PATTERN + (("u64", "result_address"),)
    return _kernel("check", grid, block, parameters, declared, 8, before, lines, after)


def _read(grid, block):
    """Reads all, and would write it down if it came to one certain value: the compiler must read."""
    declared = [".reg .pred %rare", ".reg .b64 %left, %right, %sum, %result"]
    before = [*_RESULT, "mov.u64 %sum, 0"]
    lines = [
        "ld.global.v2.u64 {%left, %right}, [%place]",
        "xor.b64 %sum, %sum, %left",
        "xor.b64 %sum, %sum, %right",
    ]
    after = ["setp.eq.u64 %%rare, %%sum, %d" % FACTOR, "@%rare st.global.u64 [%result], %sum"]
    parameters = (("u64", "result_address"),)
    return _kernel("read", grid, block, parameters, declared, 16, before, lines, after)
