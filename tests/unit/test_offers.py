"""What `envcheck releases` says that a command would install is what that command chooses."""

from __future__ import annotations

import re
import shlex
from functools import partial

import fit_machines as m
import pytest
import whole

from envcheck.cli import offers, selection, stacks
from envcheck.cli.main import build_parser
from envcheck.cli.offers import Known
from envcheck.exit_codes import Cannot
from envcheck.facts.snapshot import Snapshot
from envcheck.install.catalogue import load
from envcheck.install.engines import choose as engines
from envcheck.install.fit.select import choose, choose_image
from envcheck.install.reports.release_table import render
from envcheck.install.reports.releases import build
from envcheck.install.request import Request

MACHINES = {
    "H100": m.machine(),
    "H100, old driver": m.machine(["H100"], "450.80.02"),
    "A100, 470": m.machine(["A100"], "470.82.01"),
    "B200": m.machine(["B200"], "580.65.06"),
    "K80": m.machine(["K80"], "470.82.01"),
    "no GPU": m.without_gpu(),
    "no GPU, old glibc": m.without_gpu(glibc="2.12"),
    "ARM, no GPU": m.without_gpu(architecture="aarch64"),
    "old CPU": m.machine(cpu_flags=[]),
    "little known": m.machine(["A100"], glibc=whole.ABSENT),
}
PYTHONS = {"many": m.PYTHONS, "one": [m.interpreter("3.11.7")], "none": [], "not known": None}
OBTAINABLE = ["3.12", "3.11", "3.8"]

COMMAND = re.compile(r"^envcheck install\b.*$", re.MULTILINE)


def printed(text: str) -> list[tuple[str, str]]:
    """Each command, and what stands below it as one line."""
    _, *rest = COMMAND.split(text)
    return list(zip(COMMAND.findall(text), (" ".join(part.split()) for part in rest), strict=True))


def asked_for(command: str) -> Request:
    words = shlex.split(command)[1:]
    arguments = build_parser(words).parse_args(words)
    stacks.settle(arguments)
    return selection.request_of(arguments)


def taken(request: Request, known: Known) -> str:
    """What `envcheck install` chooses for it, where every index answers."""
    try:
        choice = choose(request, *known[:3], lambda stack: "", space=known.space)
    except Cannot as error:
        return f"would install nothing: {error}."
    found = choice.candidate.interpreter
    on = f" on {found.path}" if found else ""
    return f"would install {choice.stack.name} {choice.candidate.release.release}{on}"


@pytest.mark.parametrize(
    "asked", [Request(), Request(stack="tensorflow-cpu"), Request(python="3.8")]
)
@pytest.mark.parametrize("pythons", PYTHONS)
@pytest.mark.parametrize("machine", MACHINES)
def test_the_printed_command_takes_what_is_said(machine: str, pythons: str, asked: Request) -> None:
    known = Known(MACHINES[machine], PYTHONS[pythons], OBTAINABLE, m.space())
    names = [asked.stack] if asked.stack else load.names()
    fits = [load.load(name) for name in names]
    judged = [m.fit(one, *known[:3], asked, known.space) for one in fits]
    text = render(build("it", judged, *offers.of_wheels(asked, known, names)))
    told = printed(text)
    for command, said in told:
        assert said.startswith(taken(asked_for(command), known)), command
    fitting = {one.stack.name for one in judged if one.best is not None}
    commands = [command for command, said in told if " nothing" not in said]
    for name in fitting:
        assert any(shlex.split(command)[2:3] == [name] for command in commands), (
            "every yes has a way"
        )
    assert {shlex.split(command)[2] for command in commands if command.count(" ") > 1} <= (
        fitting | {"--python"}
    )


WISHES = (
    "envcheck install",
    "envcheck install tensorflow",
    "envcheck install tensorflow --allow-no-gpu --release 2.15.1",
    "envcheck install nvidia-tf1 --allow-no-gpu",
    "envcheck install nvidia-tf1 --release 23.03 --python 3.8",
    "envcheck install tensorflow --python 3.11 --release 2.20.0",
    "envcheck install tensorflow1",
    "envcheck install ngc-tf1 --release 23.03",
    "envcheck install ngc-tf2 --release 20.06 --allow-no-gpu",
)


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("pythons", ["many", "none"])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_command_in_a_refusal_s_hint_is_not_refused(
    machine: str, pythons: str, wish: str
) -> None:
    def choice(command: str) -> object:
        request = asked_for(command)
        if request.mode == "container":
            return choose_image(request, MACHINES[machine])
        known = Known(MACHINES[machine], PYTHONS[pythons], ["3.12"], m.space())
        return choose(request, *known[:3], lambda stack: "", space=known.space)

    try:
        choice(wish)
    except Cannot as error:
        for command in re.findall(
            r"envcheck install [^;\n]*?(?= fits|;|$)", error.hint, re.MULTILINE
        ):
            assert choice(command)


def engine_for(snapshot: Snapshot, name: str, installed: bool) -> object:
    if not installed:
        raise Cannot("no container engine is installed here (podman, docker, …).", "install one")
    return type("Engine", (), {"name": "podman"})


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("flavour", ["", "tf1", "tf2"])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_same_for_containers(
    monkeypatch: pytest.MonkeyPatch, machine: str, flavour: str, installed: bool
) -> None:
    find = partial(lambda name, snapshot: engine_for(snapshot, name, installed))
    monkeypatch.setattr(engines, "choose", find)
    snapshot = MACHINES[machine]
    request = Request(mode="container", flavour=flavour)  # type: ignore[arg-type]
    text = render(build("it", [], *offers.of_containers(request, snapshot)))
    told = printed(text)
    assert told
    for command, said in told:
        try:
            choice = choose_image(asked_for(command), snapshot)
        except Cannot as error:
            assert said.startswith(f"would install nothing: {error}.")
            continue
        if installed:
            assert said.startswith(
                f"would install {choice.candidate.release.reference} into podman: "
            )
        else:
            assert said.startswith("would install nothing: no container engine is installed here")


def test_an_index_that_may_be_silent_is_said() -> None:
    known = Known(m.machine(), m.PYTHONS, [], m.space())
    first, second, others = offers.of_wheels(Request(), known, load.names())
    assert second is not None and first.stack == "nvidia-tf1" != second.stack
    text = render(build("it", [], first, second, others))
    assert f"if its index answers, else {second.stack} {second.release}:" in " ".join(text.split())
