"""What is told of an installed container, beside one of wheels; and the keys that programs read."""

from __future__ import annotations

import msgspec
import pytest

from envcheck.install.reports import environments
from envcheck.install.transaction.listing import EnvironmentState, Listing, VersionState
from envcheck.install.transaction.uninstall import Uninstalled


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printed commands start with "envcheck", wherever the tests run."""
    monkeypatch.setenv("ENVCHECK_COMMAND", "envcheck")


DIGEST = "sha256:" + "1f0c9a2b3c4d" + "5" * 52
IMAGE = "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"


def container() -> VersionState:
    return VersionState(
        version="23.03-tf1-1f0c9a2b",
        in_use=True,
        status="verified",
        changes=[],
        stack="ngc-tf1",
        release="23.03",
        verified_at="2026-11-21T17:00:00Z",
        verdict="Healthy",
        envcheck="0",
        bytes_total=13 * 1024**3,
        mode="container",
        engine="podman",
        image=IMAGE,
        digest=DIGEST,
        image_bytes=13 * 1024**3 - 4096,
    )


def listed(**changes: object) -> Listing:
    whole = EnvironmentState(
        name="ngc-tf1",
        directory="/data/envs/ngc-tf1",
        prefix="/data/envs/ngc-tf1/current",
        current="23.03-tf1-1f0c9a2b",
        status="installed",
        versions=[container()],
        bytes_total=13 * 1024**3,
        at_work="",
        foreign=[],
        mode="container",
    )
    return Listing(2, [msgspec.structs.replace(whole, **changes)])


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_container_is_listed_as_one() -> None:
    text = environments.listing(listed())
    assert (
        f"ngc-tf1 23.03, the image {IMAGE} (1f0c9a2b3c4d) in podman, 13.0 GiB of layers, verified"
        in flat(text)
    )
    assert text.endswith("envcheck shell --name ngc-tf1\n")
    assert "activate" not in text and "Python" not in text and "package" not in text


def test_where_nothing_is_in_use_the_way_out_is_a_command() -> None:
    cut_off = msgspec.structs.replace(container(), in_use=False, status="unfinished")
    whole = msgspec.structs.replace(cut_off, status="verified")

    def rendered(*versions: VersionState, **changes: object) -> list[str]:
        states = listed(status="nothing in use", current="", versions=list(versions), **changes)
        return environments.listing(states).splitlines()

    assert rendered(cut_off)[-2:] == [
        "Nothing in it can be used: install again, or remove it:",
        "envcheck uninstall ngc-tf1",
    ]
    assert rendered()[-2:] == [
        "Nothing in it can be used: install again, or remove it:",
        "envcheck uninstall ngc-tf1",
    ]
    assert rendered(cut_off, whole, name="/data/a b")[-2:] == [
        "No version is in use. This puts the newest one back:",
        "envcheck rollback '/data/a b'",
    ]
    assert "envcheck uninstall" not in " ".join(rendered(cut_off, at_work="process 12"))


def test_what_was_removed_names_the_images() -> None:
    gone = Uninstalled(
        directory="/data/envs/ngc-tf1",
        versions=["23.03-tf1-1f0c9a2b", "23.02-tf1-00000000"],
        whole=True,
        freed=13 * 1024**3,
        images=["nvcr.io/nvidia/tensorflow@sha256:1f0c in podman"],
        foreign=[],
    )
    text = flat(environments.uninstalled(gone))
    assert "image nvcr.io/nvidia/tensorflow@sha256:1f0c in podman" in text
    assert "freed" not in text, "what an image shares with others, its engine alone knows"
