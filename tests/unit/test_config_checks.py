"""The check on what nvidia-pyindex left in pip's configuration."""

from __future__ import annotations

import pytest
from targets import PYTHON, config, config_file, dist, good_snapshot, interpreter, judge, packages

from envcheck.facts.target import ConfigFile
from envcheck.findings.model import CheckResult

NGC = "https://pypi.ngc.nvidia.com"
OWN = "file:///home/me/an%20env/.envcheck/constraints.txt"


def on(*files: ConfigFile, traces: list[str] | None = None) -> CheckResult:
    return judge(good_snapshot(packaging_config=config(*files, traces=traces)), "CFG-001", "config")


def commands(result: CheckResult) -> list[str]:
    return [one for finding in result.findings if finding.remedy for one in finding.remedy.commands]


def test_an_ordinary_configuration_passes() -> None:
    mirror = "https://mirror.example/simple"
    result = on(config_file("<home-1>/.config/pip/pip.conf", index_url=mirror, timeout="60"))
    assert (result.outcome, result.unjudged) == ("pass", [])


def test_traces_of_pyindex_come_with_the_exact_undo() -> None:
    system = config_file(
        "/etc/pip.conf",
        "global",
        extra_index_url=NGC,
        trusted_host="pypi.ngc.nvidia.com",
        no_cache_dir="true",
        index_url="https://registry.example/simple",
    )
    user = config_file("<home-1>/.pip/pip.conf", trusted_host="pypi.ngc.nvidia.com")
    result = on(system, user, traces=["/etc/pip.conf", "<home-1>/.pip/pip.conf"])
    assert result.outcome == "warn" and len(result.findings) == 2
    assert "nothing that was downloaded is kept" in result.findings[0].message
    assert "certificate is not verified" in result.findings[1].message
    assert commands(result) == [
        f"sudo '{PYTHON}' -m pip config --global unset global.{key}"
        for key in ("extra-index-url", "trusted-host", "no-cache-dir")
    ] + ["grep -n -i -E 'nvidia|no-cache-dir' '<home-1>/.pip/pip.conf'"]


@pytest.mark.parametrize(
    ("there", "words"), [(["nvidia-pyindex 1.0.9"], "no wheel for this Python 3.11"), ([], "")]
)
def test_pyindex_under_a_python_without_wheels(there: list[str], words: str) -> None:
    traces = config(config_file("/etc/pip.conf", extra_index_url=NGC), traces=["/etc/pip.conf"])
    found = packages(*(dist(*one.split()) for one in there))
    python = interpreter(version="3.11.7")
    snapshot = good_snapshot(packaging_config=traces, packages=found, interpreter=python)
    said = [one.message for one in judge(snapshot, "CFG-001", "config").findings]
    assert any("no wheel" in one for one in said) is bool(words) and words in " ".join(said)


def test_the_users_own_index_and_that_of_envchecks_environment_stay() -> None:
    both = config_file(
        "/etc/pip.conf", "global", extra_index_url=f"https://own.example/simple\n{NGC}"
    )
    assert not any("unset" in one for one in commands(on(both, traces=["/etc/pip.conf"])))
    made = config_file(
        "/home/me/an env/pip.conf",
        "site",
        constraint=OWN,
        extra_index_url=NGC,
        trusted_host="pypi.ngc.nvidia.com",
    )
    undone = " ".join(commands(on(made, traces=[made.path])))
    assert "trusted-host" in undone and "extra-index-url" not in undone
