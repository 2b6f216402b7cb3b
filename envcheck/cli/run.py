"""`envcheck run`: a command in what was installed, started as it should be."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..exit_codes import NotStarted
from ..findings.shell import word
from ..install.start import container, wheel
from ..install.transaction.layout import Version
from . import files, messages, starting
from .parser import Parser

EPILOG = """\
examples:
  envcheck run python train.py                what was installed last
  envcheck run --name ngc-tf1 -- nvidia-smi -L
  envcheck run -v /data:/data:ro -e NCCL_DEBUG=INFO python train.py
  envcheck run -p 8888 jupyter lab --ip=0.0.0.0
  envcheck run --print=compose python train.py > compose.yaml"""

# As options of their own, so that a command may follow --print.
PRINT = {
    "engine": "the engine's command line, to copy",
    "compose": "a compose file",
    "srun": "a line for Slurm with pyxis",
    "apptainer": "a line for apptainer",
}

MORE = f"""\
In a container: the working directory is mounted at its own path, files belong
to you, and the command is not started where GPUs do not arrive. In a virtual
environment it gets what activation sets; envcheck doctor says whether the GPUs
are healthy. CUDA_VISIBLE_DEVICES chooses among the GPUs in both.
{starting.CODES}"""


def add_arguments(parser: Parser) -> None:
    parser.epilog, parser.more = EPILOG, MORE
    parser.usage = "envcheck run [options] [--] COMMAND [ARGUMENT ...]"
    starting.add_arguments(parser)
    shown = parser.add_argument_group("print instead of starting (containers)")
    for form, what in PRINT.items():
        options = [f"--print={form}"] if form != "engine" else ["--print", "--print=engine"]
        shown.add_argument(*options, dest="form", action="store_const", const=form, help=what)
        parser.rare(options[0])
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="the command and its arguments; what follows it is its own",
    )


def run(arguments: argparse.Namespace) -> int:
    with starting.own_codes():
        words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
        if not words:
            raise NotStarted("there is no command to run", hint="envcheck run python train.py")
        options = starting.options(arguments)
        if arguments.form:
            version = starting.find(arguments)
            if not version.is_container:
                raise NotStarted(
                    f"{version.id} is an environment of wheels, and --print is for containers",
                    hint=f". {word(str(version.directory / 'bin' / 'activate'))}",
                )
            files.write(None, container.printed(version, words, options, arguments.form))
            return 0
        version = starting.version(arguments)
        if version.is_container:
            container.run(version, words, options)
        starting.refuse_of_containers(options, version)
        _say_what_breaks(version, words)
        wheel.run(version, words, options)
    raise AssertionError("it became another program")


def _say_what_breaks(version: Version, words: Sequence[str]) -> None:
    """Of a pip that is about to run, which then does as it was told."""
    if {"install", "uninstall"}.isdisjoint(words):
        return
    from ..install.start import breaking

    for sentence in breaking.sentences(version.directory, words):
        messages.say(sentence)
