"""`uv pip compile` at the real indexes: what it is given, and what it answers.

Each own index of the stack is `explicit`: it serves the direct requirements that a source binds to it, and
nothing else. Nothing is built: what a named sdist needs is passed to uv, and every other sdist is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import tomli
import tomli_w
from packaging.utils import canonicalize_name
from packaging.version import Version

from ... import scratch
from ...data import packages
from ...exit_codes import CouldNotLook
from ..catalogue.model import PUBLIC
from ..lockfile import LockedFile
from ..network import addresses
from . import child_env, uv
from .indexes import Indexes
from .pins import PROJECT, NoSolution, Pin, Question, Target

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>\S+)")
_FROM = re.compile(r"\s*# from (?P<index>\S+)")


def compile_(question: Question, target: Target, indexes: Indexes) -> list[Pin]:
    """One pass: the packages that meet the requirements, by name, without their files.

    Raises NoSolution, and CouldNotLook where an index or uv fails.
    """
    options = ["--annotation-style", "line", "--emit-index-annotation"]
    return parse(_run(question, target, indexes, options))


def with_files(
    pins: Sequence[Pin], question: Question, target: Target, indexes: Indexes
) -> list[Pin]:
    """The same pins with their files, which uv writes as pylock.toml alone.

    It asks the pages that the pass has just read; only a file without a hash is fetched, to have one.
    Raises CouldNotLook where an index has changed meanwhile.
    """
    exactly = msgspec.structs.replace(
        question,
        direct=[pin.name for pin in pins],
        constraints=[f"{pin.name}=={pin.version}" for pin in pins],
        dependencies=False,
    )
    options = ["--format", "pylock.toml"]
    try:
        answer = _run(exactly, target, indexes, [*options, "--offline"])
    except (NoSolution, CouldNotLook):
        answer = _run(exactly, target, indexes, options)
    files = parse_files(answer)
    missing = [pin.name for pin in pins if not files.get(pin.name)]
    if missing:
        raise CouldNotLook(f"the index of {missing[0]} no longer offers a file of it that fits")
    return [msgspec.structs.replace(pin, files=files[pin.name]) for pin in pins]


def parse(output: str) -> list[Pin]:
    """`NAME==VERSION  # via A, B` and `# from INDEX`, as uv writes both."""
    pins: list[Pin] = []
    for line in output.splitlines():
        if pins and (source := _FROM.fullmatch(line)):
            pins[-1] = msgspec.structs.replace(pins[-1], index=source["index"])
            continue
        pinned, _, via = line.partition("# via ")
        if found := _PIN.match(pinned.strip()):
            name, version = canonicalize_name(found["name"]), found["version"]
            needed_by = [one.split()[0] for one in via.split(",") if one.strip()]
            names: list[str] = [canonicalize_name(one) for one in needed_by if one[0] != "-"]
            pins.append(Pin(name=name, version=version, index="", needed_by=names))
    return sorted(pins, key=lambda pin: pin.name)


def parse_files(text: str) -> dict[str, list[LockedFile]]:
    """The files of uv's pylock.toml by package; "" for a sha256 that it does not have."""
    found: dict[str, list[LockedFile]] = {}
    for package in tomli.loads(text)["packages"]:
        for kind in ("wheels", "sdist", "archive"):
            listed = package.get(kind, [])
            for entry in listed if isinstance(listed, list) else [listed]:
                url = entry["url"].partition("#")[0]
                file = LockedFile(
                    name=entry.get("name") or unquote(urlsplit(url).path.rpartition("/")[2]),
                    url=url,
                    sha256=entry.get("hashes", {}).get("sha256", ""),
                    size=entry.get("size"),
                )
                found.setdefault(package["name"], []).append(file)
    return found


def hashed(pin: Pin, file: LockedFile, target: Target, indexes: Indexes) -> LockedFile:
    """The file with its sha256, which its index does not give: uv fetches it to know that.

    Nothing vouches for it but the connection to the index; from then on, the lock does. Raises CouldNotLook.
    """
    question = Question(requirements=[f"{pin.name} @ {file.url}"], dependencies=False)
    try:
        files = parse_files(_run(question, target, indexes, ["--format", "pylock.toml"]))
    except NoSolution as error:
        raise CouldNotLook(f"{file.name} has no sha256 that could be found: {error}") from None
    return msgspec.structs.replace(file, sha256=files[pin.name][0].sha256)


