"""How a framework gets a library that it asks for: by where it lies, else by what installs it."""

from __future__ import annotations

from packaging.version import Version

from ...data.sonames import component_of
from ...data.tensorflow_builds import build_of
from ...data.tensorflow_wheels import tensorflow_build, tensorflow_builds
from .. import target
from ..builds import builds_of, install_command, misfits, newest_build
from ..framework.causes import install_library, wheel_of
from ..reading import Framework, Library, SnapshotView, fact, known
from ..system_commands import on_system
from ..target import loader_libraries, pip_install, soname
from ..verdicts import Remedy, word
from ..visible import capabilities


def into_wheels(facts: Framework) -> bool:
    """Whether a framework looks into NVIDIA's wheels by itself."""
    version = target.framework_version(facts)
    if facts.name != "tensorflow" or version is None or (version.local or "").startswith("nv"):
        return True
    build = build_of(version)
    return build.into_wheels if build is not None else version >= Version("2.14")


def reachable(view: SnapshotView, facts: Framework, wanted: str) -> Library | None:
    """The library that a framework would get for a SONAME; None if it would get none.

    The loader's own search counts for all; some versions of TensorFlow do not look into NVIDIA's wheels.
    """
    looks = into_wheels(facts)
    for one in loader_libraries(view):
        if soname(one) == wanted and target.loaded(one) and (looks or one.how != "wheel"):
            return one
    return None


def out_of_reach(view: SnapshotView, facts: Framework, wanted: str) -> str:
    """The path of a library that lies where the framework does not look for it; "" if there is none."""
    for one in [] if into_wheels(facts) else loader_libraries(view):
        if soname(one) == wanted and target.loaded(one):
            return known(one.path) or ""
    aside = fact(view.target.loader, "aside") or []
    return next((one.path for one in aside if one.soname == wanted), "")


def bring(view: SnapshotView, facts: Framework, names: list[str]) -> Remedy:
    """What makes the framework find these SONAMEs, none of which it finds now."""
    there = {name: path for name in names if (path := out_of_reach(view, facts, name))}
    lacking = [name for name in names if name not in there]
    found = [_lead_there(facts, list(there.values()), view)] if there else []
    if lacking:
        found.append(_install(view, facts, lacking))
    texts = [found[0].text, *(f"{', '.join(lacking)}: {one.text}" for one in found[1:])]
    return Remedy(" ".join(texts), [command for one in found for command in one.commands])


def _install(view: SnapshotView, facts: Framework, names: list[str]) -> Remedy:
    cuda = known(facts.built_cuda) or ""
    if extra := _by_extra(view, facts):
        return extra
    if into_wheels(facts):
        commands = [install_library(view, name, cuda) for name in names]
        text = "Install them for the CUDA that it was built with."
        return Remedy(text, list(dict.fromkeys(commands)))
    minor = ".".join(cuda.split(".")[:2])
    text = f"This TensorFlow looks for CUDA {minor}'s libraries on the loader's path alone."
    build = build_of(target.framework_version(facts) or Version("0"))
    cudnn = build.cudnn if build is not None else ""
    parts = list(dict.fromkeys(part for name in names if (part := component_of(name))))
    site = _site(facts)
    if cuda.startswith("11") and parts and site and all(wheel_of(one, cuda) for one in names):
        pins = {"cudnn": _at_least(cudnn, cudnn)} if cudnn else {}
        wheels = [f"nvidia-{part}-cu11{pins.get(part, '')}" for part in parts]
        folders = [f"{site}/nvidia/{part.replace('-', '_')}/lib" for part in parts]
        text += " Install them, and put their directories there."
        return Remedy(text, [pip_install(view, *wheels), onto_path(folders)])
    commands = on_system(view, "cuda-libraries", dashed=minor.replace(".", "-")) if minor else []
    text += f" Install that CUDA beside any other{f', with cuDNN {cudnn}' if cudnn else ''}"
    fits = newest_build(view, "tensorflow", capabilities(view))
    if fits is None:
        return Remedy(f"{text}.", [*commands, install_library(view, names[0], "none")])
    commands.append(f"# or: {install_command(view, fits)}")
    return Remedy(f"{text}; or TensorFlow {fits.version}, which brings its own.", commands)


