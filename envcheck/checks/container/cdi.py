"""Checks on CDI specifications: do they describe this machine, and can the engine read them."""

from __future__ import annotations

from ...data import cdi_versions
from ...facts.containers import CdiSpec, Engine
from ..containers import (
    KIND,
    NO_DEVICE_NODES,
    PODMAN_CDI,
    at_least,
    containers_of,
    evidence,
    generate_cdi,
    need_gpus,
    serving,
)
from ..reading import CannotJudge, Kernel, NotKnown, Nvml, Skip, SnapshotView, facts_or, known, need
from ..system_commands import on_system
from ..verdicts import (
    Cause,
    Passed,
    Unjudged,
    Verdict,
    Verdicts,
    about,
    about_file,
    check,
    unjudged,
    warn,
    word,
)

# podman reads one directory alone in between, and what containers.conf names from the first on.
_PODMAN_ONE_FOLDER = (5, 5)
_PODMAN_BOTH_AGAIN = (5, 6)


def _outdated(key: str, remedy: str) -> Cause:
    return warn(
        key,
        "a CDI specification does not fit this machine",
        "{path} names {missing}: containers that ask for a GPU by CDI do not start.",
        remedy,
    )


NO_NODES = _outdated(
    "cdi-nodes-missing",
    "Create the device nodes; where a GPU has gone for good, write the specification again.",
)
NO_FILES = _outdated(
    "cdi-files-missing", "Write the specification again for the driver that is installed now."
)
OTHER_DRIVER = warn(
    "cdi-of-other-driver",
    "a CDI specification is of another driver",
    "{path} brings the libraries of driver {named} into containers, and {driver} runs: they report"
    " 'Driver/library version mismatch'.",
    "Write the specification again for the driver that runs now.",
)


@check(
    "CTR-004",
    title="The CDI specifications describe this machine as it is",
    causes=[NO_NODES, NO_FILES, OTHER_DRIVER],
    about="A CDI specification lists the driver's files by their full names, with the driver's version."
    " After a driver upgrade or a change of GPUs it names files that are gone, and no container that asks"
    " for a GPU by CDI starts.",
    sources=["nvidia-container-toolkit#450, #885; webkit-container-sdk#23; CDI SPEC.md"],
    follows=(*NO_DEVICE_NODES, "DRV-002"),
)
def cdi_is_current(view: SnapshotView) -> Verdicts:
    for place, spec in _specifications(view, KIND, None):
        try:
            yield _judge(view, f"machine.containers.cdi_specs[{place}]", spec)
        except CannotJudge as why:
            yield unjudged(why, about_file(spec.path))


def _specifications(view: SnapshotView, *kinds: str | None) -> list[tuple[int, CdiSpec]]:
    """Those of these kinds with their places in the list; None: of an unknown kind."""
    need_gpus(view)
    specs = need(containers_of(view).cdi_specs, "CDI specifications")
    judged = [(place, spec) for place, spec in enumerate(specs) if known(spec.kind) in kinds]
    if not judged:
        raise Skip("there is no CDI specification of NVIDIA's GPUs")
    return judged


def _judge(view: SnapshotView, fact: str, spec: CdiSpec) -> Verdict:
    missing = need(spec.missing_paths, f"the paths in {spec.path}")
    generate, subjects = generate_cdi(spec.path), about_file(spec.path)
    if missing:
        nodes = all(path.startswith("/dev/nvidia") for path in missing)
        more = f" and {len(missing) - 1} more that are" if missing[1:] else ", which is"
        return (NO_NODES if nodes else NO_FILES).found(
            subjects,
            [view.evidence(f"{fact}.missing_paths", ", ".join(missing[:5]))],
            commands=["sudo nvidia-modprobe -c 0 -u", generate]
            if nodes
            else [generate, "nvidia-ctk cdi list"],
            path=spec.path,
            missing=f"{missing[0]}{more} not there",
        )
    driver = known(facts_or(view.machine.kernel, Kernel).driver_version)
    answers = known(facts_or(view.machine.nvml, Nvml).init_code) == 0
    named = known(spec.driver_versions) or []
    if driver and answers and named and driver not in named:
        shown = view.evidence(f"{fact}.driver_versions", named[0])
        return OTHER_DRIVER.found(
            subjects,
            [shown, view.evidence("machine.kernel.driver_version")],
            commands=[generate, "nvidia-ctk cdi list"],
            path=spec.path,
            named=named[0],
            driver=driver,
        )
    return Passed(f"{spec.path}, {len(known(spec.devices) or [])} devices")


UNREAD = warn(
    "cdi-version-not-read",
    "podman cannot read the CDI specification",
    "{path} is of CDI version {version}, and podman {podman} reads none from {least} on: `podman run"
    " --device nvidia.com/gpu=all` ends with 'unresolvable CDI devices'.",
    "Upgrade podman; or write the specification with a toolkit that is older (1.18.2 writes one that"
    " podman 4.9 reads).",
)


