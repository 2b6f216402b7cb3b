"""What sinfo, scontrol and srun say, read; srun's command line, and the text of the script for Slurm."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from envcheck.cli.main import run
from envcheck.exit_codes import UsageError
from envcheck.fleet.engines import Asked, slurm, slurm_nodes, slurm_prolog
from envcheck.fleet.engines.slurm import SlurmQuestion, SlurmTools
from envcheck.fleet.engines.slurm_nodes import SlurmNodeState

USUAL = """\
gpu01|a100*|up|idle|gpu:a100:8(S:0-1)|a100,ib|gpu01|Unknown|none
gpu01|all|up|idle|gpu:a100:8(S:0-1)|a100,ib|gpu01|Unknown|none
gpu02|a100*|up|drained|gpu:8,nic:2|(null)|gpu02|2026-11-23T06:18:15|GPU 3 fell | off the bus
login1|test|drain|down*|(null)|(null)|login1|Unknown|Not responding
no row
|||||||||
"""


def node(state: str, reason: str = "") -> SlurmNodeState:
    return SlurmNodeState("gpu01", state, reason)


def test_nodes_with_all_their_partitions_the_default_first() -> None:
    first, second, third = slurm_nodes.nodes(USUAL)
    assert first == SlurmNodeState(
        "gpu01", "idle", "", ("a100", "all"), ("a100", "ib"), 8, None, "gpu01"
    )
    assert (second.gpus, second.features, second.reason) == (8, (), "GPU 3 fell | off the bus")
    assert second.since == datetime(2026, 11, 23, 6, 18, 15, tzinfo=timezone.utc)
    assert third.partitions == ("test",)  # takes no jobs, and there is no other


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("(null)", 0),
        ("gpu:8", 8),
        ("gpu:h100:8(S:0-1)", 8),
        ("gpu:h100:4(S:0,2),gpu:1g.10gb:7(S:1)", 11),
        ("nic:2,gpu:tesla:2", 2),
        ("gpu", 0),
        ("gpu:many", 0),
        ("gpu:²", 0),
        ("gpu:8(((((", 0),
    ],
)
def test_how_many_gpus_a_node_has(gres: str, count: int) -> None:
    assert slurm_nodes.nodes(f"n|p|up|idle|{gres}|(null)|n|Unknown|none")[0].gpus == count


@pytest.mark.parametrize("state", ["idle", "MIXED-", "allocated+", "idle$", "something-new"])
def test_states_in_which_slurm_may_start_a_job(state: str) -> None:
    assert slurm_nodes.closed(node(state)) is None


@pytest.mark.parametrize(
    ("state", "outcome", "shown"),
    [
        ("DOWN*", "unreachable", "down"),
        ("down+drain", "unreachable", "down+drain"),
        ("idle*", "unreachable", "idle"),
        ("drained", "not-asked", "drained"),
        ("drained*", "unreachable", "drained"),
        ("DRAINING", "not-asked", "draining"),
        ("idle~", "not-asked", "idle, powered down"),
        ("mixed@", "not-asked", "mixed, to be restarted"),
    ],
)
def test_states_in_which_it_starts_none(state: str, outcome: str, shown: str) -> None:
    reason = f"Slurm has it as {shown}: no such board"
    assert slurm_nodes.closed(node(state, "no such board")) == (outcome, reason)


ASKED = Asked(["--level=quick", "--target=/opt/tf's env"], 120.0)
GPU = SlurmNodeState("gpu01", "idle", "", ("a100", "all"), (), 8)


def command(*options: str, node: SlurmNodeState = GPU, **environ: str) -> list[str]:
    question = SlurmQuestion(options=options)
    tools = SlurmTools(Path("/s/srun"), Path("i"), Path("c"), Path("x"), environ)
    return slurm.command(tools, node, ASKED, question, "envcheck-job", "c00c1e")


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


def script() -> str:
    return slurm_prolog.script(["/usr/bin/envcheck"], limit=2.5, deadline=20.0, fail_on="fail")


def test_every_command_that_may_hang_has_a_limit() -> None:
    """Slurm's commands, envcheck and the log are started by ``limited`` alone."""
    lines = [line.strip() for line in script().splitlines() if not line.strip().startswith("#")]
    for word in ("sinfo ", "scontrol ", "/usr/bin/envcheck ", '"$LOG"'):
        starts = [line for line in lines if word in line]
        assert all(re.match(r"(?:limited|of_envcheck) \S+ ", line) for line in starts), starts


def test_a_relative_path_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "slurm-prolog", "--envcheck", "bin/envcheck"]) == 2
    assert "the path must be absolute" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--limit", "0"], "'0' is not a percentage"),
        (["--limit", "nan"], "'nan' is not a percentage"),
        (["--limit", "101"], "'101' is not a percentage"),
        (["--strict"], "there is no option"),
    ],
)
def test_a_limit_is_a_percentage_and_envchecks_own_failure_never_drains(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["fleet", "slurm-prolog", *words])
    assert ended.value.code == 2 and error in capsys.readouterr().err