def _run(question: Question, target: Target, indexes: Indexes, options: Sequence[str]) -> str:
    """uv's answer."""
    result = _once(question, target, indexes, options)
    if result.ok:
        answer: str = result.stdout.decode("utf-8")
        return answer
    whole = result.stderr.decode("utf-8", "replace")
    if trouble := indexes.trouble(whole):
        raise trouble
    if "No solution found" in whole:
        raise NoSolution(uv.sentence(result), whole, uv.hints(whole))
    raise CouldNotLook(f"uv could not resolve the requirements: {uv.sentence(result)}")


def _once(question: Question, target: Target, indexes: Indexes, options: Sequence[str]) -> Any:
    with scratch.directory() as folder:
        project = folder / "pyproject.toml"
        project.write_text(tomli_w.dumps(_project(question, indexes)), encoding="utf-8")
        settings = folder / "uv.toml"
        settings.write_text(tomli_w.dumps(_settings(question, indexes)), encoding="utf-8")
        bounds = folder / "constraints.txt"
        lines = [*question.constraints, *_placeholders()]
        lines += [f"{sdist.name}=={sdist.version}" for sdist in question.sdists]
        bounds.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        argv: list[str | Path] = ["pip", "compile", project, "--constraints", bounds]
        argv += [*target.options(), "--quiet", "--no-header", "--only-binary", ":all:", *options]
        argv += [f"--no-binary={sdist.name}" for sdist in question.sdists]
        argv += [] if question.dependencies else ["--no-deps"]
        env = {**child_env.online(folder), **access(indexes)}
        hosts = sorted({addresses.host(indexes.url(name)) for name in indexes.names})
        whose = f"the index {hosts[0]}" if len(hosts) == 1 else f"one of {', '.join(hosts)}"
        return uv.run_online(argv, env, settings, whose)


def _project(question: Question, indexes: Indexes) -> dict[str, Any]:
    """The pyproject.toml whose direct requirements are bound to their indexes."""
    wanted = [*question.requirements, *question.direct]
    names = {canonicalize_name(re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0]) for one in wanted}
    own = {name: at for name in sorted(names) if (at := indexes.stack.index_of(name)) != PUBLIC}
    used = [name for name in indexes.names if name in own.values()]
    sources = {name: {"index": _uv_name(at, indexes)} for name, at in own.items()}
    return {
        "project": {"name": PROJECT, "version": "0", "dependencies": wanted},
        "tool": {
            "uv": {
                "index": [_index(name, indexes) | {"explicit": True} for name in used],
                "sources": sources,
            }
        },
    }


def _settings(question: Question, indexes: Indexes) -> dict[str, Any]:
    """uv.toml: the public index, and what named sdists ask for, so that none is built for that."""
    metadata = [
        {"name": sdist.name, "version": sdist.version, "requires-dist": sdist.requires_dist}
        for sdist in question.sdists
    ]
    public = [_index(PUBLIC, indexes) | {"default": True}]
    return {"index": public, **({"dependency-metadata": metadata} if metadata else {})}


def index_settings(indexes: Indexes | None) -> str:
    """A uv.toml with all indexes, whose credentials are for the files on their hosts, too."""
    if indexes is None:
        return ""
    return tomli_w.dumps({"index": [_index(name, indexes) for name in indexes.names]})


def access(indexes: Indexes) -> dict[str, str]:
    """Credentials by the names of the indexes, and hosts whose certificates are not checked."""
    return indexes.variables({_uv_name(name, indexes): indexes.url(name) for name in indexes.names})


def _index(name: str, indexes: Indexes) -> dict[str, Any]:
    return {"name": _uv_name(name, indexes), "url": indexes.public_url(name)}


def _uv_name(name: str, indexes: Indexes) -> str:
    """A catalogue may call an index what uv does not take."""
    return f"index{indexes.names.index(name)}"


def _placeholders() -> list[str]:
    """Versions that hold a name and are not the software. uv takes no pre-release unasked, and a constraint
    that names one would ask."""
    return [
        f"{name}!={version}"
        for name, versions in packages.placeholders().items()
        for version in versions
        if not Version(version).is_prerelease
    ]
