"""Files, names and paths as odd machines have them: none of them stops the collector."""

from __future__ import annotations

import errno
import importlib
import os
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.collector import account, facts, files
from envcheck.collector.nvml import binding as nvml_binding
from envcheck.collector.nvml import gpu as nvml_gpu
from envcheck.collector.packaging import distributions
from envcheck.collector.redact import Redactor
from envcheck.collector.runtime import forked, shadows
from envcheck.collector.runtime.context import Context


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    for name in ("fifo", "link"):
        with pytest.raises(OSError, match="not a regular file"):
            files.open_regular(str(tmp_path / name))
    with pytest.raises(IsADirectoryError):
        files.open_regular(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        files.open_regular(str(tmp_path / "none"))
    with pytest.raises(OSError, match="not a regular file"):
        files.open_regular("/dev/zero")


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    content = bytes(range(256)) * 2048
    (tmp_path / "file").write_bytes(content)
    for limit in (0, 1, 1 << 18, (1 << 18) + 1, len(content), len(content) + 1):
        assert files.read(str(tmp_path / "file"), limit) == content[:limit]


def test_metadata_that_is_a_fifo_holds_nobody_up(tmp_path: Path) -> None:
    home = tmp_path / "nvidia_odd-1.0.dist-info"
    home.mkdir()
    for name in ("METADATA", "RECORD", "INSTALLER"):
        os.mkfifo(home / name)
    (found,) = distributions.find([str(tmp_path)])
    assert (found.name, found.version) == ("nvidia_odd", "1.0")
    with pytest.raises(OSError, match="not a regular file"):
        list(distributions.recorded(found))


@given(st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_a_name_of_any_bytes_is_text(name: bytes) -> None:
    """As Python decodes it in a UTF-8 locale, and in the C locale up to 3.6: the same text."""
    utf8 = facts.plain(name.decode("utf-8", "surrogateescape"))
    ascii_only = facts.plain(name.decode("ascii", "surrogateescape"))
    assert utf8 == ascii_only == name.decode("utf-8", "replace")


@given(st.text(st.characters(codec=None), max_size=20))
@settings(max_examples=200, deadline=None)
def test_plain_text_can_be_encoded(text: str) -> None:
    plain = facts.plain(text)
    plain.encode("utf-8")
    assert facts.plain(plain) == plain


def test_a_home_that_cannot_be_decoded_is_redacted() -> None:
    home = b"/data/b\xff\xc3\xbc".decode("ascii", "surrogateescape")
    text = facts._clean({"path": home + "/.cache"})["path"]
    redactor = Redactor("box", "user", facts.plain(home))
    assert redactor.redact({"path": text}) == {"path": "<home-1>/.cache"}


def test_names_and_homes_without_asking_the_network(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    context = Context({}, root=str(tmp_path))
    assert (account.entry(context), account.name(context), account.home(context)) == (None, "", "")
    (tmp_path / "etc/passwd").write_bytes(
        b"broken\n\xff:x:%d:0:\xff:/h\xff/:/bin/sh\n" % os.geteuid()
    )
    assert (account.name(context), account.home(context)) == ("\ufffd", "/h\ufffd")
    context = Context({"HOME": "/", "USER": "somebody"}, root=str(tmp_path / "none"))
    assert (account.name(context), account.home(context)) == ("somebody", "/")


def test_what_lies_on_pythonpath_is_left_to_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("colorsys", "this_is_new"):
        (tmp_path / f"{name}.py").write_text("WHOSE = 'theirs'\n")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "/nowhere", str(tmp_path)]))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with shadows.hidden():
        assert str(tmp_path) not in sys.path
        assert not hasattr(importlib.import_module("colorsys"), "WHOSE")
        with pytest.raises(ImportError):
            importlib.import_module("this_is_new")
    assert sys.path[0] == str(tmp_path)
    assert importlib.import_module("colorsys").WHOSE == "theirs"
    monkeypatch.delitem(sys.modules, "colorsys")


def test_without_pythonpath_nothing_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    before = list(sys.path)
    with shadows.hidden():
        assert sys.path == before
        importlib.import_module("colorsys")
    assert "colorsys" in sys.modules


def refuse() -> int:
    raise OSError(errno.EAGAIN, "Resource temporarily unavailable")


def test_no_room_for_another_process_is_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))
    ((outcome, fact),) = forked.call_all([lambda: 1], 1.0)
    assert outcome == "error"
    assert "Resource temporarily unavailable" in fact["detail"]
    answers = forked.each(["one", "two"], lambda item, tell: True, 1.0, 1.0, "tried")
    assert ["Resource temporarily unavailable" in a.failure["detail"] for a in answers] == [
        True
    ] * 2
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_an_old_bindings_ways_are_not_errors_of_the_gpu() -> None:
    error = TypeError("nvmlDeviceGetGspFirmwareVersion() missing 1 required positional argument")
    assert nvml_binding.reason_fact(error)["unavailable"] == "not-supported"
    assert nvml_binding.reason_fact(TypeError("unhashable type"))["unavailable"] == "error"
    assert nvml_gpu.how_many(map(str, [1, 2, 3])) == nvml_gpu.how_many([1, 2, 3]) == 3


def test_the_bindings_version_is_told_by_what_stands_beside_it(tmp_path: Path) -> None:
    module = tmp_path / "site/pynvml.py"
    package = tmp_path / "site/pynvml/__init__.py"
    package.parent.mkdir(parents=True)
    assert nvml_binding.version(str(module)) is None
    (tmp_path / "site/nvidia_ml_py-12.560.30.dist-info").mkdir()
    (tmp_path / "site/pynvml-8.0.4.dist-info").mkdir()
    assert nvml_binding.version(str(module)) == "12.560.30"
    assert nvml_binding.version(str(package)) == "8.0.4"
    (tmp_path / "site/nvidia_ml_py-11.450.51.dist-info").mkdir()
    assert nvml_binding.version(str(module)) is None  # nobody knows which of them wrote it


def test_the_bindings_version_travels_in_the_single_file(tmp_path: Path) -> None:
    vendor = "envcheck/collector/vendor/"
    with zipfile.ZipFile(tmp_path / "one.pyz", "w") as archive:
        archive.writestr(vendor + "pynvml.py", "")
        archive.writestr(vendor + nvml_binding.BUNDLED_VERSION, "13.590.48\n")
    assert nvml_binding.version(str(tmp_path / "one.pyz" / vendor / "pynvml.py")) == "13.590.48"
    with zipfile.ZipFile(tmp_path / "none.pyz", "w") as archive:
        archive.writestr(vendor + "pynvml.py", "")
    assert nvml_binding.version(str(tmp_path / "none.pyz" / vendor / "pynvml.py")) is None
    assert nvml_binding.version("/nowhere/pynvml.py") is None
