"""How a package gets the libraries that it was built with, or is built for those that are there."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from ...data.compiled_halves import compiled_half
from ...data.sonames import component_of
from ...facts.target import LinkedFile
from .. import target
from ..framework.causes import wheel_of
from ..installing import conda_install
from ..reading import FRAMEWORKS, Distribution, SnapshotView, fact, known
from ..target import named, owner_of, pip, pip_install, pip_replace, pip_restore
from ..verdicts import Remedy, word, words
from .bring import onto_path

# By how the names of the frameworks' libraries begin.
_FRAMEWORK = {
    "libtensorflow": "tensorflow",
    "libtorch": "torch",
    "libc10": "torch",
    "libjax": "jax",
}
# The variable that leads a package's build to a CUDA; CUDA_HOME in most.
_CUDA_HOME = {"horovod": "HOROVOD_CUDA_HOME", "nvidia-horovod": "HOROVOD_CUDA_HOME"}
_NUMBERED = re.compile(r"lib(?:cudart|cublas|cublasLt|nvJitLink)\.so\.(\d+)")
_PINS = re.compile(r"(?:torch|tensorflow|jaxlib)\s?\(?==")
_MADE_FOR = re.compile(r"-cuda(\d\d)x\Z")
# std::string as compilers before GCC 5 write it; others write __cxx11 into its name.
_OLD_ABI = re.compile(r"[A-Z]Ss(?![a-z])")
_SOURCE = "--no-build-isolation --no-cache-dir"


def framework_of(soname: str) -> str:
    """The module of the framework whose library it is: "torch" of libc10.so; "" for any other."""
    return next((name for start, name in _FRAMEWORK.items() if soname.startswith(start)), "")


def rebuild(view: SnapshotView, file: LinkedFile, framework: str) -> tuple[Remedy, str, str]:
    """(what fits a package to a framework, that one's title, what of it is installed)."""
    title = FRAMEWORKS[framework]
    owner = owner_of(target.installed_if_known(view), framework)
    installed = named(owner) if owner else f"the installed {title}"
    name, version = known(file.distribution), known(file.distribution_version) or ""
    made_for = f"nstall a release of it that was made for {installed}"
    if not name:
        return Remedy(f"I{made_for}, or build it again here."), title, installed
    # What a container brings is on no index: 2.3.0a0+40ec155e58.nv24.3.
    pinned = owner is not None and ".nv" not in owner.version
    wanted = [name, f"{owner.name}=={owner.version}"] if owner and pinned else [name]
    release = pip(view, f"install --upgrade {words(wanted)}")
    again = f"{pip_restore(view, name, version.partition('+')[0])} {_SOURCE}"
    if ready := own_index(view, name):
        return ready, title, installed
    old = any(_OLD_ABI.search(one) and "cxx11" not in one for one in file.undefined)
    # Others than conda build frameworks themselves in that way.
    if old and fact(view.target.interpreter, "kind") == "conda" and framework == "tensorflow":
        compiler = conda_install(view, "-c conda-forge gxx_linux-64")
        text = (
            "Build it again with GCC 5 or later: it holds C++ names as older compilers write them."
        )
        return Remedy(text, [compiler, again]), title, installed
    if _may_be_built(view, file):
        text = (
            "Build it again for what is here, which takes a C++ compiler, and for kernels nvcc; or"
            f" i{made_for}."
        )
        return Remedy(text, [again, f"# or: {release}"]), title, installed
    return Remedy(f"I{made_for}.", [release]), title, installed


def own_index(view: SnapshotView, name: str) -> Remedy | None:
    """What installs a package from its own index of builds for each PyTorch and CUDA; None if it has none."""
    half, torch = compiled_half(canonicalize_name(name)), target.framework(view, "torch")
    version = target.framework_version(torch) if torch else None
    if half is None or not half.options.startswith("-f "):
        return None
    built = (known(torch.built_cuda) if torch else "") or _cuda(view) or "11.8"
    cuda = "".join(built.split(".")[:2])
    index = half.options.format(cu=f"cu{cuda}", torch=version.base_version if version else "")
    command = pip_install(view, name) + f" --no-index --force-reinstall --no-deps {index}"
    return Remedy(
        "Install its build for the PyTorch and CUDA that are here, from its own index.", [command]
    )


def get_libraries(
    view: SnapshotView, file: LinkedFile, names: list[str], instead: list[str]
) -> Remedy:
    """What brings a file the libraries that it lacks. instead: the like of them that are there."""
    name, version = known(file.distribution), known(file.distribution_version) or ""
    cuda = _cuda(view)
    there = re.search(r"/cuda-(\d+)", instead[0]) if instead else None
    made_for = _MADE_FOR.search(name or "")
    if name and there and made_for and made_for[1] != there[1]:
        other = f"{name[: made_for.start(1)]}{there[1]}{name[made_for.end(1) :]}"
        text = f"It is for CUDA {made_for[1]}, and CUDA {there[1]} is here: install {other} in its place."
        return Remedy(text, [pip_replace(view, other, name)])
    # Parts of one library have its version: libcudnn_ops.so.9 of libcudnn.so.9.
    versions = {one.rpartition(".so.")[2] for one in names}
    other_version = any(one.rpartition(".so.")[2] not in versions for one in instead)
    if name and other_version and _may_be_built(view, file):
        minor = ".".join(cuda.split(".")[:2])
        home = _CUDA_HOME.get(name.lower(), "CUDA_HOME")
        build = f"{home}=/usr/local/cuda-{minor} " if minor else ""
        return Remedy(
            f"It was built with another CUDA. Build it again with {f'CUDA {minor}' if minor else 'this one'},"
            " whose toolkit must be there.",
            [f"{build}{pip_restore(view, name, version)} {_SOURCE}"],
        )
    own = _cuda_of(view, file)
    # Two majors of CUDA in one process do not share what they allocate.
    same_major = not (own and cuda) or own == cuda.partition(".")[0]
    wheels = _wheels(view, names, own or cuda) if same_major else []
    commands = [pip(view, f"install --upgrade {words([name])}")] if name and other_version else []
    text = "Install a release of it that uses what is there" if commands else ""
    if wheels:
        bring = f"nstall what it asks for, and put it on the loader's path: {', '.join(names[:2])}."
        text = f"{text}; or i{bring}" if text else f"I{bring}"
        site = file.path.partition("-packages/")[0] + "-packages"
        parts = dict.fromkeys(part for one in names if (part := component_of(one)))
        folders = [f"{site}/nvidia/{part.replace('-', '_')}/lib" for part in parts]
        commands += [pip_install(view, *wheels), onto_path(folders)]
    elif not text:
        stem = names[0].partition(".so")[0]
        text, commands = "See where it is.", [f"ldconfig -p | grep -F {word(stem)}"]
    return Remedy(text.rstrip(".") + ".", commands)


def _may_be_built(view: SnapshotView, file: LinkedFile) -> bool:
    """Whether it was compiled here. A package that pins its framework came as a wheel for that one."""
    if known(file.built_here) is not True:
        return False
    own = _distribution(view, known(file.distribution) or "")
    return not any(_PINS.match(one) for one in (own and known(own.requires)) or [])


def _distribution(view: SnapshotView, name: str) -> Distribution | None:
    every = target.installed_if_known(view).values()
    return next((one for one in every if one.name == name), None)


def _cuda(view: SnapshotView) -> str:
    """The CUDA that a framework here was built with; "" where none says."""
    built = (known(one.built_cuda) for one in target.framework_facts(view))
    return next(filter(None, built), "")


def _cuda_of(view: SnapshotView, file: LinkedFile) -> str:
    """The CUDA major that a file's package was built with, by the libraries that are numbered as CUDA."""
    every: list[LinkedFile] = fact(view.target.loader, "linked") or []
    own = [one for one in every if one.distribution == file.distribution]
    for want in (want for one in own for want in one.wants):
        if found := _NUMBERED.match(want.soname):
            return found[1]
    return ""


def _wheels(view: SnapshotView, names: list[str], cuda: str) -> list[str]:
    """The wheels that hold these libraries, where no wheel of theirs has another version already."""
    distributions = target.installed_if_known(view)
    wheels = []
    for soname in names:
        part, wheel = component_of(soname), wheel_of(soname, cuda)
        if wheel and part and not target.of_component(distributions, part):
            wheels.append(wheel)
    return list(dict.fromkeys(wheels))
