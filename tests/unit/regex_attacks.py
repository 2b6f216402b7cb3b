"""Every regular expression of envcheck, and texts that are made to keep each of them busy."""

from __future__ import annotations

import ast
import contextlib
import csv
import importlib
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

import tomli

from envcheck.checks.declared import DeclaredRow

PACKAGE = Path(__file__).resolve().parents[2] / "envcheck"
CALLS = ("match", "search", "fullmatch", "split", "findall", "finditer", "sub", "subn")

# Which of their own characters a pattern's repeats are tried with, beside those that it names.
ALPHABET = " \t\n0a9f=@:/-._'\"\\<>&?;,#[](){}|xA\u00e9"


class Use(NamedTuple):
    """A pattern, and one of the ways in which it is used."""

    where: str  # "collector/redact.py:12"
    pattern: str | bytes
    flags: int
    call: str  # one of CALLS; "search" where it is not known: that does what all do, and more

    @property
    def compiled(self) -> re.Pattern[Any]:
        return re.compile(self.pattern, self.flags)


def files() -> list[Path]:
    return sorted([*PACKAGE.rglob("*.py"), *(PACKAGE / "install").rglob("*.py")])


@cache
def uses() -> tuple[list[Use], set[str]]:
    """All whose pattern is known before anything runs; and the files that have others."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in files()}
    everywhere = _calls_of_names(trees.values())
    found: list[Use] = []
    unknown: set[str] = set()
    for path, tree in trees.items():
        file = str(path.relative_to(PACKAGE))
        called = {**everywhere, **_calls_of_names([tree])}
        names = _assigned(tree)
        for node in ast.walk(tree):
            if not _is_re_call(node):
                continue
            assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            module = _module(path)
            try:
                pattern, flags = _value(node.args[0], module), _flags(node, module)
            except NameError:
                unknown.add(file)
                continue
            ways = {node.func.attr}
            if node.func.attr == "compile":
                ways = called.get(names.get(id(node), ""), set()) or {"search"}
                ways = {WAYS[file]} if file in WAYS else ways
            found += [Use(f"{file}:{node.lineno}", pattern, flags, way) for way in sorted(ways)]
    return [*found, *_of_tables()], unknown


def _of_tables() -> Iterator[Use]:
    """What stands in rows: of tables in modules, and of the data's CSV files."""
    for name, module in sorted(sys.modules.items()):
        if name.startswith("envcheck."):
            for key, value in vars(module).items():
                for row in value if isinstance(value, list | tuple) else ():
                    pattern = getattr(row, "pattern", None)
                    if isinstance(pattern, str) and not isinstance(row, DeclaredRow):
                        where = f"{name}.{key}"
                        yield Use(where, pattern, re.IGNORECASE, WAYS.get(where, "search"))
    for path in sorted((PACKAGE / "data").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                if line.get("pattern"):
                    yield Use(path.name, line["pattern"], re.IGNORECASE, "search")

    for path in sorted((PACKAGE / "checks").rglob("*.toml")):
        for cause in tomli.loads(path.read_text("utf-8")).get("cause", {}).values():
            row = cause.get("shown_by", {})
            if row.get(
                "pattern"
            ):  # of a setting's whole value, or in a line of a kind such as "nvrm"
                way = "fullmatch" if re.search("[A-Z.]", row["names"][0]) else "search"
                yield Use(path.name, row["pattern"], re.IGNORECASE, way)


# Where patterns are handed on before they are used.
WAYS = {
    "install/catalogue/positions.py": "match",
    "envcheck.install.catalogue.positions._STRINGS": "match",
}


def _is_re_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in ("compile", *CALLS)
    )


def _module(path: Path) -> ModuleType:
    """For the names in a pattern; Ansible's plug-ins have none, and need not be importable."""
    if "ansible_content" not in path.parts:
        return importlib.import_module(_name(path))
    module = ModuleType(path.stem)
    module.re = re  # type: ignore[attr-defined]
    return module


def _value(node: ast.expr, module: Any) -> Any:
    return eval(compile(ast.Expression(node), "pattern", "eval"), vars(module))


def _flags(node: ast.Call, module: Any) -> int:
    assert isinstance(node.func, ast.Attribute)
    named = {word.arg: word.value for word in node.keywords}
    at = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(node.func.attr, 2)
    flag = named.get("flags") or (node.args[at] if len(node.args) > at else None)
    return int(_value(flag, module)) if flag is not None else 0


