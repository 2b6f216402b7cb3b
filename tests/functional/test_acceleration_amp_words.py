"""AMP's variables in a build: read out of stand-ins for NVIDIA's TensorFlow, compiled here and loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli import environment
from probing import compile_library
from processes import PATIENCE

import envcheck as package

ROOT = Path(package.__file__).parents[1]
AMP = "TF_ENABLE_AUTO_MIXED_PRECISION"

# As the rewrite's library has them: names that are handed to a function, and a message.
SOURCE = """
#include <stdlib.h>
#include <stdio.h>
int level(void) { return getenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL") != 0; }
"""
READS = 'int asked(void) { return getenv("%s") != 0; }\n'
REFUSES = 'void refuse(void) { puts("TF_ENABLE_AUTO_MIXED_PRECISION has no effect."); }\n'
LOOK = """
import ctypes, json, sys, types
sys.path.insert(0, {root!r})
from envcheck.collector.systems.shared.amp import tensorflow_words
ctypes.CDLL({library!r})
module = types.ModuleType("optimizer")
module.__file__ = {source!r}
sys.modules["tensorflow.python.training.optimizer"] = module
print(json.dumps(tensorflow_words.look([{folder!r}])))
"""


def look(library: Path, folder: Path, source: Path) -> list[object]:
    script = LOOK.format(
        root=str(ROOT), library=str(library), folder=str(folder), source=str(source)
    )
    argv = [sys.executable, "-B", "-c", script]
    done = subprocess.run(
        argv, env=environment(), capture_output=True, timeout=PATIENCE, check=True
    )
    answer: list[object] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    ("code", "optimizer", "told"),
    [
        ("", "", [[], True, False]),
        (READS % AMP, "", [[AMP], True, False]),
        (READS % f"{AMP}_GRAPH_REWRITE", "", [[f"{AMP}_GRAPH_REWRITE"], True, False]),
        ("", f"os.environ.get('{AMP}_LOSS_SCALING')", [[f"{AMP}_LOSS_SCALING"], True, False]),
        (READS % AMP + REFUSES, "", [[AMP], True, True]),
        (READS % f"{AMP}_IN_A_WAY", f"# {AMP} is gone", [[], True, False]),
    ],
    ids=["public", "one name", "another name", "in the source", "without effect", "longer names"],
)
def test_names_are_read_out_of_what_is_loaded(
    tmp_path: Path, code: str, optimizer: str, told: list[object]
) -> None:
    library = compile_library(SOURCE + code, tmp_path / "tensorflow", "libtensorflow.so.1")
    source = tmp_path / "optimizer.py"
    source.write_text(optimizer)
    assert look(library, tmp_path / "tensorflow", source) == told


def test_library_of_another_package_does_not_count(tmp_path: Path) -> None:
    library = compile_library(SOURCE + READS % AMP, tmp_path / "other", "libother.so")
    (tmp_path / "tensorflow").mkdir()
    source = tmp_path / "no such file.py"
    assert look(library, tmp_path / "tensorflow", source) == [[], False, False]


def test_package_behind_a_link_is_found(tmp_path: Path) -> None:
    library = compile_library(SOURCE + READS % AMP, tmp_path / "real", "libtensorflow.so.1")
    (tmp_path / "tensorflow").symlink_to(tmp_path / "real")
    told = look(library, tmp_path / "tensorflow", tmp_path / "none.py")
    assert told == [[AMP], True, False]
