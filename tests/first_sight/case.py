"""Reads a case and makes its machine. README.md beside this file says what each key is."""

from __future__ import annotations

import lzma
import re
import struct
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import tomli
from world import environments, products, smi
from world.bases import BASES
from world.contents import Content, File, Library, Link
from world.elf import kernel_module, modinfo, shared_object
from world.environments import HOME, SITE, Package
from world.gpus import Gpu, busy
from world.libraries import SOURCES
from world.machine import LIB, Machine, tree
from world.pci import extended_space, pci

from . import frameworks

HERE = Path(__file__).parent


class Installed(msgspec.Struct, forbid_unknown_fields=True):
    """A distribution; ``gone``: of its files, those that are recorded and not there."""

    name: str
    version: str
    requires: list[str] = []
    files: dict[str, Any] = {}
    gone: list[str] = []
    tag: str = "py3-none-any"


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """What NVML says to one call."""

    call: str
    which: int | str = "all"
    code: int = 0
    when: str = "-"
    key: str = "-"


class Printed(msgspec.Struct, forbid_unknown_fields=True):
    """What nvidia-smi prints of a GPU in place of what NVML's values would give."""

    which: int
    name: str
    value: str


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One file."""

    theme: str
    symptom: str
    cause: str
    remedy: str
    says: str
    does: str
    base: str
    gpus: int = 0
    not_driven: list[int] | str = []
    subject: str = ""
    link: str = ""
    unseen: str = ""
    arguments: list[str] = []
    framework: str = ""
    built: frameworks.Built | None = None
    installed: list[str] = []
    without: list[str] = []
    without_files: list[str] = []
    log: list[str] = []
    boot: list[str] = []
    machine: dict[str, Any] = {}
    gpu: list[dict[str, Any]] = []
    nvml: list[Answer] = []
    smi: list[Printed] = []
    device: list[dict[str, Any]] = []
    files: dict[str, Any] = {}
    environment: dict[str, str] = {}
    package: list[Installed] = []


@cache
def cases(folder: str) -> dict[str, Case]:
    """The cases of a folder ("reports", "second/faults") by name. Raises ValueError for an unreadable one."""
    return {path.stem: read(path) for path in sorted((HERE / folder).glob("*.toml"))}


def read(path: Path) -> Case:
    try:
        case = msgspec.convert(tomli.loads(path.read_text()), Case)
        for pattern in (case.subject, case.says, case.does):
            re.compile(pattern)
        if case.base not in BASES:
            raise ValueError(f"no base is called {case.base!r}")
    except (ValueError, re.error) as error:
        raise ValueError(f"{path.name}: {error}") from None
    return case


def machine(case: Case) -> Machine:
    made = BASES[case.base]()
    made.name = "a case"
    if case.gpus:
        _keep(made, case.gpus)
    for name, value in case.machine.items():
        if not hasattr(made, name):
            raise ValueError(f"a machine has no {name}")
        was = getattr(made, name)
        setattr(made, name, tuple(value) if isinstance(was, tuple) else value)
    _gpus(case, made)
    _devices(case, made)
    _remove(case, made)
    _answers(case, made)
    _print(case, made)
    _undriven(case, made)
    made.log += case.log
    if case.framework or case.package or case.installed:
        _install(case, made)
    if case.boot:
        made.files["/dev/kmsg"] = _kernel_log(case.boot + made.log)
    made.files |= _absent(made, case.without_files)
    made.files |= {_place(path): _content(value) for path, value in case.files.items()}
    _add_verbs(case, made)
    made.files |= _addresses(made.files)
    made.environment |= {name: _place(value) for name, value in case.environment.items()}
    made.arguments += case.arguments
    return made


def _add_verbs(case: Case, made: Machine) -> None:
    """The libraries that come with RDMA adapters, unless the case is about them."""
    adapters = any(path.startswith("/sys/class/infiniband/") for path in made.files)
    if adapters and not any("libibverbs" in path for path in [*case.files, *case.without_files]):
        for name in ("libibverbs", "libmlx5", "librdmacm"):
            made.files.setdefault(f"{LIB}/{name}.so.1", Library("versioned"))
        made.files.setdefault(f"{LIB}/libibverbs/libmlx5-rdmav34.so", Library("versioned"))


def _addresses(files: dict[str, Content]) -> dict[str, Content]:
    """What the kernel has for interfaces that are up, where a case speaks of interfaces alone."""
    top = "/sys/class/net/"
    states = {p: files[p] for p in files if p.startswith(top) and p.endswith("/operstate")}
    up = [path[len(top) :].partition("/")[0] for path, text in states.items() if text == "up\n"]
    if not up or any(path.startswith("/proc/net/") for path in files):
        return {}
    routes = "".join(f"{name}\t0000000A\t00000000\t0001\n" for name in up)
    lo = "00000000000000000000000000000001 01 80 10 80       lo\n"
    return {"/proc/net/route": routes, "/proc/net/if_inet6": lo}


def _keep(made: Machine, count: int) -> None:
    """Only its first GPUs, and only their PCI devices and the ports above them."""
    for gone in range(count, len(made.gpus)):
        place = made.of(gone).place
        bus, above = place.rpartition(":")[0], place.rpartition("/")[0]
        made.devices = [one for one in made.devices if not one.place.startswith(bus)]
        made.devices = [one for one in made.devices if one.place != above]
    made.gpus = made.gpus[:count]


def _undriven(case: Case, made: Machine) -> None:
    """GPUs that are on the bus, and that neither NVML nor CUDA nor nvidia-smi shows."""
    gone = range(len(made.gpus)) if case.not_driven == "all" else case.not_driven
    made.gpus = [gpu for place, gpu in enumerate(made.gpus) if place not in gone]


def _kernel_log(lines: list[str]) -> str:
    return "".join(f"6,{n},{(n + 5) * 1000000},-;{line}\n" for n, line in enumerate(lines))


def _absent(made: Machine, paths: list[str]) -> dict[str, Content]:
    """Paths that are not there; * stands for anything."""
    every = tree(made) if any("*" in path for path in paths) else {}
    return {
        one: None
        for path in map(_place, paths)
        for one in ([path] if "*" not in path else [n for n in every if fnmatchcase(n, path)])
    }


def _gpus(case: Case, made: Machine) -> None:
    for given in case.gpu:
        changes = dict(given)
        which, product = changes.pop("which", "all"), changes.pop("product", "")
        working = changes.pop("busy", False)
        changes |= dict.fromkeys(changes.pop("none", []))
        links = changes.pop("link", {})
        changes.pop("gone", None)
        chosen = range(len(made.gpus)) if which == "all" else which
        for gpu in [made.gpu(n) for n in ([chosen] if isinstance(chosen, int) else chosen)]:
            if product:
                gpu.change(**getattr(products, product))
            if working:
                busy(gpu)
            for name, value in changes.items():
                value = None if value == "N/A" else value
                same = isinstance(gpu[name], tuple) and isinstance(value, list)
                gpu.change(**{name: tuple(value) if same else value})
            for number, state in links.items():
                gpu.links[int(number)].update(state)
            if not changes.keys() & {"default_mw", "default_app_sm", "default_app_memory"}:
                _default(gpu)


def _default(gpu: Gpu) -> None:
    """Defaults of the base that another product cannot have follow what that product can do."""
    if gpu.power_range and not gpu.power_range[0] <= gpu.default_mw <= gpu.power_range[1]:
        gpu.change(default_mw=gpu.power_range[1])
    for clock, most in (("app_sm", gpu.max_sm), ("app_memory", gpu.max_memory)):
        for name in (clock, f"default_{clock}"):
            if gpu[name] and most and gpu[name] > most:
                gpu.change(**{name: most})


def _remove(case: Case, made: Machine) -> None:
    """GPUs that the driver does not list. Those behind them move up."""
    numbers = [given["which"] for given in case.gpu if given.get("gone")]
    lost = {n for one in numbers for n in (one if isinstance(one, list) else [one])}
    made.gpus = [gpu for gpu in made.gpus if gpu.index not in lost]
    for index, gpu in enumerate(made.gpus):
        gpu.change(index=index)


def _devices(case: Case, made: Machine) -> None:
    for changes in case.device:
        changes = dict(changes)
        which = changes.pop("which")
        if which == "new":
            made.devices.append(pci(changes.pop("place"), **changes))
            continue
        device = _find(made, which)
        if changes.pop("gone", False):
            made.devices.remove(device)
            continue
        device.files.update(dict.fromkeys(changes.pop("without", [])))
        control, silent = changes.pop("acs", None), changes.pop("silent", False)
        device.files.update({name: None if v == "" else v for name, v in changes.items()})
        _configure(device.files, changes)
        if control is not None:  # true: everything is redirected upstream
            beyond = extended_space(0x1D if control is True else control)[256:]
            device.files["config"] = device.files["config"][:256] + beyond
        if silent:  # every read of its configuration gives ones
            device.files["config"] = bytes([255]) * 256


def _configure(files: dict[str, Any], changes: dict[str, Any]) -> None:
    """Its configuration space: the numbers that its files have, or the one byte that it answers with."""
    if isinstance(files.get("config"), str):
        files["config"] = bytes.fromhex(files["config"]) * 256
    elif files.get("config") and {"vendor", "device"} & set(changes):
        numbers = struct.pack("<HH", int(files["vendor"], 16), int(files["device"], 16))
        files["config"] = numbers + files["config"][4:]


def _find(made: Machine, which: str) -> Any:
    above, _, number = which.rpartition("gpu ")
    device = made.of(int(number)) if number.isdigit() else made.device(which)
    if above.strip() != "above":
        return device
    return next(one for one in made.devices if one.place == device.place.rpartition("/")[0])


def _answers(case: Case, made: Machine) -> None:
    for one in case.nvml:
        handle = "*" if one.which == "all" else int(one.which) + 1
        made.nvml_first.append(f"{handle} {one.call} {one.key} {one.code} {one.when}")


def _print(case: Case, made: Machine) -> None:
    if not case.smi:
        return
    parts = smi.document(made.driver, made.cuda, made.gpus).split("<gpu id=")
    for one in case.smi:
        old = re.compile(f"(<{one.name}>)[^<]*(</{one.name}>)")
        parts[one.which + 1], count = old.subn(rf"\g<1>{one.value}\g<2>", parts[one.which + 1])
        if not count:
            raise ValueError(f"nvidia-smi prints no {one.name}")
    made.smi_out = "<gpu id=".join(parts)


def _install(case: Case, made: Machine) -> None:
    name, _, version = case.framework.partition(" ")
    if case.built is not None:
        packages = frameworks.made(name, version, _placed(case.built))
    else:
        make = frameworks.PLAIN.get(name)
        packages = make(*([version] if version else [])) if make else {}
    packages |= {one.name: one for one in map(frameworks.distribution, case.installed)}
    if name == "jax" and case.built is not None and case.built.cuda:
        _cuda_half(packages, case.built)
    for one in case.without:
        del packages[one]
    for new in case.package:
        files = {path: _content(value) for path, value in new.files.items()}
        packages[new.name] = Package(
            new.name, new.version, tuple(new.requires), files, tuple(new.gone), new.tag
        )
    environments.install(made, packages)


def _placed(built: frameworks.Built) -> frameworks.Built:
    texts = {name: _place(getattr(built, name)) for name in ("says", "raises", "lists", "fails")}
    return msgspec.structs.replace(built, loads=[_place(one) for one in built.loads], **texts)


def _cuda_half(packages: dict[str, Package], built: frameworks.Built) -> None:
    plugin = packages.get("jax-cuda12-plugin")
    owner, folder = (plugin, "jax_cuda12_plugin") if plugin else (packages["jaxlib"], "jaxlib/cuda")
    owner.files.setdefault(f"{folder}/__init__.py", "")
    half = frameworks.cuda_half(built).items()
    owner.files.update({f"{folder}/{name}": text for name, text in half})


def _place(text: str) -> str:
    return text.replace("{SITE}", SITE).replace("{PY}", Path(SITE).parent.name)


def _content(value: Any) -> Content:
    if isinstance(value, str):
        return value.replace("{SITE}", SITE).replace("{HOME}", HOME)
    if "link" in value:
        return Link(_place(value["link"]))
    if "needed" in value or "soname" in value:
        return shared_object(**value)
    if "library" in value:
        if value["library"] in SOURCES:
            return Library(value["library"], tuple(value.get("defines", ())))
        return frameworks.library(value["library"])
    if "module" in value:
        built = kernel_module(modinfo(value["module"], value.get("licence", "Dual MIT/GPL")))
        return lzma.compress(built) if value.get("packed") == "xz" else built
    if "mode" in value:
        return File(value.get("text", ""), value["mode"])
    raise ValueError(f"no content: {sorted(value)}")
