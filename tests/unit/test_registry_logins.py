"""Where logins for registries come from, and that nothing of them is ever shown."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envcheck.install.registry import logins
from envcheck.install.registry.logins import Logins


def auth(user: str, word: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{word}".encode()).decode()}


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            "HOME": str(folder),
            "PATH": str(folder / "bin"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
        }

    def write(self, path: str, content: Any) -> Path:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content if isinstance(content, str) else json.dumps(content))
        return place

    def of(self, registry: str, repository: str = "") -> tuple[str, str, str] | None:
        found = Logins(self.environ).of(registry, repository)
        return None if found is None else (found.user, found.password, found.source)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_podman_s_file_comes_first_and_ngc_s_key_last(home: Home) -> None:
    assert home.of("nvcr.io") is None
    home.environ["NGC_API_KEY"] = "key\n"
    assert home.of("nvcr.io") == ("$oauthtoken", "key", "NGC_API_KEY")
    assert home.of("other.io") is None
    home.environ |= {
        "REGISTRY_AUTH_FILE": str(home.folder / "named.json"),
        "DOCKER_CONFIG": str(home.folder / "d"),
        "XDG_CONFIG_HOME": str(home.folder / "c"),
    }
    places = ["d/config.json", "c/containers/auth.json", "run/containers/auth.json", "named.json"]
    for number, place in enumerate(places):
        path = home.write(place, {"auths": {"nvcr.io": auth("user", f"pa:ss{number}")}})
        assert home.of("nvcr.io") == ("user", f"pa:ss{number}", str(path))


@pytest.mark.parametrize(
    ("repository", "user"), [("team/a", "a"), ("team/b", "team"), ("other", "all"), ("", "all")]
)
def test_the_most_particular_namespace_counts(home: Home, repository: str, user: str) -> None:
    names = {"nvcr.io": "all", "nvcr.io/team": "team", "nvcr.io/team/a": "a"}
    path = home.write(
        ".config/containers/auth.json", {"auths": {name: auth(names[name], "w") for name in names}}
    )
    assert home.of("nvcr.io", repository) == (user, "w", str(path))


@pytest.mark.parametrize(
    "content",
    [
        "{", "[]", '{"auths": 1}', '{"auths": {"nvcr.io": {"auth": 7}}}', "\x00", '"' + "x" * (2 << 20),
        '{"auths": {"nvcr.io": {"auth": "???secret???"}}}', '{"auths": {"nvcr.io": null}}',
        '{"auths": {"nvcr.io": {"auth": "MDAwMDo=", "identitytoken": "no password"}}}',
    ],
)  # fmt: skip
def test_what_is_no_login_is_skipped(home: Home, content: str) -> None:
    home.write(".config/containers/auth.json", content)
    assert home.of("nvcr.io", "nvidia/x") is None
    home.write(".docker/config.json", {"auths": {"nvcr.io": auth("user", "w")}})
    assert home.of("nvcr.io", "nvidia/x") is not None


class Helpers:
    """Stands in for the programs."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str]] = []

    def run(self, argv: list[str], *, deadline: float, env: dict[str, str]) -> Any:
        asked, program = argv[-2:]
        self.asked.append((Path(program).name, asked))
        assert deadline <= 30 and not [word for word in argv if "secret" in word]
        answer = self.answers.get(asked, "")
        return SimpleNamespace(ok=bool(answer), stdout=answer.encode())


@pytest.fixture
def helpers(home: Home, monkeypatch: pytest.MonkeyPatch) -> Helpers:
    found = Helpers({
        "nvcr.io": '{"ServerURL": "nvcr.io", "Username": "user", "Secret": "secret"}',
        "https://index.docker.io/v1/": '{"Username": "<token>", "Secret": "secret"}',
        "broken.io": "secret",
    })  # fmt: skip
    monkeypatch.setattr(logins.processes, "run", found.run)
    for name in ("one", "all"):
        home.write(f"bin/docker-credential-{name}", "").chmod(0o755)
    return found


def test_helpers_are_asked_for_their_registries(home: Home, helpers: Helpers) -> None:
    content = {"auths": {"nvcr.io": {}}, "credHelpers": {"nvcr.io": "one"}, "credsStore": "all"}
    home.write(".docker/config.json", content)
    known = Logins(home.environ)
    assert not helpers.asked
    for _ in range(2):
        found = known.of("nvcr.io", "nvidia/tensorflow")
        assert found is not None and (found.user, found.password) == ("user", "secret")
        assert found.source == "docker-credential-one"
    assert not any(map(known.of, ("docker.io", "unknown.io", "broken.io")))
    asked = ["https://index.docker.io/v1/", "unknown.io", "broken.io"]
    assert helpers.asked == [
        ("docker-credential-one", "nvcr.io"),
        *(("docker-credential-all", name) for name in asked),
    ]


@pytest.mark.parametrize("name", ["missing", "../../bin/sh", "-x", ""])
def test_a_helper_that_is_not_there(home: Home, helpers: Helpers, name: str) -> None:
    home.write(".docker/config.json", {"credHelpers": {"nvcr.io": name}})
    known = Logins(home.environ)
    assert known.of("nvcr.io") is None and not helpers.asked


def test_nothing_is_shown(home: Home) -> None:
    known = Logins({**home.environ, "NGC_API_KEY": "secret"})
    hint = Logins(home.environ).hint("nvcr.io")
    assert "NGC_API_KEY" in hint and "podman login nvcr.io" in hint
    shown = [repr(known), repr(known.of("nvcr.io")), known.hint("nvcr.io")]
    assert not [text for text in shown if "secret" in text]
