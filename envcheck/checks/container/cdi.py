"""Checks on CDI specifications: do they describe this machine, and can the engine read them."""

from __future__ import annotations

from ...data import cdi_versions
from ...data.versions import parse_version
from ...facts.containers import CdiSpec, Engine
from .. import containers as shared
from ..declared import declared_causes
from ..reading import (
    CannotJudge,
    Kernel,
    NotKnown,
    Nvml,
    Skip,
    SnapshotView,
    facts_or,
    is_absent,
    known,
    need,
)
from ..system_commands import on_system, systemctl
from ..verdicts import Passed, Verdict, Verdicts, about, about_file, check, unjudged, word

CAUSE = declared_causes(__name__)

# podman reads one directory alone in between, and what containers.conf names from the first on.
_PODMAN_ONE_FOLDER = (5, 5)
_PODMAN_BOTH_AGAIN = (5, 6)


@check("CTR-004")
def cdi_is_current(view: SnapshotView) -> Verdicts:
    for place, spec in _specifications(view, shared.KIND, None):
        if is_absent(spec.kind):
            yield CAUSE["cdi-file-empty"].found(
                about_file(spec.path),
                [view.evidence(f"machine.containers.cdi_specs[{place}].kind")],
                commands=[shared.generate_cdi(spec.path)],
                path=spec.path,
            )
            continue
        try:
            yield _judge(view, f"machine.containers.cdi_specs[{place}]", spec)
        except CannotJudge as why:
            yield unjudged(why, about_file(spec.path))


def _specifications(view: SnapshotView, *kinds: str | None) -> list[tuple[int, CdiSpec]]:
    """Those of these kinds with their places in the list; None: of an unknown kind."""
    shared.need_gpus(view)
    specs = need(shared.containers_of(view).cdi_specs, "CDI specifications")
    judged = [(place, spec) for place, spec in enumerate(specs) if known(spec.kind) in kinds]
    if not judged:
        raise Skip("there is no CDI specification of NVIDIA's GPUs")
    return judged


def _judge(view: SnapshotView, fact: str, spec: CdiSpec) -> Verdict:
    missing = need(spec.missing_paths, f"the paths in {spec.path}")
    generate = shared.generate_cdi(spec.path)
    driver = known(facts_or(view.machine.kernel, Kernel).driver_version)
    answers = known(facts_or(view.machine.nvml, Nvml).init_code) == 0
    named = known(spec.driver_versions) or []
    lacking = _lacking(view, spec)
    cause, commands = CAUSE["cdi-of-other-driver"], [generate, "nvidia-ctk cdi list"]
    if missing:
        cause = CAUSE["cdi-files-missing"]
        if all(path.startswith("/dev/nvidia") for path in missing):
            commands = ["sudo nvidia-modprobe -c 0 -u", generate]
        evidence = [view.evidence(f"{fact}.missing_paths", ", ".join(missing[:5]))]
    elif driver and answers and named and driver not in named:
        evidence = [view.evidence(f"{fact}.driver_versions", named[0])]
        evidence.append(view.evidence("machine.kernel.driver_version"))
    elif spec.other_numbers:
        cause, commands = CAUSE["cdi-of-other-numbers"], ["sudo nvidia-modprobe -c 0 -u", generate]
        evidence = [view.evidence(f"{fact}.other_numbers", ", ".join(spec.other_numbers))]
    elif lacking:
        cause = CAUSE["cdi-without-gpu"]
        evidence = [
            view.evidence(f"{fact}.devices", ", ".join(known(spec.devices) or [])),
            view.evidence("machine.nvml.gpus", ", ".join(lacking)),
        ]
    else:
        return Passed(f"{spec.path}, {len(known(spec.devices) or [])} devices")
    more = f" and {len(missing) - 1} more that are" if missing[1:] else ", which is"
    return cause.found(
        about_file(spec.path),
        evidence,
        commands=commands,
        path=spec.path,
        missing=f"{missing[0]}{more} not there" if missing else ", ".join(spec.other_numbers),
        named=next(iter(named), ""),
        driver=driver,
        devices=", ".join(known(spec.devices) or []),
        lacking=", ".join(lacking),
    )


def _lacking(view: SnapshotView, spec: CdiSpec) -> list[str]:
    """The GPUs that a specification which names GPUs by their numbers does not have."""
    names = known(spec.devices) or []
    if not any(name.isdecimal() for name in names):
        return []
    return [
        f"GPU {gpu.index}"
        for gpu in known(facts_or(view.machine.nvml, Nvml).gpus) or []
        if str(gpu.index) not in names and not known(gpu.mig_enabled)  # instances: other names
    ]


