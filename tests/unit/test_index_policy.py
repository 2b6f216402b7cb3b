"""What an installer may see of an index, and the words for what it may not."""

from __future__ import annotations

import pytest

from envcheck.install.catalogue.model import PUBLIC, Sdist, Stack
from envcheck.install.index import policy
from envcheck.install.index.routes import Route
from envcheck.install.index.simple import ProjectFile, parse

SHA = "ab" * 32
GAST = "de" * 32
WHERE = "https://index.example/simple/"
PUBLIC_ROUTE = Route(index_name=PUBLIC, urls=[WHERE])
NVIDIA = Route(index_name="nvidia", urls=[WHERE])
STACK = Stack(
    name="nvidia-tf1",
    title="",
    distribution="nvidia-tensorflow",
    requirement="",
    gpu=True,
    architectures=["x86_64"],
    source="",
    sdists=[Sdist(name="gast", version="0.2.2", sha256=GAST, why="has no wheel", source="")],
)


def files(*names: str, sha256: str = SHA) -> list[ProjectFile]:
    fragment = f"#sha256={sha256}" if sha256 else ""
    links = "".join(f'<a href="{name}{fragment}">x</a>' for name in names)
    return parse(f"<html>{links}".encode(), "text/html", WHERE)


def judge(name: str, offered: list[ProjectFile], route: Route = PUBLIC_ROUTE) -> policy.Accepted:
    return policy.accept(offered, name=name, route=route, stack=STACK)


def why(name: str, offered: list[ProjectFile], route: Route = PUBLIC_ROUTE) -> str:
    judged = judge(name, offered, route)
    assert not judged.files
    return policy.explain(name, route, WHERE, judged)


def test_a_wheel_for_this_machine_passes() -> None:
    offered = files(
        "t-1-py3-none-any.whl",
        "t-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "t-1-cp38-cp38-linux_x86_64.whl",
    )
    assert judge("t", offered).files == offered


@pytest.mark.parametrize(
    "platform",
    ["win_amd64", "macosx_11_0_x86_64", "manylinux2014_aarch64", "linux_armv7l", "android_x86"],
)
def test_a_wheel_for_another_machine_does_not(platform: str) -> None:
    said = why("t", files(f"t-1-cp311-cp311-{platform}.whl"))
    assert "1 (no wheel for Linux on x86_64" in said


def test_the_machine_may_be_another() -> None:
    offered = files("t-1-cp311-cp311-manylinux2014_aarch64.whl")
    judged = policy.accept(
        offered, name="t", route=PUBLIC_ROUTE, stack=STACK, architecture="aarch64"
    )
    assert judged.files == offered


def test_a_placeholder_that_outranks_every_version() -> None:
    said = why("nvidia-tensorrt", files("nvidia_tensorrt-99.0.0-py3-none-any.whl"))
    assert said.startswith(
        "of nvidia-tensorrt at the public index (https://index.example/simple/), "
        "refused: 99.0.0 (not NVIDIA's software: it outranks"
    )


@pytest.mark.parametrize(
    "name", ["nvidia-tensorflow", "nvidia-cublas", "nvidia-a-name-that-no-table-has"]
)
def test_the_placeholders_that_hold_a_name(name: str) -> None:
    stem = name.replace("-", "_")
    offered = files(f"{stem}-0.0.1.dev4.tar.gz", f"{stem}-0.0.1.dev5-py3-none-any.whl")
    assert "0.0.1.dev5 and 0.0.1.dev4 (a placeholder" in why(name, offered)


def test_another_projects_0_0_1_dev5_is_its_own_business() -> None:
    assert judge("tool", files("tool-0.0.1.dev5-py3-none-any.whl")).files


def test_the_real_version_beside_a_placeholder_passes() -> None:
    offered = files(
        "nvidia_tensorrt-99.0.0-py3-none-any.whl",
        "nvidia_tensorrt-8.4.1.5-cp38-none-linux_x86_64.whl",
    )
    judged = judge("nvidia-tensorrt", offered, NVIDIA)
    assert judged.files == offered[1:]
    assert [refused.kind for refused in judged.refused] == ["placeholder"]


def test_the_one_sdist_that_the_catalogue_allows() -> None:
    assert judge("gast", files("gast-0.2.2.tar.gz", sha256=GAST)).files


def test_the_allowed_sdist_with_other_bytes() -> None:
    said = why("gast", files("gast-0.2.2.tar.gz"))
    assert SHA in said and GAST in said


def test_the_allowed_sdist_without_a_hash() -> None:
    assert "without sha256" in why("gast", files("gast-0.2.2.tar.gz", sha256=""))


def test_the_allowed_sdist_in_another_version() -> None:
    said = why("gast", files("gast-0.3.0.tar.gz", sha256=GAST))
    assert "allows that of 0.2.2 alone" in said


def test_an_sdist_of_a_name_without_leave() -> None:
    assert "the catalogue allows none of that name" in why("evil", files("evil-1.tar.gz"))


def test_a_version_with_a_wheel_is_not_explained() -> None:
    judged = judge("t", files("t-1.tar.gz", "t-1-py3-none-any.whl"))
    assert len(judged.refused) == 1
    assert policy.explain("t", PUBLIC_ROUTE, WHERE, judged) == ""


def test_a_file_of_another_project() -> None:
    judged = judge("t", files("other-1-py3-none-any.whl"))
    assert [refused.why for refused in judged.refused] == ["a file of another project, other"]


def test_one_file_without_sha256_among_others() -> None:
    offered = files("t-1-py3-none-any.whl") + files("t-2-py3-none-any.whl", sha256="")
    judged = judge("t", offered)
    assert judged.files == offered[:1]
    assert "2 (no sha256" in policy.explain("t", PUBLIC_ROUTE, WHERE, judged)


def test_an_index_that_gives_no_sha256_at_all() -> None:
    offered = files("t-1-py3-none-any.whl", sha256="")
    assert judge("t", offered, NVIDIA).files == offered


def test_a_yanked_file_passes_with_its_mark() -> None:
    offered = parse(
        f'<a href="t-1-py3-none-any.whl#sha256={SHA}" data-yanked="bad">'.encode(),
        "text/html",
        WHERE,
    )
    assert judge("t", offered).files[0].yanked == "bad"


def test_a_project_that_is_not_there() -> None:
    said = policy.explain("nvidia-cublas-cu117", NVIDIA, WHERE, None)
    assert said == (
        "the nvidia index (https://index.example/simple/) has no nvidia-cublas-cu117; "
        "nvidia-cublas-cu117 is taken from no other index"
    )


def test_many_versions_are_counted() -> None:
    said = why("t", files(*(f"t-{n}.tar.gz" for n in range(1, 9))))
    assert "8, 7, 6 and 5 more (an sdist" in said


def test_a_page_without_a_usable_name() -> None:
    assert "has no usable file of t" in why("t", files("x.tar.gz"))
