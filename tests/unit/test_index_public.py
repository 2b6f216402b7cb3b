"""Which index the user's pip and uv are configured with, and what envcheck does not follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.exit_codes import UsageError
from envcheck.install.network.pip_settings import Setting, pip_settings
from envcheck.install.network.public_index import PublicIndex, choose

UV = "--index-url https://uv.example/simple\n"


def chosen(settings: dict[str, Setting], uv: str = UV) -> PublicIndex:
    return choose(settings, lambda: uv)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """An environment whose pip files are all below tmp_path."""
    return {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }


def test_uv_is_asked_where_pip_says_nothing() -> None:
    found = chosen({})
    assert (found.url, found.origin, found.remarks) == ("https://uv.example/simple", "uv", [])


@pytest.mark.parametrize("value", ["true", "1", "Yes", "on"])
def test_no_index_is_an_error_that_names_it(value: str) -> None:
    with pytest.raises(UsageError, match=r"no-index in /etc/pip\.conf") as caught:
        chosen({"no-index": Setting(value, "/etc/pip.conf")})
    assert "--offline" in caught.value.hint


def test_the_files_in_pips_order(machine: dict[str, str], tmp_path: Path) -> None:
    order = [
        tmp_path / "xdg/pip/pip.conf",
        tmp_path / "home/.pip/pip.conf",
        tmp_path / "config/pip/pip.conf",
        tmp_path / "active/pip.conf",
    ]
    machine["VIRTUAL_ENV"] = str(tmp_path / "active")
    for number, path in enumerate(order):
        write(path, f"[global]\nindex-url = https://{number}.example\n")
        expected = Setting(f"https://{number}.example", str(path))
        assert pip_settings(machine).get("index-url") == expected


def test_a_broken_file_is_named_without_its_text(machine: dict[str, str], tmp_path: Path) -> None:
    path = write(tmp_path / "home/.pip/pip.conf", "[global]\nhttps //secret@host\n")
    with pytest.raises(UsageError) as caught:
        pip_settings(machine)
    assert str(caught.value) == f"pip's configuration {path} is broken at line 2"


@pytest.mark.parametrize(
    "value",
    [
        "joe:secret@index.example/simple",
        "https://joe:secret/x@index.example/simple",
        "https://joe:secret@index.example:port/simple",
        "/srv/joe:secret@wheels",
    ],
)
def test_a_broken_address_is_refused_without_what_may_be_its_password(value: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose({"index-url": Setting(value, "/etc/pip.conf")}, lambda: "")
    assert "secret" not in f"{caught.value} {caught.value.hint}"
    assert "%2F" in caught.value.hint
