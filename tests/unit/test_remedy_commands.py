"""No remedy destroys: what is removed, reset or switched off, and what comes before it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import refusals
from regex_attacks import Use
from test_regex_linear import superlinear

import envcheck
from envcheck.checks.registry import all_checks
from envcheck.data import table
from envcheck.findings.commands import TRADE, fill_in, refusal, simple_commands
from envcheck.findings.remedy import NOT_PRINTED, Remedy

PACKAGE = Path(envcheck.__file__).parent

REFUSED: dict[str, tuple[list[str], str]] = {
    "uninstall first": (
        ["python -m pip uninstall -y tensorflow", "python -m pip install tensorflow==2.15.1"],
        "before its replacement",
    ),
    "uninstall whatever became of the installation": (
        ["python -m pip install tensorflow==9; python -m pip uninstall -y tensorflow-cpu"],
        "before its replacement",
    ),
    "uv's": (["uv pip uninstall --python /x/python torch"], "before its replacement"),
    "conda's": (["conda remove -y tensorflow"], "before its replacement"),
    "the runfile's driver": (
        ["sudo '/usr/bin/nvidia-uninstall'", "sudo apt install --reinstall libnvidia-compute-535"],
        "before its replacement",
    ),
    "a reset before the report": (
        ["sudo dmesg", "sudo nvidia-smi --gpu-reset -i 0", "sudo nvidia-bug-report.sh"],
        "before nvidia-bug-report.sh",
    ),
    "a reset after an installation": (
        ["sudo apt install nvidia-driver-550", "sudo nvidia-smi --gpu-reset -i 0"],
        "before nvidia-bug-report.sh",
    ),
    "a report after the reboot": (
        ["sudo dmesg", "sudo reboot", "sudo nvidia-bug-report.sh"],
        "after a reset or a reboot",
    ),
    "a reset after the reboot": (
        ["sudo nvidia-bug-report.sh", "sudo reboot", "sudo nvidia-smi --gpu-reset"],
        "after a reboot",
    ),
    "a reboot first": (["sudo reboot"], "comes first"),
    "a reboot of the host first": (["# on the host: sudo reboot"], "comes first"),
    "a cloud's reboot first": (["az vm restart -g a -n b"], "comes first"),
    "a module unloaded first": (["sudo modprobe -r nvidia && sudo modprobe nvidia"], "comes first"),
    "a pod deleted first": (["kubectl delete pod web"], "comes first"),
    "files removed first": (["sudo env A=1 rm -f /usr/lib/libcuda.so.1"], "comes first"),
    "packages removed first": (["sudo apt purge nvidia-driver-550"], "comes first"),
    "ECC": (["nvidia-smi", "sudo nvidia-smi -i 0000:1b:00.0 -e 0"], "protection off"),
    "MIG": (["nvidia-smi", "sudo nvidia-smi -i 0 -mig 0"], "protection off"),
    "persistence": (["nvidia-smi", "sudo nvidia-smi -pm 0"], "protection off"),
    "nodes": (["ls", "sudo chmod 0666 /dev/nvidiactl"], "protection off"),
    "nodes in letters": (["ls", "sudo chmod a+rw /dev/nvidiactl"], "protection off"),
    "ACS": (["lspci", "sudo setpci -s 0:1.0 ECAP_ACS+0x6.w=0000"], "protection off"),
    "SELinux": (["ls", "sudo setenforce 0"], "protection off"),
    "a label": (["ls", "podman run --security-opt=label=disable x"], "protection off"),
    "privileges": (["ls", "docker run --privileged x"], "protection off"),
    "Secure Boot": (["ls", "az vm update --enable-secure-boot false"], "protection off"),
    "a certificate": (["ls", "pip install --trusted-host x y"], "protection off"),
    "a key": (["ls", "sudo zypper --gpg-auto-import-keys install x"], "protection off"),
    "TLS": (["ls", "curl -k https://example.org"], "protection off"),
    "noexec": (["ls", "sudo mount -o remount,exec /home"], "protection off"),
    "a protection first": (["sudo setpci -s 0:1.0 ECAP_ACS+0x6.w=0000"], "comes first"),
    "an open quote": (["echo 'x"], "no shell can read"),
    "an empty word": (["sudo apt install nvidia-utils-''"], "not filled in"),
    "a placeholder": (["py-spy dump --pid PID"], "not filled in"),
    "a placeholder in brackets": (["kill <pid>"], "not filled in"),
    "a made-up path": (["export TMPDIR=/path/on/a/larger/disk"], "not filled in"),
}

PRINTED: dict[str, list[str]] = {
    "what replaces comes first": [
        "python -m pip install x==1 --force-reinstall && python -m pip uninstall -y y"
        " && python -m pip install x==1 --force-reinstall --no-deps"
    ],
    "nothing imports it": ["python -m pip uninstall -y nvidia-pyindex"],
    "report, reset, reboot": [
        "sudo nvidia-bug-report.sh",
        "sudo nvidia-smi --gpu-reset -i 0000:1b:00.0",
        "sudo reboot",
    ],
    "a mode, and the reset that it waits for": [
        "sudo nvidia-smi -i 0 -e 1",
        "sudo nvidia-smi --gpu-reset -i 0",
    ],
    "a container that removes itself": ["docker run --rm --gpus all ubuntu nvidia-smi -L"],
    "words that name a program": ["grep -n 'rm -rf reboot' x", "echo rm"],
    "an apostrophe": ["echo 'it'\"'\"'s'", "echo ''\"'\"'x'\"'\"''"],
    "a token of redaction": ["'<home-1>/venv/bin/python' -c 'import x'"],
    "a word to fill in": [f"kubectl get pod {fill_in('POD', 'the pod')} -o yaml"],
    "closing a file": ["sudo chmod 600 /etc/pip.conf"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    listed, why = REFUSED[name]
    with refusals.expected():
        remedy = Remedy("Do it.", listed)
    assert remedy.commands == []
    assert remedy.text.startswith(f"Do it. {NOT_PRINTED}") and why in remedy.text


@pytest.mark.parametrize("name", PRINTED)
def test_printed(name: str) -> None:
    assert Remedy("Do it.", PRINTED[name]) == Remedy("Do it.", list(PRINTED[name]))
    assert Remedy("Do it.", PRINTED[name]).commands == PRINTED[name]


def test_a_protection_is_given_up_in_so_many_words_alone() -> None:
    listed = ["lspci", "sudo setpci -s 0:1.0 ECAP_ACS+0x6.w=0000"]
    assert refusal(listed, f"Do it. {TRADE}no isolation.") == "" != refusal(listed, "Do it.")


def test_hostile_words_are_no_commands() -> None:
    listed = ["ls '; sudo reboot'", 'ls "$(rm -rf /)"', "python -m pip install 'x && rm y'"]
    assert refusal(listed, "") == ""


# conftest.py sees the remedies of all other tests; what none of their machines has: the templates.

# Words in capital letters that programs know.
KNOWN = {
    "ACSCTL", "AER", "ALL", "BAR", "CLOCK", "CUDA", "DEFAULT", "OPTIONS", "TARGET", "ECC",
    "EXCLUSIVE_PROCESS", "FABRIC", "FROM", "GPU", "INFO", "LABEL", "NODE", "NVIDIA", "PCIE", "PERFORMANCE",
    "POWER", "RUN", "TEMPERATURE",
}  # fmt: skip
PROGRAM = re.compile(
    r"(# on the host: )?(sudo|nvidia-\w+|docker|podman|kubectl|lxc|apptainer|python\d?|pip|uv|conda|export"
    r"|unset|ls|cat|grep|echo|apt|dnf|az|gcloud|helm|curl|find|lspci|srun|mokutil|sudoedit|envcheck|ibstat"
    r"|numactl) "
)


def literals() -> Iterator[tuple[str, str]]:
    """(file, text) of each text in the checks that looks like a command; {} stands for what is put in."""
    for path in sorted(PACKAGE.glob("checks/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = ""
            if isinstance(node, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else "x" for p in node.values)
                text = "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            if PROGRAM.match(text) and "\n" not in text and not text.endswith((".", ":")):
                yield f"{path.name}: {text}", text
    yield from declared()


def declared() -> Iterator[tuple[str, str]]:
    """(cause, command) of the commands that causes declare."""
    for check in all_checks():
        for cause in check.causes:
            for text in cause.commands:
                yield f"{cause.key}: {text}", re.sub(r"(?<!\$)\{\w+\}", "x", text)


@pytest.mark.parametrize("text", dict(literals()).values(), ids=list(dict(literals())))
def test_each_text_of_a_command_has_nothing_left_to_fill_in(text: str) -> None:
    found = refusal(["true", text.replace("{}", "x")], TRADE)
    assert not re.search("not filled in", found), found


# What installs, and what starts services, differs from machine to machine: two modules and a table know how.
MAKERS = ("system_commands.py", "installing.py")
MADE = re.compile(
    r"(?<![\w`./-])(pip3? (install|uninstall|list|show|config)\b|(conda|mamba) install\b"
    r"|apt(-get)? (install|purge|remove|update)\b|(dnf|yum|zypper|pacman|systemctl|rc-service) "
    r"|rpm -|dpkg -)"
)


def test_no_check_writes_a_command_of_an_installer_or_of_an_init_itself() -> None:
    written = []
    for path in sorted(PACKAGE.glob("checks/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and path.name not in MAKERS and MADE.search(text):
                written.append(f"{path.name}:{node.lineno}: {text}")
    written += [
        about for about, text in declared() if MADE.search(text) and "systemctl" not in text
    ]
    assert written == []  # `adapted` puts systemctl into the words of other inits


KEYS = ("what", "on", "words", "check", "cause")


def rows() -> Iterator[tuple[str, list[str]]]:
    for name in ("system_commands", "engine_errors", "framework_messages"):
        for row in table(name):
            listed = [part.strip() for part in (row["commands"] or "").split(";;")]
            about = " ".join(row[key] for key in KEYS if key in row)
            yield about, [part for part in listed if part]


# Those that a check prints after something else, or only with the sentence of what is given up.
AFTER = (
    "remove-driver",
    "purge ",
    "secure-boot-off",
    "nvml error: insufficient permissions",
    "avc:  denied",
    "boot-options",
)


@pytest.mark.parametrize(("about", "listed"), [*rows()], ids=[about for about, _ in rows()])
def test_each_row_of_commands_may_be_printed(about: str, listed: list[str]) -> None:
    filled = [re.sub(r"(?<!\$)\{\w+\}", "x", command) for command in listed]
    ahead = ["true"] if about.startswith(AFTER) else []
    text = TRADE if about.startswith(AFTER) else ""
    assert refusal([*ahead, *filled], text) == ""
    for command in filled:
        bare = re.sub(r"\$\{[A-Z]+:\?[^}]*\}", "x", command.partition("  # ")[0])
        capitals = set(re.findall(r"(?<![\w./$-])[A-Z]{3,}(?![\w=./*])", bare))
        assert capitals <= KNOWN, capitals


def test_each_effect_is_tried() -> None:
    listed = [command for commands, _why in REFUSED.values() for command in commands]
    listed += [command for commands in PRINTED.values() for command in commands]
    seen = set()
    for command in listed:
        if command != "echo 'x":
            seen |= {effect for one in simple_commands(command) for effect in one.effects}
    assert seen == {row["effect"] for row in table("command_effects")}


def test_each_pattern_is_linear() -> None:
    for row in table("command_effects"):
        program, rest = row["program"], row["arguments"]
        assert not superlinear(Use("commands", program, 0, "fullmatch"))
        assert not superlinear(Use("commands", rest, 2, "search"))
