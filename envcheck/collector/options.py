"""What can run on the GPUs: one definition of these options, for both command lines."""

import argparse

from .kernels import LEVELS, MODES

LOOKS = ("quick", "standard", "deep")  # facts; and micro-kernels; and acceleration systems
_NAMES = ("kernels", "gpu", "modes", "busy_ok")


class Options(object):
    """What to run on the GPUs.

    products: the micro-kernels; levels, modes: of LEVELS and MODES, all where none is named. gpus:
    nvidia-smi's indices, all where none is named. busy_ok: on GPUs that are in use, too. systems: names
    of acceleration systems.
    """

    def __init__(
        self,
        levels=(),
        modes=(),
        gpus=None,
        busy_ok=False,
        systems=(),
        products=True,
    ):
        self.levels = [level for level in LEVELS if products and level in (levels or LEVELS)]
        # FP32 is the control, and what the others are compared with.
        self.modes = [mode for mode in MODES if mode in (modes or MODES) or mode == "fp32"]
        self.gpus = sorted(set(gpus)) if gpus else None
        self.busy_ok = busy_ok
        self.systems = list(systems)
        self.products = products


def add_arguments(parser, near=None):
    """--level, and what chooses among kernels and GPUs; the group of the rarer ones."""
    parser.add_argument(
        "--level",
        choices=LOOKS,
        metavar="LEVEL",
        help="quick: facts; standard (default): and Tensor Cores; deep: and AMP, XLA, NCCL, …",
    )
    group = parser.add_argument_group(
        "micro-kernels",
        "Matrix products on each GPU show whether its Tensor Cores are used: L0 by the\n"
        "driver alone, L1 with the target's cuBLAS, L2 in its framework.",
    )
    group.add_argument(
        "--kernels",
        metavar="LEVELS",
        type=_words(LEVELS, near),
        help="these levels only, as L0 or L0,L1 (default: all)",
    )
    add_gpus(group)
    group.add_argument(
        "--modes",
        metavar="MODES",
        type=_words(MODES, near),
        help="these of %s; fp32, the control, always runs (default: all)" % ", ".join(MODES),
    )


def add_gpus(parser):
    """Which GPUs something runs on."""
    parser.add_argument(
        "--gpu",
        metavar="N",
        type=_indices,
        action=_Extend,
        help="on these GPUs only, numbered as in nvidia-smi: 0 or 0,2 (default: all that"
        " CUDA_VISIBLE_DEVICES leaves)",
    )
    parser.add_argument("--busy-ok", action="store_true", help="also on GPUs that are in use")


def given(arguments):
    """The options that choose among kernels and GPUs, as far as they were given."""
    return ["--" + name.replace("_", "-") for name in _NAMES if getattr(arguments, name)]


def chosen(arguments, systems=(), products=True):
    """The fields of Options that the parsed command line asks for."""
    return {
        "products": products,
        "levels": arguments.kernels or [],
        "modes": arguments.modes or [],
        "gpus": arguments.gpu or [],
        "busy_ok": arguments.busy_ok,
        "systems": list(systems),
    }


class _Extend(argparse.Action):
    """Python has "extend" from 3.8 on."""

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, (getattr(namespace, self.dest) or []) + values)


def _words(choices, near):
    """A converter of words with commas between them, in any case, to the choices that they name."""
    known = {choice.lower(): choice for choice in choices}

    def words(text):
        asked = [word.strip() for word in text.split(",")]
        for word in asked:
            if word.lower() not in known:
                hint = near(word, choices) if near is not None else ""
                raise argparse.ArgumentTypeError(
                    "%r is not one of %s%s" % (word, ", ".join(choices), hint)
                )
        return [known[word.lower()] for word in asked]

    return words


def _indices(text):
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 5 for word in words):
        raise argparse.ArgumentTypeError(
            "%r is not a GPU's number in nvidia-smi: write 0 or 0,2" % text
        )
    return [int(word) for word in words]
