"""What others wrote, in files and in their names: through the command line, a terminal gets nothing raw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hostile
import msgspec
import pytest
import tomli_w
from h100 import machine

from envcheck import collection
from envcheck.cli import messages
from envcheck.cli.main import run
from envcheck.collection import Collected
from envcheck.facts import snapshot as snapshots
from envcheck.install.pythons import finding

ALL = pytest.mark.parametrize("text", hostile.TEXTS.values(), ids=hostile.TEXTS)


def spoiled(text: str) -> bytes:
    """A healthy machine's Snapshot in which every name and version ends in the text."""
    fields = {"name", "version", "driver_version", "os_name", "hostname", "kernel_version", "path"}

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(item, key) for item in value]
        return value + text if isinstance(value, str) and key in fields else value

    return msgspec.json.encode(walk(msgspec.json.decode(snapshots.dump(machine()))))


@ALL
@pytest.mark.parametrize(
    "command", ["explain {}", "doctor --only {}", "doctor --from {}", "{}", "install --stack {}"]
)
def test_an_error_that_repeats_what_was_typed(
    text: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words_ = [word.format(text.replace("\0", "0")[:3000]) for word in command.split(" ")]
    try:
        code = run(words_)
    except SystemExit as error:
        code = int(error.code or 0)
    assert code
    shown = capsys.readouterr()
    assert not hostile.problem(shown.err) and not hostile.problem(shown.out)


@ALL
def test_what_is_said_while_it_works(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    messages.say(text)
    messages.hint(f"first\n{text}")
    shown = capsys.readouterr().err
    assert not hostile.problem(shown.replace(f"    {hostile.FORGED}", ""))
    assert all(line.startswith(("envcheck: ", "hint: ", "    ")) for line in shown.splitlines())


def run_cli(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The exit code, and both streams, in which nothing is hostile."""
    try:
        code = run(list(words))
    except SystemExit as error:
        code = int(error.code or 0)
    out, err = capsys.readouterr()
    assert not hostile.problem(out) and not hostile.problem(err)
    assert "Traceback" not in err and "internal error" not in err
    return code, out + err


LOCK = {"lock-version": "1.0", "created-by": "envcheck"}
PACKAGE = {"name": "x", "version": "1.0", "wheels": [{"name": "x", "url": "https://x/x.whl"}]}


def locks(text: str) -> list[str]:
    text = text[:3000]
    ours = {"stack": text, "release": text, "python": text, "architecture": text}
    hashed = {**PACKAGE["wheels"][0], "hashes": {"sha256": text}}  # type: ignore[index]
    return [
        text,
        tomli_w.dumps({text: 1}),
        tomli_w.dumps({**LOCK, "created-by": text, "packages": []}),
        tomli_w.dumps({**LOCK, "packages": [{**PACKAGE, "name": text}]}),
        tomli_w.dumps({**LOCK, "packages": [{**PACKAGE, "version": text, "wheels": [hashed]}]}),
        tomli_w.dumps({**LOCK, "packages": [], "tool": {"envcheck": ours}}),
    ]


@ALL
def test_a_lock(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pylock.toml"
    for content in locks(text):
        file.write_bytes(content.encode("utf-8", "surrogateescape"))
        assert run_cli(capsys, "install", "--lock", str(file), "--plan")[0] == 2


STACK = {
    "name": "demo",
    "title": "A demonstration",
    "distribution": "demo",
    "requirement": "demo=={version}",
    "gpu": False,
    "architectures": ["x86_64"],
    "source": "the tests",
    "releases": [{"release": "1.0", "version": "1.0", "python": ["3.11"], "source": "x"}],
}


@ALL
@pytest.mark.parametrize("command", ["install --plan", "releases"])
def test_a_stack(
    text: str,
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collection, "collect", lambda **_options: Collected(machine(), {}))
    monkeypatch.setattr(finding, "obtainable", list)
    file = tmp_path / "stack.toml"
    index = [{"name": text, "url": f"https://{text[:80]}/", "packages": [text]}]
    changes = [{key: text[:3000]} for key in STACK if isinstance(STACK[key], str)]
    changes += [{text[:3000]: 1}, {"architectures": [text]}, {"otherwise": [text]}]
    changes += [{"indexes": index}, {"releases": [{"release": text, "version": text}]}]
    for change in changes:
        file.write_text(tomli_w.dumps({**STACK, **change}), "utf-8")
        words = [*command.split(), "--stack", str(file), "--python", "/nowhere-at-all"]
        assert run_cli(capsys, *words)[0] == 2, change


@ALL
def test_a_stack_that_is_no_toml(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "stack.toml"
    for content in (text, f"name = {text}", f'"{text}" = [', "a = " + "[" * 5000, "a." * 5000):
        file.write_text(content, "utf-8")
        assert run_cli(capsys, "releases", "--stack", str(file))[0] == 2


@ALL
def test_an_image_s_name(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (text, f"registry.example/{text}:1", f"x:{text}", f"x@sha256:{text}"):
        name = name.replace("\0", "0")
        assert run_cli(capsys, "install", "--image", name, "--plan")[0] == 2


@ALL
@pytest.mark.parametrize(
    "face", [*(f"--format {form}" for form in ("text", "json", "markdown", "junit")), "-v", "-q"]
)
def test_each_of_the_doctor_s_faces(
    text: str, face: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "machine.json"
    file.write_bytes(spoiled(text))
    code, shown = run_cli(capsys, "doctor", "--from", str(file), *face.split())
    assert code in (0, 1) and shown


@pytest.mark.parametrize("kind", ["escape sequence", "line end", "directions", "long"])
@pytest.mark.parametrize(
    "command",
    [
        "doctor --from",
        "doctor --target",
        "doctor --output",
        "doctor --from /dev/null --save",
        "collect --output",
        "collect --nvidia-smi",
        "collect --target",
        "releases --from",
        "releases --stack",
        "releases --python",
        "releases --output",
        "install --plan --lock",
        "install --plan --stack",
        "install --plan --python",
        "install --plan --offline",
        "bundle --lock",
        "list --output",
        "demo heat --save",
        "demo heat --output",
        "demo",
        "schema --output",
        "collector --output",
        "completion",
    ],
)
def test_a_file_s_name(
    kind: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a directory that is not there, and, where a name can be so, a file that holds nothing of use."""
    name = hostile.TEXTS[kind].replace("/", "_")
    places = [f"{tmp_path}/none-{name[:3000]}/{name[:3000]}"]
    if not command.endswith(("output", "save")):
        there = tmp_path / name[:60]
        there.write_bytes(b"\x1b[2J")
        places.append(str(there))
    for place in places:
        assert run_cli(capsys, *command.split(), place)[0] in (2, 3, 4), place
