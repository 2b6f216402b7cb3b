"""What a roll-out does with a machine, as Ansible runs it: which ends count as failures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envcheck.fleet.engines import ansible

pytest.importorskip("ansible", reason="there is no Ansible in this environment")


class TimeIsOver(BaseException):
    """As Ansible's own: past a task's deadline a signal raises it, wherever the plug-in is."""


@pytest.mark.parametrize(
    ("ends", "failed"), [(TimeIsOver, 1), (OSError, 1), (MemoryError, 1), (None, 0)]
)
def test_a_machine_that_exceeds_its_deadline_counts_as_failed(
    ends: type[BaseException] | None, failed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = ansible.CONTENT / "roles" / "envcheck" / "action_plugins" / "envcheck_machine.py"
    names: dict[str, Any] = {"__file__": str(role), "__name__": "envcheck_machine"}
    exec(compile(role.read_text(), role, "exec"), names)
    plugin = names["ActionModule"]
    monkeypatch.setattr(names["ActionBase"], "run", lambda *_: {})
    monkeypatch.setitem(names, "setrlimit", lambda *_: None)

    def install(self: object) -> dict[str, object]:
        if ends is not None:
            raise ends
        return {"result": "installed", "exit_code": 0}

    monkeypatch.setattr(plugin, "_install", install)
    machine = plugin.__new__(plugin)
    machine._task = SimpleNamespace(args={"logs": str(tmp_path)})
    try:
        machine.run(None, {"inventory_hostname": "gpu01"})
    except TimeIsOver:
        assert ends is TimeIsOver
    counted = [file.stat().st_size for file in tmp_path.glob(".failed-*")]
    assert sum(counted) == failed
