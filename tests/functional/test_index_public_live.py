"""What envcheck reads of pip's and uv's configuration is what they themselves say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli import environment
from processes import ran

from envcheck.install.network.pip_settings import pip_settings
from envcheck.install.network.public_index import public_index


def machine(folder: Path, **changes: str) -> dict[str, str]:
    """An environment whose configuration is below the folder; pip's files count."""
    clean = environment(
        HOME=str(folder / "home"),
        XDG_CONFIG_DIRS=str(folder / "xdg"),
        XDG_CONFIG_HOME=str(folder / "config"),
    )
    del clean["PIP_CONFIG_FILE"]
    return clean | changes


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def of_pip(environ: dict[str, str]) -> dict[str, str]:
    """``pip config list``, as options: [install] over [global], the environment over both."""
    lines = [line.partition("=") for line in pip(environ, "list").splitlines()]
    keys = [key for key, _, _ in lines]
    found: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for key, _, value in lines:
            name, _, option = key.partition(".")
            if name == section:  # from 26 on, pip lists what each of its files says
                found[option] = value if keys.count(key) == 1 else pip(environ, "get", key).strip()
                found[option] = found[option].strip("'\"")
    return found


def pip(environ: dict[str, str], *words: str) -> str:
    return ran(
        [sys.executable, "-m", "pip", "config", *words], env=environ, text=True, check=True
    ).stdout


@pytest.mark.parametrize("named", ["", "there", "missing", "/dev/null"])
@pytest.mark.parametrize("variable", ["", "https://variable.example/simple"])
def test_pip_says_the_same(tmp_path: Path, named: str, variable: str) -> None:
    write(tmp_path / "xdg/pip/pip.conf", "[global]\nindex-url = https://system\ntimeout = 9\n")
    write(tmp_path / "home/.pip/pip.conf", "[global]\nindex_url = https://legacy\nretries = 7\n")
    write(
        tmp_path / "config/pip/pip.conf", "[install]\nindex-url = https://user\n[list]\nproxy=x\n"
    )
    write(tmp_path / "there", "[global]\nindex-url = https://named\nextra-index-url = https://e\n")
    environ = machine(tmp_path)
    if named:
        environ["PIP_CONFIG_FILE"] = named if named.startswith("/") else str(tmp_path / named)
    if variable:
        environ["PIP_INDEX_URL"] = variable
    ours = {name: setting.value for name, setting in pip_settings(environ).items()}
    theirs = of_pip(environ)
    for option in ("index-url", "extra-index-url", "timeout", "retries", "proxy"):
        assert ours.get(option) == theirs.get(option), option


def test_uv_is_asked_for_its_own_configuration(tmp_path: Path) -> None:
    environ = machine(tmp_path, UV_DEFAULT_INDEX="https://user:secret@uv.example/simple")
    found = public_index(environ)
    assert (found.url, found.origin) == ("https://user:secret@uv.example/simple", "uv")
    write(tmp_path / "config/uv/uv.toml", '[[index]]\nurl = "https://x.example"\ndefault = true\n')
    assert public_index(machine(tmp_path)).url == "https://x.example"
