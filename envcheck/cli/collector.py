"""`envcheck collector`: write the collector as one file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ..exit_codes import ExitCode, UsageError
from . import files, messages
from .options import option

EPILOG = """\
on the other machine:
  python3 envcheck-collector.pyz > machine.json
or through ssh, with envcheck collector --output envcheck-collector.py:
  ssh HOST python3 - < envcheck-collector.py > machine.json
then here:
  envcheck doctor --from machine.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    words = "a name ending in .pyz or .py (default: %(default)s)"
    option(parser, "--output", "FILE", words, default="envcheck-collector.pyz")


def run(arguments: argparse.Namespace) -> int:
    from .. import plugins, single_file

    output = arguments.output
    builders = {".pyz": single_file.build_pyz, ".py": single_file.build_script}
    suffix = Path(output).suffix
    if suffix not in builders:
        raise UsageError(f"--output {output}: the name must end in .pyz or .py")
    files.check_writable(output)
    probes = plugins.probe_files()
    for problem in plugins.problems():
        messages.say(f"{problem.package}: the probe {problem.name} is not in it: {problem.reason}")
    files.write(output, builders[suffix](probes))
    if Path(output).is_file():
        umask = os.umask(0)
        os.umask(umask)
        Path(output).chmod(0o777 & ~umask)
    messages.say(f"wrote {output}")
    return ExitCode.HEALTHY
