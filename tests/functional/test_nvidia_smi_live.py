"""The nvidia-smi probe against programs that only bear its name."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import msgspec
import probing
import pytest
from probing import why

from envcheck.collector.facts import dumps
from envcheck.collector.probes import nvidia_smi
from envcheck.collector.runtime import process
from envcheck.collector.runtime.context import Context
from envcheck.facts.gpu import NvidiaSmi

DOCUMENT = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><driver_version>535.54.03</driver_version><cuda_version>12.2</cuda_version>
<attached_gpus>1</attached_gpus><gpu id="00000000:01:00.0"><product_name>Tesla T4</product_name>
<mig_devices>
    None
</mig_devices></gpu></nvidia_smi_log>"""


@pytest.fixture
def fake(tmp_path: Path) -> Any:
    """Writes a shell script nvidia-smi and gives the PATH that finds it first."""

    def write(script: str) -> str:
        (tmp_path / "document.xml").write_text(DOCUMENT)
        program = tmp_path / "nvidia-smi"
        program.write_text(f'#!/bin/sh\ncd "{tmp_path}"\n{script}\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return f"{tmp_path}{os.pathsep}{os.environ['PATH']}"

    return write


def typed(values: dict[str, Any]) -> NvidiaSmi:
    return msgspec.json.decode(dumps(values).encode(), type=NvidiaSmi)


def here(path: str) -> NvidiaSmi:
    """The probe in this process."""
    return typed(nvidia_smi.collect(Context({**os.environ, "PATH": path})).values)


@pytest.mark.parametrize("minor", [sys.version_info[1], 6])
def test_a_healthy_answer_under_old_and_new_pythons(fake: Any, minor: int) -> None:
    python = probing.interpreter(minor)
    answer = probing.facts(
        python, "nvidia_smi", {}, PATH=fake('[ "$*" = "-q -x" ] && cat document.xml')
    )
    facts = typed(answer["facts"])
    assert (facts.exit_code, facts.form, facts.schema) == (0, "xml", "v12")
    assert (facts.driver_version, facts.cuda_version, facts.gpu_count) == ("535.54.03", "12.2", 1)
    assert isinstance(facts.gpus, list)
    assert (facts.gpus[0].name, facts.gpus[0].index) == ("Tesla T4", 0)
    assert str(facts.path).endswith("/nvidia-smi")
    assert answer["sources"]["*"] == "nvidia-smi -q -x"
    assert why(facts.message)[0] == "not-collected"


@pytest.mark.parametrize(
    ("script", "code", "text", "detail"),
    [
        ("echo hello, world", 0, "hello, world", "neither"),
        ("head -c 250 document.xml", 0, "half a document", "breaks off"),
        ("exit 0", 0, "nothing", "empty"),
        (r"printf '\377\376\000\001'", 0, "\ufffd", "neither"),
        ("echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9",
         9, "could not communicate", "exited with status 9"),
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", 18,
         "version mismatch", "status 18"),
        ("echo 'Unable to determine the device handle' >&2; exit 15", 15, "Unable to", "status 15"),
        ("kill -SEGV $$", -11, "nothing", "SIGSEGV"),
        ("echo 'No devices were found'; kill -SEGV $$", -11, "No devices", "SIGSEGV"),
    ],
)  # fmt: skip
def test_every_failure_is_a_fact(fake: Any, script: str, code: int, text: str, detail: str) -> None:
    facts = here(fake(script))
    assert facts.exit_code == code
    assert text in str(facts.message)
    for fact in (facts.gpus, facts.gpu_count, facts.driver_version, facts.cuda_version):
        assert why(fact)[0] == "error"
        assert detail in why(fact)[1]
    assert why(facts.form)[0] == "not-collected"


def test_one_that_hangs_costs_its_deadline_alone(
    fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia_smi, "RUN_DEADLINE", 0.3)
    facts = here(fake("cat document.xml; exec sleep 600"))
    reason, result = why(facts.exit_code)
    assert reason == "timeout" and result.startswith("nvidia-smi gave no answer within ")
    assert why(facts.gpus)[0] == "timeout"
    assert facts.message == result


def test_one_that_is_stuck_in_the_kernel_is_named(fake: Any) -> None:
    class Stuck(Context):
        def run(self, argv: list[str], deadline: float, env: Any = None) -> process.Result:
            stuck = {"pid": 4711, "command": " ".join(argv), "state": "D"}
            return process.Result(argv, "timeout", None, b"", b"", deadline + 0.5, stuck)

    facts = typed(nvidia_smi.collect(Stuck({"PATH": fake("never run")})).values)
    assert "process 4711 is stuck in the kernel (state D)" in str(facts.message)
    assert [stuck.pid for stuck in facts.stuck] == [4711]
    assert why(facts.gpus)[0] == "timeout"


def test_a_machine_without_it(tmp_path: Path) -> None:
    values = nvidia_smi.collect(
        Context({"PATH": "/usr/bin:relative::/opt/x"}, root=str(tmp_path))
    ).values
    facts = typed(values)
    for fact in (facts.path, facts.exit_code, facts.gpus):
        assert why(fact)[0] == "absent"
