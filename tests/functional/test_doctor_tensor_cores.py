"""`envcheck doctor` on a stand-in machine with Hopper GPUs: from the probes to the verdicts, and every fault.

Libraries that compute, and count time, as such a GPU would stand in for it (``standin_gpu``).
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli import PYTHON, envcheck, environment, refused
from processes import PATIENCE, begun, running, wait_for
from standin_gpu import Machine

QUICK = {"SHIM_SLOW": "0"}  # no time passes for products, and none to take samples in
TENSOR_MODES = ["tf32", "fp16", "bf16", "int8", "fp8"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("standin"))


class Report:
    """The JSON report of one run."""

    def __init__(self, ended: subprocess.CompletedProcess[bytes]) -> None:
        assert ended.stdout, ended.stderr.decode()
        self.text = ended.stdout
        self.code = ended.returncode
        self.whole = json.loads(ended.stdout)
        self.judged: list[dict[str, Any]] = self.whole["tensor_cores"]
        self.checks = {result["code"]: result for result in self.whole["results"]}

    def verdicts(self, level: str, gpu: str = "GPU ") -> dict[str, str]:
        """{mode or mode/setting: verdict} of a level, on the GPU whose name begins so."""
        return {
            "/".join(filter(None, (one["mode"], one["setting"]))): one["verdict"]
            for one in self.judged
            if one["level"] == level and one["gpu"]["text"].startswith(gpu)
        }

    def one(self, level: str, mode: str, setting: str = "") -> dict[str, Any]:
        wanted = level, mode, setting
        (found,) = [o for o in self.judged if (o["level"], o["mode"], o["setting"]) == wanted]
        return found

    def outcomes(self) -> dict[str, str]:
        return {c: r["outcome"] for c, r in self.checks.items() if c.startswith("TC-")}

    def bad(self) -> dict[str, str]:
        """What neither passed nor was skipped for another reason than being a consequence."""
        return {
            code: result.get("consequence_of") or result["outcome"]
            for code, result in self.checks.items()
            if result["outcome"] not in ("pass", "skipped") or result.get("consequence_of")
        }


@pytest.fixture(scope="module")
def doctor(machine: Machine) -> Callable[..., Report]:
    def run(*arguments: str, gpus: int = 1, **shim: str) -> Report:
        return Report(plain(machine, "--format", "json", *arguments, gpus=gpus, **shim))

    return run


def plain(
    machine: Machine, *arguments: str, gpus: int = 1, **shim: str
) -> subprocess.CompletedProcess[bytes]:
    only = () if "--only" in arguments else ("--only", "tensorcores")
    where = ("--target", str(machine.target))
    return envcheck("doctor", *where, *arguments, *only, **machine.environment(gpus, **shim))


# -- a healthy GPU


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved") / "machine.json"


@pytest.fixture(scope="module")
def healthy(doctor: Callable[..., Report], saved: Path) -> Report:
    return doctor("--save", str(saved))


def test_every_mode_of_a_healthy_gpu_is_proven_at_every_level(healthy: Report) -> None:
    proven = dict.fromkeys(TENSOR_MODES, "proven")
    assert healthy.verdicts("L0") == {"fp32": "not engaged", **proven}
    assert healthy.verdicts("L1") == {"fp32": "not engaged", **proven}
    plain_fp32 = ("default", "override", "switch-off", "control")
    assert healthy.verdicts("L2") == {
        **{f"fp32/{setting}": "not engaged" for setting in plain_fp32},
        "tf32/switch-on": "proven",
        "fp16/half": "proven",
        "bf16/half": "proven",
    }
    assert {one["level"] for one in healthy.judged if one["control"]} == {"L0", "L1", "L2"}


def test_the_table_for_people_fits_80_columns(
    machine: Machine, saved: Path, healthy: Report
) -> None:
    shown = envcheck(
        "doctor",
        "-v",
        "--from",
        saved,
        "--only",
        "tensorcores",
        COLUMNS="80",
        PYTHONIOENCODING="utf-8",
    )
    lines = shown.stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert "GPU 0 NVIDIA H200 at 0000:83:00.0" in lines
    rows = {" ".join(line.split()) for line in lines}
    assert "FP16 proven 579 61 % 10.2 tensor tensor tensor" in rows
    assert "FP32 control not engaged 57.0 96 % no no no" in rows


# -- chosen by the user


@pytest.mark.heavy
def test_two_gpus_run_side_by_side_and_one_alone_where_it_is_asked_for(
    doctor: Callable[..., Report], machine: Machine
) -> None:
    both = doctor("--kernels", "L0,L1", "--modes", "bf16", gpus=2, **QUICK)
    for gpu in ("GPU 0", "GPU 1"):
        for level in ("L0", "L1"):
            assert both.verdicts(level, gpu) == {"fp32": "not engaged", "bf16": "proven"}
    one = doctor("--kernels", "L0", "--modes", "bf16", "--gpu", "1", gpus=2, **QUICK)
    (subject,) = {judged["gpu"]["text"] for judged in one.judged}
    assert subject == "GPU 1 NVIDIA H200 at 0000:84:00.0"
    hidden = doctor("--kernels", "L0", "--modes", "bf16", CUDA_VISIBLE_DEVICES="1", gpus=2)
    assert {judged["gpu"]["text"] for judged in hidden.judged} == {subject}
    wrong = plain(machine, "--gpu", "0,5", gpus=2)
    assert refused(wrong).endswith("--gpu 5: nvidia-smi lists no such GPU (there are: 0, 1)")


# -- what goes wrong


@pytest.mark.heavy
def test_a_hang_costs_its_mode_alone(doctor: Callable[..., Report]) -> None:
    report = doctor("--kernels", "L1", "--modes", "int8,fp8", SHIM_HANG="int8", **QUICK)
    assert report.verdicts("L1") == {
        "fp32": "not engaged",
        "int8": "could not run",
        "fp8": "proven",
    }
    assert report.bad() == {"TC-402": "fail", "TC-205": "TC-402"}
    assert "hung: no answer within" in report.checks["TC-402"]["findings"][0]["message"]


@pytest.mark.heavy
def test_half_precision_that_runs_on_cuda_cores_is_one_failure(
    doctor: Callable[..., Report],
) -> None:
    report = doctor("--modes", "fp16,bf16", SHIM_SIMT="fp16", **QUICK)
    for level, mode in (("L0", "fp16"), ("L1", "fp16"), ("L2", "fp16/half")):
        assert report.verdicts(level)[mode] == "not engaged"
        assert report.verdicts(level)[mode.replace("fp16", "bf16")] == "proven"
    assert report.bad() == {"TC-103": "fail", "TC-203": "TC-103", "TC-303": "TC-103"}
    assert report.code == 1
    assert report.one("L0", "fp16")["hardware"]["text"] == "64 FFMA"


@pytest.mark.heavy
def test_a_crash_and_a_dead_context_cost_their_mode_alone(doctor: Callable[..., Report]) -> None:
    for fault in ("SHIM_CRASH", "SHIM_DEAD"):
        report = doctor("--kernels", "L1", "--modes", "fp16,int8,fp8", **{fault: "fp8"}, **QUICK)
        assert report.verdicts("L1") == {
            "fp32": "not engaged",
            "fp16": "proven",
            "int8": "indicated",  # its kernels' names were lost with the process
            "fp8": "could not run",
        }
        assert report.bad() == {"TC-402": "fail", "TC-206": "TC-402"}
        assert report.code == 1


def test_a_wrong_result_is_a_failure_of_its_own(doctor: Callable[..., Report]) -> None:
    report = doctor("--kernels", "L1", "--modes", "int8", SHIM_WRONG="int8", **QUICK)
    assert report.verdicts("L1")["int8"] != "proven"
    assert report.checks["TC-401"]["outcome"] == "fail"
    assert "is not exact" in report.checks["TC-401"]["findings"][0]["message"]
    assert report.code == 1


def test_a_framework_s_dead_context_costs_its_mode_alone(doctor: Callable[..., Report]) -> None:
    report = doctor("--kernels", "L2", "--modes", "fp16,bf16", SHIM_DEAD="fp16", **QUICK)
    verdicts = report.verdicts("L2")
    assert (verdicts["fp16/half"], verdicts["bf16/half"]) == ("could not run", "proven")
    assert report.one("L2", "fp16", "half")["reason"].startswith("torch.matmul: RuntimeError: CUDA")
    hardware = report.one("L2", "fp32", "default")["hardware"]["text"]
    assert hardware.endswith("its CUDA context broke, before CUPTI looked on")
    assert report.bad() == {"TC-402": "fail", "TC-303": "TC-402"}


# -- and ends


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_doctor_leaves_no_kernel_behind(
    machine: Machine, tmp_path: Path, number: int
) -> None:
    (tmp_path / "tmp").mkdir()
    env = environment(**machine.environment(SHIM_HANG="fp32", TMPDIR=f"{tmp_path}/tmp"))
    argv = [PYTHON, "-m", "envcheck", "doctor", "--target", str(machine.target), "--kernels", "L1"]
    doctor = begun(argv, env=env)
    assert wait_for(lambda: [c for _, _, c in running(tmp_path) if b"level1" in c])
    doctor.send_signal(number)
    out, error = doctor.communicate(timeout=PATIENCE)
    assert doctor.returncode == (130 if number == signal.SIGINT else -number)
    assert out == b"" and b"Traceback" not in error
    assert wait_for(lambda: not running(tmp_path)), running(tmp_path)
    assert not list((tmp_path / "tmp").iterdir()) or number == signal.SIGKILL
