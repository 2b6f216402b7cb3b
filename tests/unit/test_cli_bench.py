"""`envcheck bench`: its command line, files that are read, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bench_told as b
import demos
import jsonschema
import pytest
from h100 import ADDRESSES

from envcheck.cli.demo import BENCH
from envcheck.cli.main import run
from envcheck.facts.bench import RowRun
from envcheck.facts.snapshot import Snapshot, dump
from envcheck.reports.json_schema import schema


def idle() -> Snapshot:
    return demos.of(demos.idle())


def save(folder: Path, name: str, *runs: RowRun, **changes: Any) -> str:
    path = folder / name
    path.write_bytes(dump(b.benched(idle(), list(runs), **changes)))
    return str(path)


def on_each(slow: float = 2000.0) -> list[RowRun]:
    """A row on each GPU alone, the last of them at another rate."""
    rates = [2000.0] * 7 + [slow]
    return [
        b.ran(b.row(f"amp on GPU {n}", gpus=[gpu]), rates[n]) for n, gpu in enumerate(ADDRESSES)
    ]


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    try:
        code = run(["bench", *argv])
    except SystemExit as stop:
        code = int(stop.code or 0)
    streams = capsys.readouterr()
    return code, streams.out, streams.err


BAD = [
    (["resnet5"], "no row 'resnet5'; did you mean \"resnet50\"?"),
    (["--batch", "0"], "'0' is not a number from 1 to"),
    (["--batch", "²"], "'²' is not a number"),
    (["--batch", "9" * 5000], "is not a number from 1 to"),
    (["--rounds", "0"], "is not a number from 1 to 100"),
    (["--gpu", "x"], "'x' is not a GPU's number"),
    (["--from", "/no/such/file"], "/no/such/file: No such file or directory"),
    (["--baseline", "/no/such/file"], "/no/such/file: No such file or directory"),
    (["--from", "FILE", "--gpu", "0"], "--gpu and --from cannot be used together"),
    (["--from", "FILE", "--batch", "1"], "--batch and --from cannot be used together"),
    (["--from", "FILE", "--plan"], "--plan and --from cannot be used together"),
    (["--from", "FILE", "mlp"], "mlp and --from cannot be used together"),
    (["--from", "FILE", "--engine", "podman"], "--engine and --from cannot be used"),
    (["--from", "FILE", "--target", "x"], "not allowed with"),
    (["--from", "FILE", "--save", "FILE"], "--from names the same file"),
    (["--plan", "--save", "x"], "--save and --plan cannot be used together"),
    (["--format", "xml"], '--format "xml": not one of text, json'),
    (["--output", "/no/such/place/file"], "there is no directory /no/such/place"),
    (["-q", "-v"], "not allowed with"),
]


@pytest.mark.parametrize(("argv", "sentence"), BAD, ids=[" ".join(a)[:30] for a, _ in BAD])
def test_bad_input_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    file = save(tmp_path, "file", *on_each())
    code, out, err = printed(capsys, *(file if word == "FILE" else word for word in argv))
    assert (code, out) == (2, "") and sentence in err, err
    assert "Traceback" not in err and len(err.splitlines()) <= 2


def test_a_baseline_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    well = save(tmp_path, "well", b.ran(b.row(), 2400))
    now = save(tmp_path, "now", b.ran(b.row(), 1900))
    code, out, _ = printed(capsys, "--from", now)
    assert code == 0 and "FAIL" not in out
    code, out, _ = printed(capsys, "--from", now, "--baseline", well)
    assert code == 1 and "the baseline" in out and "FAIL resnet50 amp xla 256" in out
    assert printed(capsys, "--from", now, "--baseline", well, "--exit-zero")[0] == 0
    code, out, _ = printed(capsys, "--from", well, "--baseline", well)
    assert code == 0 and out.startswith("✓ as fast as expected: 1 of 1 row")


@pytest.mark.parametrize(
    ("slow", "options", "code"),
    [
        (2000.0, "", 0),
        (1840.0, "", 0),
        (1840.0, "--fail-on warn", 1),
        (1840.0, "--fail-on warn --exit-zero", 0),
        (1500.0, "", 1),
        (1500.0, "-q", 1),
        (1500.0, "--format json", 1),
        (1500.0, "--exit-zero", 0),
    ],
)
def test_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slow: float, options: str, code: int
) -> None:
    file = save(tmp_path, "file", *on_each(slow=slow))
    found, out, _ = printed(capsys, "--from", file, *options.split())
    assert found == code, out


def test_nothing_measured_is_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_ = b.ran(b.row(), 1, rounds=0, outcome="not-run", reason="no time left")
    file = save(tmp_path, "file", run_)
    code, out, _ = printed(capsys, "--from", file)
    assert code == 4 and "nothing was measured: resnet50 amp xla 256: not run: no time left" in out


def test_the_report_obeys_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--batch", "256", "--rounds", "7"]
    file = save(tmp_path, "file", *on_each(), options=options)
    _, out, _ = printed(capsys, "--from", file, "--format", "json")
    report = json.loads(out)
    jsonschema.validate(report, schema("bench"))
    first = report["rows"][0]
    assert report["command"].startswith("envcheck bench resnet50 --batch 256 --rounds 7 --target")
    assert (first["framework"], first["gpus"]) == ("2.19.1", ["0"])
    assert report["settings"] == {"TF_GPU_THREAD_MODE": "gpu_private"}
    assert first["result"]["run"]["row"]["batch"] == 256
    assert run(["schema", "bench"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(schema("bench")))


def test_a_saved_bench_says_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again = save(tmp_path, "first", *on_each(slow=1500.0)), str(tmp_path / "again")
    _, shown, _ = printed(capsys, "--from", first, "--save", again, "--format", "json")
    assert printed(capsys, "--from", again, "--format", "json")[1] == shown
    assert run(["demo", BENCH]) == 0
    assert "Simulated, not real" in capsys.readouterr().out
