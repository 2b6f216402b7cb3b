"""How a framework gets a library that it asks for: by where it lies, else by what installs it."""

from __future__ import annotations

from packaging.version import Version

from ...data.packages import tensorflow_builds
from ...data.sonames import component_of
from ...data.tensorflow_builds import build_of
from ...data.versions import parse_version
from ...facts.base import known
from ...facts.missing import CannotJudge
from ...facts.target import FRAMEWORKS, Framework, Library
from ...facts.view import SnapshotView
from ...findings.model import Remedy
from ...findings.shell import word, words
from ..driver_state import driver_version
from ..fitness import newest_tensorflow
from ..framework.causes import install_library
from ..system_commands import on_system
from ..target import loaded, loader_libraries, pip_install, python, python_version, soname
from ..visible import visible


def into_wheels(facts: Framework) -> bool:
    """Whether a framework looks into NVIDIA's wheels by itself."""
    version = parse_version(known(facts.version) or "")
    if facts.name != "tensorflow" or version is None:
        return True
    if (version.local or "").startswith("nv"):
        return True
    build = build_of(version)
    return build.into_wheels if build is not None else version >= Version("2.14")


def reachable(view: SnapshotView, facts: Framework, wanted: str) -> Library | None:
    """The library that a framework would get for a SONAME; None where it would get none.

    The loader's own search counts for all; some versions of TensorFlow do not look into NVIDIA's wheels.
    """
    looks = into_wheels(facts)
    return next(
        (
            one
            for one in loader_libraries(view)
            if soname(one) == wanted and loaded(one) and (looks or one.how != "wheel")
        ),
        None,
    )


def out_of_reach(view: SnapshotView, facts: Framework, wanted: str) -> str:
    """The path of a library that lies where the framework does not look for it; "" where there is none."""
    for one in [] if into_wheels(facts) else loader_libraries(view):
        if soname(one) == wanted and loaded(one):
            return known(one.path) or ""
    loader = view.target.loader
    aside = [] if loader is None or loader.facts is None else loader.facts.aside
    return next((one.path for one in aside if one.soname == wanted), "")


def bring(view: SnapshotView, facts: Framework, names: list[str]) -> Remedy:
    """What makes the framework find these SONAMEs, none of which it finds now."""
    lying = {name: out_of_reach(view, facts, name) for name in names}
    there = [path for path in lying.values() if path]
    if there:
        lead = _lead_there(view, facts, there)
        lacking = [name for name in names if not lying[name]]
        if not lacking:
            return lead
        rest = bring(view, facts, lacking)
        return Remedy(
            f"{lead.text} {', '.join(lacking)}: {rest.text}", [*lead.commands, *rest.commands]
        )
    cuda = known(facts.built_cuda) or ""
    pip = f"{python(view)} -m pip"
    if into_wheels(facts):
        return Remedy(
            "Install them for the CUDA that it was built with.",
            list(dict.fromkeys(install_library(name, pip, cuda) for name in names)),
        )
    return _where_it_looks(view, facts, names, cuda, pip)


def _lead_there(view: SnapshotView, facts: Framework, paths: list[str]) -> Remedy:
    version = parse_version(known(facts.version) or "")
    folders = list(dict.fromkeys(path.rpartition("/")[0] for path in paths))
    onto = _onto_path(folders)
    fixed = None if into_wheels(facts) else _next_that_looks(version)
    if version is not None and fixed is not None and version >= Version("2.14"):
        return Remedy(
            f"They are installed, and TensorFlow {version} does not look into its wheels: {fixed} does. Or "
            "put their directories on the loader's path.",
            [pip_install(view, f"tensorflow[and-cuda]=={fixed}"), onto],
        )
    return Remedy(
        f"They are there, and {FRAMEWORKS[facts.name]} does not look there by itself: put their "
        f"director{'ies' if len(folders) > 1 else 'y'} on the loader's path.",
        [onto],
    )


def _next_that_looks(version: Version | None) -> Version | None:
    later = (
        one.version for one in tensorflow_builds() if version is not None and one.version > version
    )
    looking = (one for one in later if (build := build_of(one)) is not None and build.into_wheels)
    return next(looking, None)


def _onto_path(folders: list[str]) -> str:
    return (
        f"export LD_LIBRARY_PATH={word(':'.join(folders))}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
    )


