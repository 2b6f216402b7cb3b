"""`envcheck run pip …`: what it would break is said before it runs, and only what is sure."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.install.start import breaking

INSTALLED = {
    "jax": ("0.12.0.1", ["numpy>=2.0", "scipy>=1.14", 'old>=9; python_version < "3.0"']),
    "scipy": ("1.18.1", ["numpy<2.9,>=1.26"]),
    "numpy": ("2.5.5", []),
    "keras": ("3.9", ["jax; extra == 'jax'", "absl-py"]),
    "absl-py": ("2.1", []),
}


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    for name, (version, requires) in INSTALLED.items():
        info = tmp_path / "lib/python3.12/site-packages" / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = [f"Requires-Dist: {one}" for one in requires]
        text = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *lines, ""]
        (info / "METADATA").write_text("\n".join(text))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("pip install numpy<2", ["jax 0.12.0.1, which needs numpy>=2.0 (numpy<2)"]),
        ("pip3 install -U pandas numpy==1.26.4", ["jax 0.12.0.1, which needs numpy>=2.0"]),
        ("python -m pip install numpy~=1.26", ["jax 0.12.0.1"]),
        ("/x/bin/python3.12 -m pip install NumPy<2", ["jax 0.12.0.1"]),
        ("uv pip install numpy<1", ["jax 0.12.0.1", "scipy 1.18.1"]),
        ("pip install numpy==2.9", ["scipy 1.18.1, which needs numpy<2.9,>=1.26"]),
        ("pip uninstall -y absl-py", ["keras 3.9, which needs absl-py (removing absl-py)"]),
        ("pip install numpy", []),
        ("pip install numpy>=2", []),
        ("pip install numpy<2.5", []),
        ("pip install numpy>2.5.5", []),
        ("pip install numpy<2 jax", ["scipy"][:0]),
        ("pip install old==1", []),
        ("pip install -r numpy<2", []),
        ("pip install ./numpy-1.26.whl https://host/numpy-1.whl", []),
        ("pip install numpy===what", []),
        ("pip list", []),
        ("python train.py install numpy<2", []),
        ("pip", []),
    ],
)
def test_what_breaks_is_said_and_nothing_else(
    environment: Path, command: str, told: list[str]
) -> None:
    found = breaking.sentences(environment, command.split())
    assert len(found) == len(told), found
    for sentence, words in zip(sorted(found), sorted(told), strict=True):
        assert sentence.startswith(f"this breaks {words}")
