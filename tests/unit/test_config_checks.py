"""Checks on pip's and uv's configuration: each with a bad, a good and a missing one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import (
    PYTHON,
    config,
    config_file,
    good_snapshot,
    judge,
    variable,
)

from envcheck.facts.target import ConfigFile, ConfigSetting, PackagingConfig
from envcheck.findings.model import CheckResult

CODES = ["CFG-001", "CFG-002", "CFG-003"]
NGC = "https://pypi.ngc.nvidia.com"


def on(code: str, *files: ConfigFile, traces: list[str] | None = None) -> CheckResult:
    return judge(good_snapshot(packaging_config=config(*files, traces=traces)), code, "config")


def pyindex_file(path: str = "/etc/pip.conf", level: str = "global") -> ConfigFile:
    return config_file(
        path,
        level,
        mode="0644",
        extra_index_url=NGC,
        trusted_host="pypi.ngc.nvidia.com",
        no_cache_dir="true",
        index_url="https://registry.example/simple",
    )


@pytest.mark.parametrize("code", CODES)
def test_an_ordinary_configuration_passes(code: str) -> None:
    result = on(
        code,
        config_file(
            "<home-1>/.config/pip/pip.conf", index_url="https://mirror.example/simple", timeout="60"
        ),
        config_file("/etc/uv/uv.toml", "global", "uv", index_url="https://mirror.example/simple"),
        variable("PIP_CERT", "/etc/ssl/corporate.pem"),
    )
    assert (result.outcome, result.unjudged) == ("pass", [])


def test_traces_of_pyindex_come_with_the_exact_undo() -> None:
    user = config_file(
        "<home-1>/.pip/pip.conf", extra_index_url=NGC, trusted_host="pypi.ngc.nvidia.com"
    )
    result = on("CFG-001", pyindex_file(), user, traces=["/etc/pip.conf", "<home-1>/.pip/pip.conf"])
    system, own = result.findings
    assert result.outcome == "warn"
    assert "certificate is not verified" in own.message and "is kept" not in own.message
    assert "nothing that was downloaded is kept" in system.message
    assert system.remedy is not None and own.remedy is not None
    for key in ("extra-index-url", "trusted-host", "no-cache-dir"):
        assert (
            f"sudo '{PYTHON}' -m pip config --global unset global.{key}" in system.remedy.commands
        )
    # pip config does not edit this one, so the line is named
    assert len(own.remedy.commands) == 2
    assert all(
        command.startswith("sed -i.bak -E ") and command.endswith(" '<home-1>/.pip/pip.conf'")
        for command in own.remedy.commands
    )


def test_pyindex_undo_spares_the_users_own_index() -> None:
    file = config_file(
        "/etc/pip.conf", "global", extra_index_url=f"https://own.example/simple\n{NGC}"
    )
    (finding,) = on("CFG-001", file, traces=["/etc/pip.conf"]).findings
    assert finding.remedy is not None
    assert not any("unset" in command for command in finding.remedy.commands)
    assert "nvidia" in finding.remedy.commands[0]


@pytest.mark.parametrize("code", ["CFG-002", "CFG-003"])
def test_what_pyindex_wrote_is_told_once(code: str) -> None:
    result = on(code, pyindex_file(), traces=["/etc/pip.conf"])
    assert (result.outcome, result.findings) == ("skipped", [])
    assert "CFG-001" in result.reason


OWN = "file:///home/me/an%20env/.envcheck/constraints.txt"


def own_file(level: str = "site", **changes: str) -> ConfigFile:
    """The pip.conf that envcheck gives an environment."""
    settings = {"constraint": OWN, "extra_index_url": NGC} | changes
    return config_file("/home/me/an env/pip.conf", level, **settings)


@pytest.mark.parametrize("code", CODES)
def test_an_environments_own_pip_conf_is_well(code: str) -> None:
    result = on(code, own_file())
    assert (result.outcome, result.unjudged) == ("pass", [])
    if code == "CFG-003":
        assert "pins what comes from there" in result.detail


@pytest.mark.parametrize(
    "file",
    [
        own_file(constraint="file:///home/me/constraints.txt"),
        own_file(constraint=""),
        own_file("user"),  # it would be for every environment of the user's
    ],
)
def test_another_constraint_is_no_guard(file: ConfigFile) -> None:
    assert on("CFG-003", file).outcome == "warn"


def test_pyindex_in_such_an_environment_is_undone_and_the_index_stays() -> None:
    file = own_file(trusted_host="pypi.ngc.nvidia.com", no_cache_dir="true")
    (finding,) = on("CFG-001", file, traces=[file.path]).findings
    assert finding.remedy is not None
    undone = " ".join(finding.remedy.commands)
    assert "trusted-host" in undone and "no-cache-dir" in undone
    assert "extra-index-url" not in undone
    assert on("CFG-002", file, traces=[file.path]).outcome == "skipped"
    assert on("CFG-002", file).outcome == "warn"


TEXT = st.text(max_size=80)


@given(TEXT, TEXT, TEXT, st.sampled_from(["pip", "uv"]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_foreign_settings_crash_no_check(
    key: str, value: str, path: str, tool: str, secret: bool
) -> None:
    setting = ConfigSetting(section="global", key=key, value=value, credentials=secret)
    file = ConfigFile(tool=tool, level="user", path=path, mode="0644", settings=[setting])  # type: ignore[arg-type]
    snap = good_snapshot(packaging_config=PackagingConfig(files=[file], pyindex_traces=[path]))
    for code in CODES:
        result = judge(snap, code, "config")
        assert "crashed" not in result.reason


@pytest.mark.parametrize(
    ("code", "name", "value", "words", "command"),
    [
        (
            "CFG-002",
            "PIP_TRUSTED_HOST",
            "mirror.example localhost",
            "of mirror.example are",
            "unset",
        ),
        ("CFG-003", "PIP_EXTRA_INDEX_URL", "https://own.example", "from https://own", "unset"),
        ("CFG-003", "UV_INDEX_STRATEGY", "unsafe-best-match", "unsafe-best-match", "unset"),
        ("CFG-002", "/etc/uv/uv.toml", "mirror.example", "mirror", "sudo sed -i.bak -E "),
        ("CFG-003", "/srv/pip.conf", "https://own.example", "own", "sed -i.bak -E "),
    ],
)
def test_a_setting_and_its_undo(code: str, name: str, value: str, words: str, command: str) -> None:
    file = variable(name, value)
    if name.endswith("toml"):
        file = config_file(name, "global", "uv", allow_insecure_host=value)
    elif name.endswith("conf"):  # which PIP_CONFIG_FILE names
        file = config_file(name, "environment", extra_index_url=value)
    (finding,) = on(code, file).findings
    assert finding.level == "warn" and words in finding.message
    assert finding.remedy is not None and finding.remedy.commands[0].startswith(command)


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("CFG-002", "PIP_TRUSTED_HOST", "127.0.0.1:8080 localhost"),
        ("CFG-003", "UV_EXTRA_INDEX_URL", "https://own.example/simple"),
        ("CFG-003", "UV_INDEX_STRATEGY", "first-index"),
    ],
)
def test_variables_that_are_fine(code: str, name: str, value: str) -> None:
    assert on(code, variable(name, value)).outcome == "pass"
