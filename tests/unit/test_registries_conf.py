"""Where registries.conf sends an image, what it blocks, and what short names stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.exit_codes import Cannot, UsageError
from envcheck.install.registry import registries_conf
from envcheck.install.registry.reference import parse
from envcheck.install.registry.registries_conf import RegistriesConf

TEXT = """\
[[registry]]
prefix = "nvcr.io/nvidia"
location = "nvcr.io/nvidia"
[[registry.mirror]]
location = "mirror.test:5000/ngc"
insecure = true
[[registry.mirror]]
location = "second.test/nvidia"
pull-from-mirror = "digest-only"
[[registry]]
location = "bad.test"
blocked = true
[[registry]]
prefix = "*.corp.test"
location = "proxy.test/corp"
"""


def conf(*texts: str) -> RegistriesConf:
    made = RegistriesConf()
    for text in texts or (TEXT,):
        made.add(text)
    return made


def places(name: str, made: RegistriesConf | None = None) -> list[str]:
    found = (made or conf()).sources(parse(name))
    return [f"{one.registry}/{one.repository}" for one in found]


def test_mirrors_come_first_and_the_registry_last() -> None:
    assert places("nvcr.io/nvidia/tensorflow:23.03-tf1-py3") == [
        "mirror.test:5000/ngc/tensorflow",
        "second.test/nvidia/tensorflow",
        "nvcr.io/nvidia/tensorflow",
    ]
    first, second, own = conf().sources(parse("nvcr.io/nvidia/tensorflow:1"))
    assert (first.insecure, second.insecure, own.insecure) == (True, False, False)
    assert (second.tags, second.digests, first.tags) == (False, True, True)


def test_a_prefix_ends_where_a_part_of_a_name_ends() -> None:
    assert places("nvcr.io/nvidia-other/x:1") == ["nvcr.io/nvidia-other/x"]
    assert places("nvcr.io/other:1") == ["nvcr.io/other"]
    assert places("a.corp.test/team/x:1") == ["proxy.test/corp/team/x"]


def test_what_is_blocked_is_refused() -> None:
    with pytest.raises(Cannot, match=r"registries\.conf blocks bad\.test"):
        places("bad.test/team/x:1")


def test_the_longest_prefix_counts_and_later_files_replace() -> None:
    longer = '[[registry]]\nprefix = "nvcr.io/nvidia/cuda"\nlocation = "other.test/cuda"\n'
    assert places("nvcr.io/nvidia/cuda:12", conf(TEXT, longer)) == ["other.test/cuda"]
    again = '[[registry]]\nprefix = "nvcr.io/nvidia"\nblocked = true\nlocation = "x"\n'
    with pytest.raises(Cannot):
        places("nvcr.io/nvidia/cuda:12", conf(TEXT, again))


def test_the_files_of_the_machine_and_of_the_user(tmp_path: Path) -> None:
    config = tmp_path / "config/containers"
    (config / "registries.conf.d").mkdir(parents=True)
    (config / "registries.conf").write_text(TEXT)
    more = '[[registry]]\nlocation = "late.test"\nblocked = true\n'
    (config / "registries.conf.d/9.conf").write_text(more)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": str(tmp_path)}
    read = registries_conf.of_engine("podman", environ)
    assert len(read.sources(parse("nvcr.io/nvidia/x:1"))) == 3
    with pytest.raises(Cannot):
        read.sources(parse("late.test/x:1"))
    named = registries_conf.of_engine(
        "podman", environ | {"CONTAINERS_REGISTRIES_CONF": str(tmp_path / "nothing")}
    )
    assert len(named.sources(parse("nvcr.io/nvidia/x:1"))) == 1


@pytest.mark.parametrize(
    "text",
    ["[[registry", "registry = 7", "[[registry]]\nx = 1", "a = " + "[" * 5000],
)
def test_a_file_that_is_none_is_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"^/x is not a registries.conf: ") as caught:
        RegistriesConf().add(text, "/x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"x = {'9' * 5000}",
        f"[[registry]]\nlocation = {'9' * 5000}",
        "registry = 5",
        "registry = [5]",
        '[[registry]]\nlocation = "x.test"\nmirror = 5',
        '[[registry]]\nlocation = "x.test"\nmirror = [5]',
        '[[registry]]\nlocation = "x.test"\nblocked = "yes"',
        '[[registry]]\nlocation = "x.test"\n[[registry.mirror]]\nlocation = 5',
        "[[registry]]\nblocked = true",
        "[" * 100_000,
        "x = " + "[" * 100_000,
        "\x00",
    ],
)
def test_a_file_that_is_none_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(UsageError, match=r"r\.conf is not a registries\.conf: ") as caught:
        RegistriesConf().add(text, "r.conf")
    assert len(str(caught.value)) < 400
