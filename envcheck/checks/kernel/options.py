"""The check on options of the driver's module that take GPUs or their NVLinks away."""

from __future__ import annotations

from ...data.products import product
from ...facts import kernel as facts
from ..config_lines import drop_options
from ..declared import declared_rows
from ..nvidia_devices import kernel_facts, listed_gpus
from ..on_the_bus import BAR_SIZES
from ..reading import CannotJudge, Kernel, SnapshotView, known
from ..verdicts import (
    DeclaredRow,
    Evidence,
    Finding,
    Passed,
    Subject,
    Verdicts,
    about_device_at,
    about_gpu,
    check,
)

_PREFIX = "NVreg_"
_LARGE = 257  # MiB: what boards have without Resizable BAR is less
_ROWS = declared_rows(__name__)  # by an option's name, without the prefix


@check("KRN-016")
def options_take_nothing(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    set_here = {}
    for row in _ROWS:
        (option,) = row.names
        value, path = _value(kernel, option)
        if value is None or not row.fits(option, value):
            continue
        set_here[option] = value
        if (subjects := _hit(view, kernel, row)) is not None:
            yield _found(view, row, subjects, view.evidence(path, f"{option}: {value}"), kernel)
    yield Passed(", ".join(f"{name}={value}" for name, value in set_here.items()) or "none is set")


def _value(kernel: Kernel, option: str) -> tuple[str | None, str]:
    """What the loaded driver says of the option, else what it will be loaded with; and the fact's path."""
    if kernel.driver_parameters:
        value = kernel.driver_parameters.get(option)
        return value and value.strip('"'), "machine.kernel.driver_parameters"
    values = [one.value for one in _setting(kernel, option)]
    return (values[-1] if values else None), "machine.kernel.module_options"


def _setting(kernel: Kernel, option: str) -> list[facts.ModuleOption]:
    options = known(kernel.module_options) or []
    return [one for one in options if one.module == "nvidia" and one.name == _PREFIX + option]


def _hit(view: SnapshotView, kernel: Kernel, row: DeclaredRow) -> list[Subject] | None:
    """The GPUs that the option takes something from; None where it takes nothing on this machine."""
    if "gpu" in row.when:
        return [one for address in kernel.excluded_gpus for one in about_device_at("gpu", address)]
    try:
        boards = [(gpu, product(known(gpu.name) or "")) for gpu in view.gpus]
    except CannotJudge:
        return None
    if "bar" in row.when:
        small = [gpu for gpu in view.gpus if (known(gpu.bar1_total_mib) or _LARGE) < _LARGE]
        return [one for gpu in small for one in about_gpu(gpu)] or None
    linked = [gpu for gpu, board in boards if board and board.board == "module" and board.nvlinks]
    up = any(link.active for gpu in linked for link in known(gpu.nvlinks) or [])
    subjects = [one for gpu in linked for one in about_gpu(gpu)]
    return subjects if subjects and not up else None


def _found(
    view: SnapshotView, row: DeclaredRow, subjects: list[Subject], seen: Evidence, kernel: Kernel
) -> Finding:
    name, options = _PREFIX + row.names[0], _setting(kernel, row.names[0])
    paths = list(dict.fromkeys(one.path for one in options))
    texts = [f"{path}: {name}" for path in paths]
    evidence = [seen, *(view.evidence("machine.kernel.module_options", text) for text in texts)]
    commands = drop_options(view, options) if "bar" not in row.when else [BAR_SIZES]
    where = " and ".join(paths) or "modprobe.d or the kernel's command line"
    cause = row.listed if row.listed and listed_gpus(view) else row.cause
    return cause.found(subjects, evidence, commands=commands, option=name, where=where)
