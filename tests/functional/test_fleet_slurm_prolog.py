"""The script of `envcheck fleet slurm-prolog`, run by a shell."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from processes import ran
from slurm_prologs import WrittenSlurm, fails, log_of, looks_at, made, run

GPU_NODE = "gpu07|gpu|up|idle|gpu:h100:8(S:0-1)|(null)|gpu07|Unknown|none"


@pytest.mark.parametrize(
    ("row", "variables", "code"),
    [
        ("gpu07|gpu|up|idle|(null)|(null)|gpu07|Unknown|none", {}, 0),
        ("gpu07|gpu|up|idle|nic:2,gpux:1|(null)|gpu07|Unknown|none", {}, 0),
        ("gpu07|gpu|up|idle|nic:2,gpu:4|(null)|gpu07|Unknown|none", {}, 1),
        # a job that says so itself; the node is asked about before it is drained, all the same
        ("gpu07|gpu|up|idle|(null)|(null)|gpu07|Unknown|none", {"SLURM_JOB_GPUS": "0,1"}, 0),
        ("gpu07|gpu|up|idle|gpu:h100:8|(null)|gpu07|Unknown|none", {"SLURM_JOB_GPUS": "0,1"}, 1),
        ("", {}, 0),
    ],
)
def test_only_a_node_with_gpus_in_slurm_is_drained(
    tmp_path: Path, row: str, variables: dict[str, str], code: int
) -> None:
    slurm = WrittenSlurm(tmp_path, row)
    done = run(tmp_path, made(tmp_path, looks_at(tmp_path, "driver-update")), **variables)
    assert done.returncode == code, log_of(tmp_path)
    assert bool(slurm.updates()) == bool(code)


@pytest.mark.parametrize("words", [[], ["--fail-on=degraded"]])
def test_a_degraded_node_is_reported_and_drained_where_that_is_wanted(
    tmp_path: Path, words: list[str]
) -> None:
    slurm = WrittenSlurm(tmp_path, GPU_NODE)
    asked = 'case " $* " in *" --fail-on=degraded "*) exit 1 ;; *) exit 0 ;; esac'
    doctor = looks_at(tmp_path, "odd-machine").removesuffix("exit 0") + asked
    done = run(tmp_path, made(tmp_path, doctor, *words))
    log = log_of(tmp_path)
    assert (done.returncode, len(slurm.updates())) == (len(words), len(words)), log
    drained = "drained: envcheck: PCI-005 The PCIe link runs with 8 lanes"
    assert (drained if words else "degraded: GPU 3 has too few PCIe lanes") in log


def test_slurm_is_asked_for_a_nodes_gpus_once_and_not_for_a_job_that_has_some(
    tmp_path: Path,
) -> None:
    WrittenSlurm(tmp_path, "gpu07|gpu|up|idle|(null)|(null)|gpu07|Unknown|none")
    script = made(tmp_path, "echo looked >&2; exit 1")
    run(tmp_path, script)
    (tmp_path / "sinfo").unlink()
    run(tmp_path, script)
    assert log_of(tmp_path).count("Slurm has no GPU on this node: not looked at\n") == 2
    run(tmp_path, script, SLURM_JOB_GPUS="0")
    assert "looked" in log_of(tmp_path)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["gpu07.gres"]


@pytest.mark.parametrize(
    ("doctor", "why"),
    [
        ("echo 'no NVIDIA GPU in this machine'; exit 4", "exit 4: no NVIDIA GPU in this machine"),
        ('echo \'  "verdict": "NVML hangs",\'; exit 4', "could not look: exit 4: NVML hangs"),
        ("echo 'ModuleNotFoundError: No module'; exit 1", "this is no JSON report"),
        ("exec sleep 60", "could not look: no answer in time"),
        ("exec sleep 60 & exec sleep 60", "could not look: no answer in time"),
        ("echo; exit 127", "could not look: exit 127:"),
        ("kill -9 $$", "could not look: exit 137:"),
        ("printf '\\033]0;owned\\007\\377'; exit 5", "could not look: exit 5: ]0;owned\n"),
    ],
)
def test_where_envcheck_fails_nothing_is_drained(tmp_path: Path, doctor: str, why: str) -> None:
    slurm = WrittenSlurm(tmp_path, GPU_NODE)
    done = run(tmp_path, made(tmp_path, doctor, "--deadline=1"))
    assert (done.returncode, done.stdout, slurm.updates()) == (0, b"", [])
    assert why in log_of(tmp_path)


def test_the_doctor_has_nothing_of_the_jobs_environment(tmp_path: Path) -> None:
    WrittenSlurm(tmp_path, GPU_NODE)
    script = made(
        tmp_path, f'env >{tmp_path}/env; pwd >>{tmp_path}/env; touch "$HOME/x" "$TMPDIR/y"'
    )
    run(
        tmp_path,
        script,
        HOME="/nowhere",
        TMPDIR="/nowhere",
        LD_PRELOAD="",
        CUDA_VISIBLE_DEVICES="7",
    )
    lines = (tmp_path / "env").read_text().splitlines()
    found = dict(line.partition("=")[::2] for line in lines)
    assert found["HOME"] == found["TMPDIR"] and found["HOME"].startswith(f"{tmp_path}/run/")
    assert not {"CUDA_VISIBLE_DEVICES", "LD_PRELOAD", "SLURM_JOB_ID"} & {*found} and "/" in found
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["gpu07.gres"]


def test_hostile_words_become_a_short_plain_reason(tmp_path: Path) -> None:
    slurm = WrittenSlurm(tmp_path, GPU_NODE)
    words = f"a\x1b[2J\x07 $(touch {tmp_path}/x) `id`; \"b\" 'c' \\ | \u202e = ]\n" + "y" * 9999
    run(tmp_path, made(tmp_path, fails(tmp_path, "GPU-001", words)))
    (update,) = slurm.updates()
    reason = update.partition("Reason=")[2]
    assert (
        reason.startswith("envcheck: GPU-001 a x1b 2J x07 (touch") and not (tmp_path / "x").exists()
    )
    assert len(reason) < 230 and not re.search(r"[^ -~]|[\"'\\|`$=]", reason)


def test_shells_and_shellcheck_find_nothing_wrong_with_it(tmp_path: Path) -> None:
    script = made(tmp_path, "exit 0", "--limit", "2.5%")
    assert not re.search("@[A-Z]+@", script) and "\nLIMIT=2.5\n" in script
    for shell in ("dash", "bash", "busybox"):
        if shutil.which(shell):
            words = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]
            assert subprocess.run(words, input=script.encode(), check=False).returncode == 0
    if shutil.which("shellcheck") is None:
        pytest.skip("there is no shellcheck on this machine")
    shown = ran(["shellcheck", "--shell=sh", "-"], input=script.encode())
    assert shown.returncode == 0, shown.stdout.decode()