@check(
    "CTR-007",
    title="The engine reads the version of the CDI specification",
    causes=[UNREAD],
    about="podman silently ignores a CDI specification of a newer format version than its own, and then"
    " reports 'unresolvable CDI devices nvidia.com/gpu=all': toolkit 1.19.1 writes 0.7.0, which the podman"
    " of Debian 12 and Ubuntu 24.04 does not read. Judged by the versions of specifications and podman.",
    sources=["nvidia-container-toolkit#1860, #1940, #38; CDI SPEC.md"],
    follows=NO_DEVICE_NODES,
)
def cdi_version_is_read(view: SnapshotView) -> Verdicts:
    judged = _specifications(view, KIND)
    engine = next((engine for engine in serving(view) if engine.name == "podman"), None)
    if engine is None:
        raise Skip("podman is not installed")
    release = need(engine.server_version, "podman's version")
    for place, spec in judged:
        version, subjects = known(spec.version), about_file(spec.path)
        rejected = None if version is None else cdi_versions.rejects("podman", release, version)
        if rejected is None:
            why = NotKnown(f"whether podman {release} reads CDI {version or 'of this version'}")
            yield Unjudged("skipped", str(why), subjects)
        elif not rejected:
            yield Passed(f"{spec.path}: CDI {version}, which podman {release} reads")
        else:
            shown = view.evidence(f"machine.containers.cdi_specs[{place}].version")
            yield UNREAD.found(
                subjects,
                [shown, evidence(view, engine, "server_version")],
                commands=[
                    *on_system(view, "podman-versions"),
                    *on_system(view, "older-toolkit"),
                    generate_cdi(spec.path),
                ],
                path=spec.path,
                version=version,
                podman=release,
                least=cdi_versions.rejected_from("podman", release),
            )


ELSEWHERE = warn(
    "cdi-elsewhere",
    "an engine looks elsewhere for CDI specifications",
    "{engine} {version} reads CDI specifications from {folders}, and NVIDIA's is in {here}: it ends"
    " with 'unresolvable CDI devices nvidia.com/gpu=all'.",
    "Write the specification where {engine} looks, or name the directory to it: {how}.",
)
_HOW = {
    "docker": '"cdi-spec-dirs" in /etc/docker/daemon.json',
    "podman": "for one command with --cdi-spec-dir, for all in containers.conf ([engine], cdi_spec_dirs; on"
    " NixOS virtualisation.containers.containersConf.settings)",
}


@check(
    "CTR-011",
    title="The engines read the directory that the CDI specification is in",
    causes=[ELSEWHERE],
    about="CDI specifications lie in /etc/cdi and /var/run/cdi (which is /run/cdi), and an engine reads the"
    " directories that it is configured for: podman 5.5 reads /etc/cdi alone unless containers.conf names"
    " more, while NVIDIA's toolkit from 1.18 on, and NixOS, write to /var/run/cdi. Judged by what each"
    " engine reports, by containers.conf, and by what is known of podman's releases.",
    sources=["nixpkgs#420638, #417312; podman#26569, #25717; containers/common#2460, #2462"],
    follows=NO_DEVICE_NODES,
)
def cdi_is_where_engines_look(view: SnapshotView) -> Verdicts:
    paths = [spec.path for _place, spec in _specifications(view, KIND)]
    readers = {engine.name: (engine, _directories(engine)) for engine in serving(view)}
    if not any(folders for _, folders in readers.values()):
        raise Skip("no engine here that reads CDI specifications")
    specs = {_folder(path) for path in paths}
    for name, (engine, folders) in readers.items():
        if specs & {_folder(f"{folder}/x") for folder in folders}:
            yield Passed(f"{name}: {', '.join(folders)}")
        elif folders:
            here = paths[0].rpartition("/")[0]
            once = (
                f"podman --cdi-spec-dir={word(here)} run --rm --device nvidia.com/gpu=all ubuntu"
                " nvidia-smi -L"
            )
            yield ELSEWHERE.found(
                [*about("engine", name), *about_file(paths[0])],
                [
                    evidence(view, engine, "server_version"),
                    evidence(view, engine, "cdi_spec_dirs", ", ".join(folders)),
                    view.evidence("machine.containers.cdi_specs", paths[0]),
                ],
                commands=[once] * (name == "podman") + [generate_cdi(f"{folders[0]}/nvidia.yaml")],
                engine=name,
                version=known(engine.server_version) or "",
                folders=" and ".join(folders),
                here=here,
                how=_HOW[name],
            )


def _directories(engine: Engine) -> list[str]:
    """Where the engine looks for CDI specifications; [] where it does not, or that is not known."""
    configured, version = known(engine.cdi_spec_dirs), known(engine.server_version)
    if engine.name == "docker":
        return configured or []
    if engine.name != "podman" or not at_least(version, PODMAN_CDI):
        return []
    configurable = at_least(version, _PODMAN_ONE_FOLDER)
    if configured is not None and configurable:
        return configured
    one = configurable and not at_least(version, _PODMAN_BOTH_AGAIN)
    return ["/etc/cdi"] if one else ["/etc/cdi", "/var/run/cdi"]


def _folder(path: str) -> str:
    """A file's directory; /var/run is a link to /run."""
    return path.replace("/var/run/", "/run/", 1).rpartition("/")[0].rstrip("/")