def _assigned(tree: ast.AST) -> dict[int, str]:
    """Of each `NAME = re.compile(...)` its name."""
    return {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def _calls_of_names(trees: Iterable[ast.AST]) -> dict[str, set[str]]:
    """How each name is used, in whatever file: NAME.fullmatch(...), module.NAME.search(...)."""
    found: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in CALLS:
                owner = node.value
                name = getattr(owner, "id", getattr(owner, "attr", ""))
                found.setdefault(name, set()).add(node.attr)
    return found


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def attacks(use: Use) -> Iterator[tuple[Any, Any, Any]]:
    """(what comes before, what is repeated, what comes after): the shortest ways to each repeat in the
    pattern, with each of the characters that it takes, and an end at which it fails."""
    text = use.pattern if isinstance(use.pattern, str) else use.pattern.decode("latin-1")
    parsed = parser.parse(text, use.flags)
    found = dict.fromkeys(_pumps(list(parsed), "", parsed.state.flags))
    found.update(dict.fromkeys(("", c, "\0") for c in " a0-"))
    for before, pump, after in (one for one in found if one[1]):
        for end in dict.fromkeys(("\0", "" if pump == before else after, "\n<")):
            attack = (before, pump, end)
            if isinstance(use.pattern, bytes):
                yield tuple(part.encode("utf-8") for part in attack)
            else:
                yield attack


def _pumps(nodes: list[Any], before: str, flags: int) -> Iterator[tuple[str, str, str]]:
    for number, (kind, value) in enumerate(nodes):
        rest = "".join(_sample(node, flags) for node in nodes[number + 1 :])[:20]
        name = str(kind)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _least, most, body = value
            body = list(body)
            if most > 20:
                for pump in _bodies(body, flags):
                    yield (before, pump, rest)
                    if before:
                        yield ("", before + pump, "")
                if rest:
                    yield (before, rest, "")
            yield from _pumps(body, before, flags)
        elif name == "SUBPATTERN":
            yield from ((b, p, a + rest) for b, p, a in _pumps(list(value[3]), before, flags))
        elif name == "BRANCH":
            for branch in value[1]:
                yield from ((b, p, a + rest) for b, p, a in _pumps(list(branch), before, flags))
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _pumps(list(value[1]), before, flags)
        before += _sample((kind, value), flags)
    # All of it again and again, each time short of its end.
    if before:
        yield ("", before, "")
        yield ("", before[:-1], "")


def _bodies(body: list[Any], flags: int) -> list[str]:
    if len(body) == 1 and str(body[0][0]) in ("IN", "ANY", "NOT_LITERAL", "LITERAL"):
        one = re.compile(parser_text(body[0]), flags & re.IGNORECASE | re.DOTALL)
        return [c for c in ALPHABET if one.fullmatch(c)][:6] or [_sample(body[0], flags)]
    whole = "".join(_sample(node, flags) for node in body)
    inner = [pump for _b, pump, _a in _pumps(body, "", flags)]
    return list(dict.fromkeys([whole, *inner]))[:6]


def parser_text(node: Any) -> str:
    """A one-character node as a pattern again."""
    kind, value = str(node[0]), node[1]
    if kind == "ANY":
        return "."
    if kind == "LITERAL":
        return re.escape(chr(value))
    if kind == "NOT_LITERAL":
        return f"[^{re.escape(chr(value))}]"
    pieces, negated = [], ""
    for inner, of in value:
        match str(inner):
            case "NEGATE":
                negated = "^"
            case "LITERAL":
                pieces.append(re.escape(chr(of)))
            case "RANGE":
                pieces.append(f"{re.escape(chr(of[0]))}-{re.escape(chr(of[1]))}")
            case "CATEGORY":
                pieces.append(_CATEGORIES[str(of)])
    return f"[{negated}{''.join(pieces)}]"


_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _sample(node: Any, flags: int) -> str:
    """A short text that a part of a pattern takes."""
    kind, value = str(node[0]), node[1]
    match kind:
        case "LITERAL":
            return chr(value)
        case "IN" | "ANY" | "NOT_LITERAL":
            one = re.compile(parser_text(node), re.DOTALL)
            return next((c for c in "a0x.-_ A/:=\n\t\0\u00e9" + ALPHABET if one.fullmatch(c)), "a")
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return "".join(_sample(n, flags) for n in value[2]) * max(1, min(value[0], 64))
        case "SUBPATTERN":
            return "".join(_sample(n, flags) for n in value[3])
        case "BRANCH":
            return "".join(_sample(n, flags) for n in value[1][0])
    return ""


def work(use: Use) -> Callable[[Any], object]:
    """The call as the code makes it, on a whole text."""
    compiled = use.compiled
    if use.call in ("sub", "subn"):
        empty: Any = "" if isinstance(use.pattern, str) else b""
        return lambda text: compiled.sub(empty, text)
    if use.call == "finditer":
        return lambda text: sum(1 for _ in compiled.finditer(text))
    function: Callable[[Any], object] = getattr(compiled, use.call)
    return function


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError after so much of this process's own time, whatever else the machine does."""

    def over(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
