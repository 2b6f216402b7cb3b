"""README and the manual: their links lead somewhere, their commands are commands, their tables are true."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import generate
import pytest

from envcheck import __version__
from envcheck.checks.registry import all_checks, areas
from envcheck.cli import doctor
from envcheck.cli.main import COMMANDS, build_parser
from envcheck.cli.stacks import containers
from envcheck.exit_codes import ExitCode
from envcheck.install.catalogue.load import names

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
MANUAL = REPOSITORY / "docs"
PAGES = [
    README,
    *sorted(MANUAL.glob("*.md")),
    REPOSITORY / "CONTRIBUTING.md",
    REPOSITORY / "CHANGELOG.md",
    REPOSITORY / "Dockerfiles" / "README.md",
]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def named(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What a forge makes of the headings: lower case, hyphens for spaces, nothing else but words."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text()), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


def test_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 200


def test_the_page_of_codes_is_the_checks_own() -> None:
    assert generate.CODES.read_text() == generate.codes(), (
        "write it anew: .venv/bin/python tests/generate.py"
    )


def test_contributing_names_every_room_in_its_own_words() -> None:
    assert generate.CONTRIBUTING.read_text() == generate.rooms(), (
        "write it anew: .venv/bin/python tests/generate.py"
    )


def test_every_function_of_the_walk_through_the_code_is_there() -> None:
    named_here = re.findall(r"`([\w/]+\.py): (\w+)`", (MANUAL / "install-walk.md").read_text())
    assert len(named_here) > 20
    for file, name in named_here:
        tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
        there = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        assert name in there, f"{file} has no {name}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(without_code(page.read_text())):
        place, _, anchor = link.partition("#")
        assert not place.startswith(("http:", "https:", "/")), (
            f"{link}: all of it is in the checkout"
        )
        leads_to = (page.parent / place).resolve() if place else page
        assert leads_to.exists(), link
        assert leads_to.is_relative_to(REPOSITORY), link
        assert not anchor or anchor in anchors(leads_to), link


def test_the_manual_has_every_page_of_it() -> None:
    index = MANUAL / "README.md"
    linked = {(MANUAL / link.partition("#")[0]).name for link in LINK.findall(index.read_text())}
    assert {page.name for page in MANUAL.glob("*.md")} - {"README.md"} <= linked
    assert "docs/README.md" in LINK.findall(README.read_text())


def shown_commands() -> list[str]:
    """Those in blocks for a shell, as they stand there."""
    found = {}
    for page in PAGES:
        for kind, block in re.findall(
            r"^```(sh|console)\n(.*?)^```", page.read_text(), re.M | re.S
        ):
            for line in block.splitlines():
                prompt = line.startswith("$ ")
                command = line.removeprefix("$ ").partition("#")[0].strip()
                if command.startswith("envcheck ") and (prompt or kind == "sh"):
                    found[command] = None
    return list(found)


def test_there_are_commands_to_check() -> None:
    missing = set(COMMANDS) - {line.split()[1] for line in shown_commands()}
    assert missing <= {"explain", "schema", "completion"}, "shown in the text alone"


@pytest.mark.parametrize("line", shown_commands())
def test_a_shown_command_is_one(line: str) -> None:
    arguments = shlex.split(line)[1:]
    assert arguments[0] in COMMANDS
    parsed = vars(build_parser(arguments).parse_args(arguments))
    chosen = doctor._selection([*parsed.get("only", ()), *parsed.get("skip", ())])
    assert {*chosen} <= {*areas(), *(check.code for check in all_checks())}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_command_in_the_text_has_its_options(page: Path) -> None:
    text = " ".join(without_code(page.read_text()).split())
    for line in re.findall(r"`envcheck ([a-z][^`]*)`", text):
        words = line.split()
        assert words[0] in COMMANDS, line
        helped = build_parser([words[0]])
        options = set(re.findall(r"--[a-z-]+", _help_of(helped, words[0])))
        before = words[: words.index("--")] if "--" in words else words
        used = {word.partition("=")[0] for word in before if word.startswith("--")}
        assert used <= options | {"--help"}, line


def _help_of(parser: object, command: str) -> str:
    (commands,) = [a.choices for a in parser._actions if a.dest == "command"]  # type: ignore[attr-defined]
    return " ".join(option for a in commands[command]._actions for option in a.option_strings)


def test_the_exit_codes_are_all_of_them() -> None:
    table = README.read_text().partition("## Exit codes")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE)
    assert {int(code) for codes in shown for code in codes.split(", ")} == set(ExitCode)


def test_the_stacks_are_those_of_the_catalogue() -> None:
    table = README.read_text().partition("## Stacks")[2].partition("\n## ")[0]
    first = "".join(re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE))
    assert set(re.findall(r"`([^`]+)`", first)) == {*names(), *containers()}


def test_the_newest_changes_are_those_of_this_version() -> None:
    headings = re.findall(r"^## (.+)$", (REPOSITORY / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert headings[0] == __version__
