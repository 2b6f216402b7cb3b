"""The files behind an import: what comes before an installed module, what an error names, what is cut off."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest
from test_packages_probe import install

from envcheck.collector.packaging import keras_2, loaded
from envcheck.collector.packaging.distributions import EVERY, find


@pytest.fixture(autouse=True)
def _fresh() -> None:
    loaded._names.cache_clear()
    loaded._installed_in.cache_clear()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site-packages with a torch, and a sys.path that ends with it."""
    place = tmp_path / "lib/python3.11/site-packages"
    install(place, "torch", "2.13.0", ("torch/__init__.py",))
    standard = [entry for entry in sys.path if entry and "-packages" not in entry]
    library = [entry for entry in standard if entry.startswith(loaded._LIBRARY)]
    monkeypatch.setattr(sys, "path", [*library, str(place)])
    return place


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["torch.py"], ["torch"]),
        (["torch/__init__.py"], ["torch"]),
        (["json.py"], ["json"]),  # of the standard library, and imported
        (["torch/notes.txt"], []),  # Python takes the package that has an __init__.py
        (["test.py", "os.py", "mine.py", "turtle.py"], []),
        (["torch.py", "__init__.py"], []),  # a package's own directory is not where programs start
    ],
)
def test_a_file_in_the_working_directory(
    tmp_path: Path, site: Path, files: list[str], found: list[str]
) -> None:
    for file in files:
        (tmp_path / "cwd" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cwd" / file).write_text("")
    shadows = loaded.shadows("torch", str(tmp_path / "cwd"), {}, True)
    assert [one["module"] for one in shadows] == found
    assert all(one["by"] == "cwd" and one["hides"] != one["file"] for one in shadows)
    assert loaded.shadows("torch", str(tmp_path / "cwd"), {"PYTHONSAFEPATH": "1"}, True) == []


def test_pythonpath_with_an_installed_torch_is_a_leak_and_no_shadow(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    install(other, "torch", "2.5.0", ("torch/__init__.py",))
    (other / "json.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(other), *sys.path])
    shadows = loaded.shadows("torch", "", {"PYTHONPATH": str(other)}, True)
    assert [(one["module"], one["by"]) for one in shadows] == [("json", "PYTHONPATH")]


def test_an_error_names_its_files_and_their_owners(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "libs/libstdc++.so.6"
    broken.parent.mkdir()
    broken.write_bytes(b"")
    (site / "torch/__init__.py").write_text(
        f"raise ImportError({str(broken) + ': file too short'!r})"
    )
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(ImportError) as caught:
        __import__("torch")
    files = loaded.of_error(caught.value, {"LD_LIBRARY_PATH": str(broken.parent)})
    first, second = (one for one in files if not one["path"].endswith("probe.py"))
    assert (first["path"], first["brought_by"], first["cut_off"]) == (
        str(broken),
        "LD_LIBRARY_PATH",
        True,
    )
    assert (second["distribution"], second["named"]) == ("torch", False)


def test_a_library_is_cut_off_by_its_own_headers(tmp_path: Path) -> None:
    real = Path(
        subprocess.check_output(
            [sys.executable, "-c", "import _ctypes; print(_ctypes.__file__)"], text=True
        ).strip()
    )
    whole = real.read_bytes()
    path = tmp_path / "lib.so"
    for content, expected in [
        (whole, False),
        (whole[: len(whole) // 2], True),
        (whole[:20], True),
        (b"", True),
        (b"INPUT(-lfoo)", False),  # a linker script
        (whole[:40] + struct.pack("<Q", 0) + whole[48:58] + bytes(6), False),  # without sections
    ]:
        path.write_bytes(content)
        assert loaded.is_cut_off(str(path)) is expected


@pytest.mark.parametrize(
    ("requires", "code", "found"),
    [
        ("tensorflow (>=1.9.0)", "import tf_keras", "tf_keras"),
        ("keras>=2.2", "from keras.engine import Layer", "keras.engine"),
        ("keras>=2.2", "from keras import layers", ""),
        ("tensorflow ; extra == 'tf'", "try:\n    import tf_keras as keras", "tf_keras"),
        ("tensorflow ; extra == 'tf'", "from keras.engine import Layer", ""),  # other halves do
        ("numpy", "import tf_keras", ""),
    ],
)
def test_code_for_keras_2(tmp_path: Path, requires: str, code: str, found: str) -> None:
    install(tmp_path, "deepface", "0.0.89", ("deepface/a.py",), requires=(requires,))
    (tmp_path / "deepface/a.py").write_text(code)
    (one,) = find([str(tmp_path)], EVERY)
    assert keras_2.needs(one) == found
