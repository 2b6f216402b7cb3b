"""Which environment the doctor looks at when nobody says: active, installed last, or none."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from unittest import mock

from cli import envcheck

from envcheck.cli import sources


def implied(**environment: str) -> str | None:
    with mock.patch.dict(os.environ, environment, clear=True):
        return sources.implied_target()[0]


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
    assert implied(CONDA_PREFIX=prefix, XDG_STATE_HOME=state) == prefix


def test_then_the_one_installed_last(tmp_path: Path) -> None:
    record = tmp_path / "envcheck" / "last-install.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"prefix": sys.prefix}))
    assert implied(XDG_STATE_HOME=str(tmp_path)) == sys.prefix


def test_else_the_machine_alone(tmp_path: Path) -> None:
    assert implied(XDG_STATE_HOME=str(tmp_path)) is None
    record = tmp_path / "envcheck" / "last-install.json"
    record.parent.mkdir()
    record.write_text("half a rec")
    assert looked_at(XDG_STATE_HOME=str(tmp_path)) is None
