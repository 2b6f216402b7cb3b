"""What CI does to a machine: packages without their services, a sentence for what cannot be had, no trace."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from processes import PATIENCE, begun, wait_for

CI = Path(__file__).parents[2] / ".ci"
INSTALL = '. "$CI/packages"; policy=$POLICY; install "the tests" one two; echo went on'
APT = """\
#!/bin/sh
case "$*" in
*install*) cp "$POLICY" seen; echo "$@" > asked; {then} ;;
esac
"""


class Machine:
    """A PATH with little on it, where apt-get is a stand-in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.policy = folder / "policy-rc.d"
        for tool in ("bash", "sh", "cp", "rm", "chmod", "grep", "sleep", "touch", "dirname"):
            (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def has(self, name: str, script: str) -> None:
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def start(self, *argv: str | Path) -> subprocess.Popen[str]:
        variables = {"PATH": str(self.bin), "CI": str(CI), "POLICY": str(self.policy)}
        return begun(
            ["bash", *argv],
            cwd=self.folder,
            env={**variables, "HOME": str(self.folder)},
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def install(self, *, then: str, root: bool = True) -> tuple[str, str]:
        self.has("id", f"#!/bin/sh\necho {0 if root else 1000}\n")
        self.has("apt-get", APT.replace("{then}", then))
        self.has("apt-cache", '#!/bin/sh\n[ "$2" = two ] || echo "Package: $2"\n')
        return self.start("-euo", "pipefail", "-c", INSTALL).communicate(timeout=PATIENCE)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(("then", "text"), [("true", ""), ("exit 100", "could not be installed")])
def test_no_service_starts_and_the_guard_goes(machine: Machine, then: str, text: str) -> None:
    out, result = machine.install(then=then)
    assert out == "went on\n" and text in result
    assert (machine.folder / "seen").read_text().endswith("exit 101\n")
    assert (machine.folder / "asked").read_text().split()[-1] == "one", "nobody knows the other"
    assert not machine.policy.exists()


def test_somebody_elses_guard_stays(machine: Machine) -> None:
    machine.policy.write_text("#!/bin/sh\nexit 0\n")
    machine.install(then="true")
    assert machine.policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_the_guard_of_one_that_was_killed_goes(machine: Machine) -> None:
    machine.install(then='cp "$POLICY" kept')
    shutil.copy(machine.folder / "kept", machine.policy)
    machine.install(then="true")
    assert not machine.policy.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_guard_goes_with_whoever_is_interrupted(machine: Machine, number: int) -> None:
    machine.has("id", "#!/bin/sh\necho 0\n")
    machine.has("apt-get", APT.replace("{then}", "touch there; sleep 20"))
    machine.has("apt-cache", "#!/bin/sh\necho Package\n")
    running = machine.start("-euo", "pipefail", "-c", INSTALL)
    assert wait_for(lambda: (machine.folder / "there").exists())
    os.killpg(running.pid, number)
    out, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode != 0 and out == ""
    assert wait_for(lambda: not machine.policy.exists())


def test_without_root_or_apt_it_goes_on(machine: Machine) -> None:
    out, output = machine.install(then="true", root=False)
    assert out == "went on\n" and "only root installs packages" in output
    assert not (machine.folder / "seen").exists()
    (machine.bin / "apt-get").unlink()
    out, output = machine.start(CI / "engines").communicate(timeout=PATIENCE)
    assert out == f"{machine.folder}/.cache/envcheck-ci/engines\n"
    assert output.count("ci: no apt-get here") == 3 and len(output.splitlines()) == 3