def _where_it_looks(
    view: SnapshotView, facts: Framework, names: list[str], cuda: str, pip: str
) -> Remedy:
    """For a TensorFlow that looks on the loader's path alone."""
    minor = ".".join(cuda.split(".")[:2])
    build = build_of(parse_version(known(facts.version) or "") or Version("0"))
    cudnn = build.cudnn if build is not None else ""
    text = f"This TensorFlow looks for CUDA {minor}'s libraries on the loader's path alone."
    prefix = _conda_prefix(view)
    if prefix:
        wanted = [
            f"cudatoolkit={minor}" if minor else "cudatoolkit",
            f"cudnn={cudnn}" if cudnn else "cudnn",
        ]
        return Remedy(
            f"{text} Install them into the environment, and put its directory there.",
            [
                f"conda install -y -p {word(prefix)} -c conda-forge {words(wanted)}",
                _onto_path([f"{prefix}/lib"]),
            ],
        )
    if cuda.startswith("11"):
        parts = list(dict.fromkeys(part for name in names if (part := component_of(name))))
        site = _site(facts)
        if parts and site:
            wheels = [_wheel(part, cudnn) for part in parts]
            folders = [f"{site}/nvidia/{part.replace('-', '_')}/lib" for part in parts]
            return Remedy(
                f"{text} Install them, and put their directories there.",
                [f"{pip} install {words(wheels)}", _onto_path(folders)],
            )
    commands = on_system(view, "cuda-libraries", dashed=minor.replace(".", "-")) if minor else []
    newer = _newer_tensorflow(view)
    if newer:
        text += f" Install that CUDA beside any other{', with cuDNN' if cudnn else ''}"
        text += f" {cudnn}" if cudnn else ""
        return Remedy(
            f"{text}; or TensorFlow {newer}, which brings its own.",
            [*commands, pip_install(view, f"tensorflow[and-cuda]=={newer}")],
        )
    commands += [f"ldconfig -p | grep -F {word(names[0].partition('.so')[0])}"]
    return Remedy(f"{text} Install that CUDA beside any other.", commands)


def _wheel(part: str, cudnn: str) -> str:
    if part != "cudnn" or not cudnn:
        return f"nvidia-{part}-cu11"
    return f"nvidia-cudnn-cu11>={cudnn},<{int(cudnn.partition('.')[0]) + 1}"


def _newer_tensorflow(view: SnapshotView) -> str:
    driver, version = known(driver_version(view)[0]), python_version(view)
    try:
        capabilities = sorted({one.capability for one in visible(view).chosen if one.capability})
    except CannotJudge:
        return ""
    build = newest_tensorflow(driver, capabilities, version) if driver and version else None
    return str(build.version) if build is not None else ""


def newer_cudnn(view: SnapshotView, facts: Framework, running: Library, built: Version) -> Remedy:
    """For a cuDNN of another major than a framework was built with, or of a lower minor."""
    least = ".".join(str(number) for number in built.release[:2])
    wanted = f">={least},<{built.major + 1}"
    cuda = (known(facts.built_cuda) or "").partition(".")[0]
    commands = ["unset LD_LIBRARY_PATH"] if known(running.origin) == "LD_LIBRARY_PATH" else []
    if cuda in ("11", "12", "13") and built.major >= 8:
        commands.append(pip_install(view, f"nvidia-cudnn-cu{cuda}{wanted}"))
        if not into_wheels(facts) and _site(facts):
            commands.append(_onto_path([f"{_site(facts)}/nvidia/cudnn/lib"]))
        return Remedy(f"Install cuDNN {wanted} for CUDA {cuda}, where it is found first.", commands)
    prefix = _conda_prefix(view)
    if prefix:
        commands.append(
            f"conda install -y -p {word(prefix)} -c conda-forge {word(f'cudnn{wanted}')}"
        )
    else:
        commands += on_system(view, "cudnn", major=str(built.major))
    return Remedy(f"Install cuDNN {wanted} for CUDA {known(facts.built_cuda) or ''}.", commands)


def _site(facts: Framework) -> str:
    """The directory that a framework's package lies in."""
    return (known(facts.file) or "").rpartition("/")[0].rpartition("/")[0]


def _conda_prefix(view: SnapshotView) -> str:
    interpreter = view.target.interpreter
    facts = None if interpreter is None else interpreter.facts
    return facts.prefix if facts is not None and facts.kind == "conda" else ""
