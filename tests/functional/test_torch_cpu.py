"""The stack torch-cpu from a stand-in for PyTorch's index: torch from there, all else from the public one."""

from __future__ import annotations

import json
from pathlib import Path

from demo_stack import MINOR, sentence
from index_server import serve
from installing import Home
from wheel_maker import wheel

from envcheck.install.catalogue.load import load, seed

RELEASE = load("torch-cpu").releases[0]


def test_torch_comes_from_pytorch_s_index_and_from_no_other(tmp_path: Path) -> None:
    own, public = tmp_path / "own", tmp_path / "public"
    tag = f"cp{MINOR.replace('.', '')}"
    tags = f"{tag}-{tag}-manylinux_2_28_x86_64"
    wheel(own, "torch", RELEASE.version, tags=tags, requires=["filelock"])
    wheel(own, "filelock", "99")  # that index has copies of what torch needs, too
    wheel(public, "torch", "99.0", tags=tags)
    wheel(public, "filelock", "3.1")
    for pin in seed(MINOR):
        name, _, version = pin.partition("==")
        wheel(public, name, version)
    home = Home(tmp_path / "home")
    with serve(own, tmp_path / "a") as pytorch, serve(public, tmp_path / "b") as other:
        words = ["--python", MINOR, "--index", f"pytorch-cpu={pytorch.url}", "--index", other.url]
        run = home.envcheck("install", "torch-cpu", *words, "--plan", "--format", "json")
        assert run.returncode == 0, run.stderr.decode()
        found = {p["name"]: p["version"] for p in json.loads(run.stdout)["plan"]["packages"]}
        assert found["torch"] == RELEASE.version and found["filelock"] == "3.1"
        for path in own.glob("torch-*"):
            path.unlink()
        pytorch.refresh()
        later = Home(tmp_path / "later")  # without what uv's cache keeps of the index
        text = sentence(later.envcheck("install", "torch-cpu", *words, "--plan"), 4)
        assert "has no torch" in text
