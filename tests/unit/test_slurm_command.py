"""srun's command line for a node, and what srun says of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from envcheck.exit_codes import UsageError
from envcheck.fleet.engines import Asked, slurm
from envcheck.fleet.engines.slurm import SlurmQuestion, SlurmTools
from envcheck.fleet.engines.slurm_nodes import SlurmNodeState

ASKED = Asked(["--level=quick", "--target=/opt/tf's env"], 120.0)
GPU = SlurmNodeState("gpu01", "idle", "", ("a100", "all"), (), 8)


def tools(**environ: str) -> SlurmTools:
    return SlurmTools(Path("/s/srun"), Path("i"), Path("c"), Path("x"), environ)


def command(*options: str, node: SlurmNodeState = GPU, **environ: str) -> list[str]:
    question = SlurmQuestion(options=options)
    return slurm.command(tools(**environ), node, ASKED, question, "envcheck-job", "c00c1e")


def test_a_job_of_its_own_with_all_gpus_of_the_node_and_nothing_of_our_environment() -> None:
    words = command()
    assert words[:11] == [
        "/s/srun", "--export=PATH,HOME,USER,LOGNAME,LANG", "--propagate=NONE", "--chdir=/",
        "--mpi=none", "--immediate=15", "--time=3", "--partition=a100", "--gres=gpu:8", "--quiet",
        "--nodes=1",
    ]  # fmt: skip
    assert words[11:16] == ["--ntasks=1", "--nodelist=gpu01", "--job-name=envcheck-job", "sh", "-c"]
    assert len(words) == 17
    assert words[-1].startswith("echo @reached-c00c1e; ")
    assert "'--target=/opt/tf'\"'\"'s env'" in words[-1]


@pytest.mark.parametrize(
    "word", ["-w", "-wgpu01", "--nodelist=gpu01", "-N4", "--label", "-n", "--pty"]
)
def test_which_nodes_is_not_said_to_srun(word: str) -> None:
    with pytest.raises(UsageError, match="cannot be passed to srun"):
        slurm.refuse_ours(["--exclusive", word])


BUSY = "srun: error: Unable to allocate resources: Requested nodes are busy"
GONE = (
    "srun: error: Task launch for StepId=9.0 failed on node gpu03: Communication connection failure\n"
    "srun: error: Application launch failed: Communication connection failure"
)
REFUSED = "srun: error: Unable to allocate resources: Invalid qos specification"


@pytest.mark.parametrize(
    ("printed", "outcome", "shown"),
    [
        (BUSY, "not-asked", "busy (idle): Slurm did not give it within 15 s"),
        (REFUSED, "not-asked",
         "Slurm gives no job there: Invalid qos specification"),
        (GONE, "unreachable", "Task launch failed: Communication connection failure"),
        ("srun: unrecognized option '--x'\nTry it", "failed",
         "srun exited with status 1: srun: unrecognized option '--x'"),
        ("", "failed", "srun exited with status 1"),
        ("srun: error: a\x1b[2Jb", "failed", "srun exited with status 1: a\\x1b[2Jb"),
    ],
)  # fmt: skip
def test_what_srun_says_of_a_node_that_it_did_not_reach(
    printed: str, outcome: str, shown: str
) -> None:
    result = SimpleNamespace(
        stderr=printed.encode(), outcome="exited", describe=lambda: "exited with status 1"
    )
    assert slurm.not_started(GPU, result, SlurmQuestion()) == (outcome, shown)
