"""Which environment the doctor looks at when nobody says: active, installed last, or none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cli import envcheck


def looked_at(**environment: str) -> str | None:
    result = envcheck("collect", "--no-redact", **environment)
    assert result.returncode == 0, result.stderr
    target = json.loads(result.stdout)["target"]
    return target and target["location"]


def test_the_active_environment_comes_first(tmp_path: Path) -> None:
    record = tmp_path / "envcheck" / "last-install.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"prefix": "/nowhere"}))
    prefix = sys.prefix
    state = str(tmp_path)
    assert looked_at(VIRTUAL_ENV=prefix, XDG_STATE_HOME=state) == f"path:{prefix}"
    assert looked_at(CONDA_PREFIX=prefix, XDG_STATE_HOME=state) == f"path:{prefix}"


def test_then_the_one_installed_last(tmp_path: Path) -> None:
    record = tmp_path / "envcheck" / "last-install.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"prefix": sys.prefix}))
    assert looked_at(XDG_STATE_HOME=str(tmp_path)) == f"path:{sys.prefix}"


def test_else_the_machine_alone(tmp_path: Path) -> None:
    assert looked_at(XDG_STATE_HOME=str(tmp_path)) is None
    record = tmp_path / "envcheck" / "last-install.json"
    record.parent.mkdir()
    record.write_text("half a rec")
    assert looked_at(XDG_STATE_HOME=str(tmp_path)) is None
