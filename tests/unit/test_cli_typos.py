"""What is misspelt gets the nearest real name, and the hint that leads to the right help."""

from __future__ import annotations

import pytest

from envcheck.cli.main import run
from envcheck.exit_codes import ExitCode
from envcheck.invocation import VARIABLE


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are printed as "envcheck …"."""
    monkeypatch.setattr("sys.argv", ["/nowhere/python"])
    monkeypatch.setenv(VARIABLE, "envcheck")


def refused(capsys: pytest.CaptureFixture[str], line: str, code: int = 2) -> list[str]:
    """The sentence and the hint."""
    try:
        left = run(line.split())
    except SystemExit as stop:
        left = int(stop.code or 0)
    shown = capsys.readouterr()
    assert (left, shown.out) == (code, ""), shown.err
    return shown.err.splitlines()


@pytest.mark.parametrize(
    ("line", "meant", "help_"),
    [
        ("instal", "install", "install --help"),
        ("help unistall", "uninstall", "uninstall --help"),
        ("doctor --targt=x", "--target", "doctor --help"),
        ("install --stak tensorflow", "--stack", "install --help"),
        ("list --format jsn", "json", "list --help"),
        ("install --mode weel", "wheel", "install --help"),
        ("doctor --modes fp61", "fp16", "doctor --help"),
        ("doctor --only gpus", "gpu", "explain lists all codes"),
        ("doctor --only DRV-0O2", "DRV-002", "explain lists all codes"),
        ("explain DRV-0002", "DRV-002", "explain lists all codes"),
        ("install tensorflow-cp", "tensorflow-cpu", None),
        ("bundle ngc-tf3 --output x", "ngc-tf2", None),
    ],
)
def test_the_nearest_is_named(
    capsys: pytest.CaptureFixture[str], line: str, meant: str, help_: str | None
) -> None:
    sentence, hint = refused(capsys, line)
    assert sentence.endswith(f'; did you mean "{meant}"?')
    if help_ is not None:
        assert hint == f"hint: envcheck {help_}"


@pytest.mark.parametrize("command", ["run", "shell"])
def test_the_exit_code_is_the_command_s(capsys: pytest.CaptureFixture[str], command: str) -> None:
    sentence, hint = refused(capsys, f"{command} --nmae x", ExitCode.NOT_STARTED)
    assert sentence == (f'envcheck {command}: there is no option "--nmae"; did you mean "--name"?')
    assert hint == f"hint: envcheck {command} --help"


def test_a_typo_is_told_before_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--otput" in refused(capsys, "bundle tensorflow --otput x")[0]
    assert refused(capsys, "bundle tensorflow")[0] == "envcheck: bundle needs --output"