def _by_extra(view: SnapshotView, facts: Framework) -> Remedy | None:
    """TensorFlow's extra for CUDA, where none of what it brings is there."""
    version, there = target.framework_version(facts), target.installed_if_known(view)
    brings = [one for part in ("cudnn", "cublas") for one in target.of_component(there, part)]
    if facts.name != "tensorflow" or "tensorflow" not in there or version is None or version.local:
        return None
    if brings or version < Version("2.14"):
        return None
    return Remedy("Install them with TensorFlow's own extra.", [_and_cuda(view, version)])


def _and_cuda(view: SnapshotView, version: Version) -> str:
    """The command for that version, or the next whose [and-cuda] does not pin TensorRT wheels."""
    if tensorflow_build(version) is not None:
        later = (one for one in tensorflow_builds() if one.version >= version)
        version = next((one.version for one in later if not one.tensorrt_pins), version)
    return pip_install(view, f"tensorflow[and-cuda]=={version}")


def _lead_there(facts: Framework, paths: list[str], view: SnapshotView) -> Remedy:
    version = target.framework_version(facts)
    onto = onto_path(list(dict.fromkeys(path.rpartition("/")[0] for path in paths)))
    if version is not None and version >= Version("2.14") and not into_wheels(facts):
        later = (one for one in builds_of("tensorflow") if one.version > version)
        looking = (one for one in later if (by := build_of(one.version)) and by.into_wheels)
        if fixed := next((one for one in looking if not misfits(view, one, [])), None):
            return Remedy(
                f"They are installed, and TensorFlow {version} does not look into its wheels:"
                f" {fixed.version} does. Or put their directories on the loader's path.",
                [install_command(view, fixed), onto],
            )
    return Remedy(
        f"They are there, and {target.title_of(facts)} does not look there by itself: put their directories"
        " on the loader's path.",
        [onto],
    )


def onto_path(folders: list[str]) -> str:
    joined = word(":".join(folders))
    return f"export LD_LIBRARY_PATH={joined}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"


def _at_least(version: str, below: str) -> str:
    return f">={version},<{int(below.partition('.')[0]) + 1}"


def newer_cudnn(view: SnapshotView, facts: Framework, running: Library, built: Version) -> Remedy:
    """For a cuDNN of another major than a framework was built with, or of a lower minor."""
    wanted = _at_least(".".join(map(str, built.release[:2])), str(built.major))
    cuda = (known(facts.built_cuda) or "").partition(".")[0]
    in_front = known(running.origin) == "LD_LIBRARY_PATH"
    # Without the variable, what else comes by it would be missing.
    kept = in_front and _brings_more(view)
    commands = ["unset LD_LIBRARY_PATH"] if in_front and not kept else []
    if cuda in ("11", "12", "13") and built.major >= 8:
        commands.append(pip_install(view, f"nvidia-cudnn-cu{cuda}{wanted}"))
        if (kept or not into_wheels(facts)) and _site(facts):
            commands.append(onto_path([f"{_site(facts)}/nvidia/cudnn/lib"]))
    else:
        commands += on_system(view, "cudnn", major=str(built.major))
    return Remedy(f"Install cuDNN {wanted} for CUDA {cuda}, where it is found first.", commands)


def _brings_more(view: SnapshotView) -> bool:
    """Whether LD_LIBRARY_PATH leads to other libraries of NVIDIA than cuDNN."""
    return any(
        known(one.origin) == "LD_LIBRARY_PATH" and not soname(one).startswith("libcudnn")
        for one in loader_libraries(view)
    )


def _site(facts: Framework) -> str:
    """The directory that a framework's package lies in."""
    return (known(facts.file) or "").rpartition("/")[0].rpartition("/")[0]