@check("CTR-007")
def cdi_version_is_read(view: SnapshotView) -> Verdicts:
    judged = _specifications(view, shared.KIND)
    engine = shared.engine_named(shared.serving(view), "podman")
    release = need(engine.server_version, "podman's version")
    for place, spec in judged:
        version, subjects = known(spec.version), about_file(spec.path)
        rejected = None if version is None else cdi_versions.rejects("podman", release, version)
        if rejected is None:
            what = f"whether podman {release} reads CDI {version or 'of this version'}"
            yield unjudged(NotKnown(what), subjects)
        elif not rejected:
            yield Passed(f"{spec.path}: CDI {version}, which podman {release} reads")
        else:
            shown = view.evidence(f"machine.containers.cdi_specs[{place}].version")
            upgrade = [*on_system(view, "podman-versions"), *on_system(view, "older-toolkit")]
            yield CAUSE["cdi-version-not-read"].found(
                subjects,
                [shown, shared.evidence(view, engine, "server_version")],
                commands=[*upgrade, shared.generate_cdi(spec.path)],
                path=spec.path,
                version=version,
                podman=release,
                least=cdi_versions.rejected_from("podman", release),
            )


_HOW = {
    "docker": '"cdi-spec-dirs" in /etc/docker/daemon.json',
    "podman": "for one command with --cdi-spec-dir, for all in containers.conf ([engine], cdi_spec_dirs)",
}

_SHOWN = ((25, 0, 7), (26, 1, 6), (27, 4, 0))  # from here on, each in its branch, or perhaps


@check("CTR-011")
def cdi_is_where_engines_look(view: SnapshotView) -> Verdicts:
    paths = [spec.path for _place, spec in _specifications(view, shared.KIND)]
    here = paths[0].rpartition("/")[0]
    readers = [(engine, _directories(engine)) for engine in shared.serving(view)]
    if not any(folders for _, folders in readers):
        raise Skip("no engine here that reads CDI specifications")
    for engine, folders in readers:
        if _hides(engine) and all(_folder(f"{one}/x") in _SYSTEMS for one in folders):
            yield _hidden(view, engine, paths[0], here)
        elif {_folder(path) for path in paths} & {_folder(f"{folder}/x") for folder in folders}:
            yield Passed(f"{engine.name}: {', '.join(folders)}")
        elif folders:
            once = f"podman --cdi-spec-dir={word(here)} run --rm --device nvidia.com/gpu=all ubuntu"
            commands = [f"{once} nvidia-smi -L"] * (engine.name == "podman")
            yield CAUSE["cdi-elsewhere"].found(
                [*about("engine", engine.name), *about_file(paths[0])],
                [
                    shared.evidence(view, engine, "server_version"),
                    shared.evidence(view, engine, "cdi_spec_dirs", ", ".join(folders)),
                    view.evidence("machine.containers.cdi_specs", paths[0]),
                ],
                commands=[*commands, shared.generate_cdi(f"{folders[0]}/nvidia.yaml")],
                engine=engine.name,
                version=known(engine.server_version) or "",
                folders=" and ".join(folders),
                here=here,
                how=_HOW[engine.name],
            )


_SYSTEMS = ("/etc/cdi", "/run/cdi")


def _hides(engine: Engine) -> bool:
    """Whether this is a rootless docker whose server does not get to see the system's directories."""
    version = parse_version(known(engine.server_version) or "")
    if engine.name != "docker" or known(engine.rootless) is not True or version is None:
        return False
    own = version.release
    return own < _SHOWN[-1] and not any(own[:2] == one[:2] and own >= one for one in _SHOWN)


def _hidden(view: SnapshotView, engine: Engine, path: str, here: str) -> Verdict:
    return CAUSE["cdi-hidden-from-rootless"].found(
        [*about("engine", engine.name), *about_file(path)],
        [shared.evidence(view, engine, field) for field in ("server_version", "rootless")],
        commands=[
            "mkdir -p ~/.config/cdi && nvidia-ctk cdi generate --output=$HOME/.config/cdi/nvidia.yaml",
            'echo "\\"cdi-spec-dirs\\": [\\"$HOME/.config/cdi\\"]"   # a line for daemon.json',
            '"${EDITOR:-vi}" ~/.config/docker/daemon.json',
            systemctl("--user restart", "docker"),
        ],
        version=known(engine.server_version),
        here=here,
    )


def _directories(engine: Engine) -> list[str]:
    """Where the engine looks for CDI specifications; [] where it does not, or that is not known."""
    configured, version = known(engine.cdi_spec_dirs), known(engine.server_version)
    if engine.name == "docker":
        return configured or []
    if engine.name != "podman" or not shared.at_least(version, shared.PODMAN_CDI):
        return []
    configurable = shared.at_least(version, _PODMAN_ONE_FOLDER)
    if configured is not None and configurable:
        return configured
    one = configurable and not shared.at_least(version, _PODMAN_BOTH_AGAIN)
    return ["/etc/cdi"] if one else ["/etc/cdi", "/var/run/cdi"]


def _folder(path: str) -> str:
    """A file's directory; /var/run is a link to /run."""
    return path.replace("/var/run/", "/run/", 1).rpartition("/")[0].rstrip("/")
