"""`envcheck run`: a command in what was installed, started as it should be."""

from __future__ import annotations

import argparse

from ..exit_codes import NotStarted
from ..install.start import container, wheel
from . import starting
from .options import option
from .parser import Parser

EPILOG = """\
examples:
  envcheck run python train.py                what was installed last
  envcheck run --name ngc-tf1 -- nvidia-smi -L
  envcheck run -v /data:/data:ro -e NCCL_DEBUG=INFO python train.py
  envcheck run --engine-arg=-p8888:8888 jupyter lab --ip=0.0.0.0

In a container: the working directory is mounted at its own path, files belong
to you, and the command is not started where GPUs do not arrive. In a virtual
environment it gets what activation sets. CUDA_VISIBLE_DEVICES chooses among
the GPUs in both.

"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG + starting.CODES
    parser.usage = "envcheck run [options] [--] COMMAND [ARGUMENT ...]"
    starting.add_arguments(parser)
    words = "the command and its arguments; options after it belong to it"
    option(parser, "words", "COMMAND", words, nargs=argparse.REMAINDER)


def run(arguments: argparse.Namespace) -> int:
    with starting.own_codes():
        words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
        if not words:
            raise NotStarted("there is no command to run", hint="envcheck run python train.py")
        options = starting.options(arguments)
        version = starting.version(arguments)
        if version.is_container:
            container.run(version, words, options)
        wheel.run(version, words, options)
    raise AssertionError("it became another program")
