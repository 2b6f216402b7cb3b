"""Where logins for registries come from, and that nothing of them is ever shown."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envcheck.install.registry import logins
from envcheck.install.registry.logins import Login, Logins


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
    places = [
        ".docker/config.json",
        ".config/containers/auth.json",
        "run/containers/auth.json",
        "named.json",
    ]
    home.environ["REGISTRY_AUTH_FILE"] = str(home.folder / "named.json")
    for number, place in enumerate(places):
        path = home.write(place, {"auths": {"nvcr.io": auth("user", f"pa:ss{number}")}})
        assert home.of("nvcr.io") == ("user", f"pa:ss{number}", str(path))


def test_files_are_looked_for_where_the_environment_says(home: Home) -> None:
    home.environ["DOCKER_CONFIG"] = str(home.folder / "d")
    home.write("d/config.json", {"auths": {"a.io": auth("docker", "w")}})
    home.environ["XDG_CONFIG_HOME"] = str(home.folder / "c")
    home.write("c/containers/auth.json", {"auths": {"b.io": auth("podman", "w")}})
    assert [found[0] if (found := home.of(name)) else "" for name in ("a.io", "b.io")] == [
        "docker",
        "podman",
    ]


@pytest.mark.parametrize(
    ("repository", "user"), [("team/a", "a"), ("team/b", "team"), ("other", "all"), ("", "all")]
)
def test_the_most_particular_namespace_counts(home: Home, repository: str, user: str) -> None:
    names = {"nvcr.io": "all", "nvcr.io/team": "team", "nvcr.io/team/a": "a"}
    entries = {name: auth(who, "w") for name, who in names.items()}
    home.write(".config/containers/auth.json", {"auths": entries})
    assert home.of("nvcr.io", repository) == (
        user,
        "w",
        str(home.folder / ".config/containers/auth.json"),
    )


@pytest.mark.parametrize(
    ("key", "registry"),
    [
        ("https://index.docker.io/v1/", "docker.io"),
        ("docker.io", "docker.io"),
        ("https://nvcr.io", "nvcr.io"),
        ("https://nvcr.io/v2/", "nvcr.io"),
        ("nvcr.io/v1/", "nvcr.io"),
        ("localhost:5000", "localhost:5000"),
    ],
)
def test_the_registry_s_older_names(home: Home, key: str, registry: str) -> None:
    home.write(
        ".docker/config.json", {"auths": {key: auth("user", "w")}, "HttpHeaders": {"a": "b"}}
    )
    found = home.of(registry, "nvidia/tensorflow")
    assert found is not None and found[0] == "user"
    assert home.of("another.io") is None


@pytest.mark.parametrize(
    "content",
    [
        "{", "[]", '{"auths": 1}', '{"auths": {"nvcr.io": {"auth": 7}}}', "\x00", '"' + "x" * (2 << 20),
        '{"auths": {"nvcr.io": {"auth": "???secret???"}}}',
    ],
)  # fmt: skip
def test_a_broken_file_is_ignored(home: Home, content: str) -> None:
    broken = home.write(".config/containers/auth.json", content)
    home.write(".docker/config.json", {"auths": {"nvcr.io": auth("user", "w")}})
    assert broken.is_file() and home.of("nvcr.io", "nvidia/x") is not None


def test_the_hint_names_the_key_of_ngc_for_nvcr_io_alone(home: Home) -> None:
    hint = Logins(home.environ).hint("nvcr.io")
    assert "NGC_API_KEY" in hint and "podman login nvcr.io" in hint
    assert "NGC_API_KEY" not in Logins(home.environ).hint("other.io")


def test_other_kinds_of_entries(home: Home) -> None:
    entries = {
        "plain.io": {"username": "user", "password": "word"},
        "identity.io": {**auth("user", ""), "identitytoken": "identity"},
        "empty.io": {},
        "null.io": None,
    }
    home.write(".docker/config.json", {"auths": entries})
    known = Logins(home.environ)
    plain = known.of("plain.io")
    assert plain is not None and (plain.user, plain.password) == ("user", "word")
    assert not any(map(known.of, ("identity.io", "empty.io", "null.io")))


class Helpers:
    """Stands in for the programs."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str]] = []

    def run(self, argv: list[str], *, deadline: float, env: dict[str, str]) -> Any:
        asked, program = argv[-2:]
        self.asked.append((Path(program).name, asked))
        assert deadline <= 30 and not [word for word in argv if "secret" in word]
        said = self.answers.get(asked)
        if said is None:
            words = "credentials not found in native keychain"
            return SimpleNamespace(ok=False, code=1, stdout=words.encode())
        return SimpleNamespace(ok=True, code=0, stdout=said.encode())


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
    assert known.of("docker.io") is None  # an identity token
    assert known.of("unknown.io") is None and known.of("broken.io") is None
    assert helpers.asked == [
        ("docker-credential-one", "nvcr.io"),
        ("docker-credential-all", "https://index.docker.io/v1/"),
        ("docker-credential-all", "docker.io"),
        ("docker-credential-all", "unknown.io"),
        ("docker-credential-all", "broken.io"),
    ]


@pytest.mark.parametrize("name", ["missing", "../../bin/sh", "-x", ""])
def test_a_helper_that_is_not_there(home: Home, helpers: Helpers, name: str) -> None:
    home.write(".docker/config.json", {"credHelpers": {"nvcr.io": name}})
    known = Logins(home.environ)
    assert known.of("nvcr.io") is None and not helpers.asked


def test_nothing_is_shown(home: Home) -> None:
    login = Login(source="NGC_API_KEY", user="x", password="secret")
    known = Logins({**home.environ, "NGC_API_KEY": "secret"})
    known.of("nvcr.io")
    shown = [*map(repr, (login, known)), *map(str, (login, known))]
    shown += [known.hint("nvcr.io")]
    assert not [text for text in shown if "secret" in text]
