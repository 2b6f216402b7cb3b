"""What a command gets in an environment of wheels, and which shell is started how."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.install.start import wheel
from envcheck.install.transaction.layout import Version
from envcheck.install.wheels import activation

ODD = {"A": 'it\'s $HOME; `x` \\ "q"', "TF_X": "1", "EMPTY": ""}


@pytest.fixture
def version(tmp_path: Path) -> Version:
    """With activation scripts, as short as they can be."""
    made = Version(tmp_path / "tiny" / "1.0-py3.11-00000001")
    (made.directory / "bin").mkdir(parents=True)
    script = made.directory / "bin" / "activate"
    script.write_text('deactivate () {\n    true\n}\nVIRTUAL_ENV="x"\n')
    return made


def test_activation_is_read_as_it_was_written(version: Version) -> None:
    assert activation.read(version.directory) == {}
    activation.write(version.directory, ODD)
    assert activation.read(version.directory) == ODD
    with (version.directory / "bin" / "activate").open("a") as script:
        script.write("\nMINE=1 ; export MINE\n")
    assert activation.read(version.directory) == ODD


def test_another_shell_or_one_without_a_terminal_gets_the_variables(version: Version) -> None:
    for shell, interactive in (("/usr/bin/fish", True), ("/bin/bash", False), ("", False)):
        caller = {"SHELL": shell, "PATH": "/usr/bin"}
        found = wheel.shell(version, caller, interactive=interactive)
        assert found.argv == [shell or "/bin/sh"]
        assert found.environment == wheel.activated(version, caller)
