"""Keeps README's tables and its simulated report the program's own. To write them anew:

.venv/bin/python tests/readme.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parent / "unit"))

import h100
import tensor_runs
from whole import whole

from envcheck.checks.engine import diagnose
from envcheck.checks.registry import AREAS, all_checks
from envcheck.reports import tensorcores, terminal
from envcheck.reports.model import build
from envcheck.reports.page import Page

README = Path(__file__).resolve().parents[1] / "README.md"
MARKS = ("codes", "simulated", "tensor-cores")

# What the redaction tokens of the simulated machine stand for.
NAMES = {"<host-1>": "train-07", "<home-1>": "/home/ann", "<user-1>": "ann"}


def codes() -> str:
    """The checks as tables, an area each, folded away."""
    lines = []
    for area, name in AREAS.items():
        checks = [check for check in all_checks() if check.area == area]
        first, last = checks[0].code, checks[-1].code
        lines += [
            f"<details><summary><b>{name}</b> (<code>{area}</code>): {first} to {last}</summary>",
            "",
            "| code | what is well when it passes |",
            "|---|---|",
            *(f"| {check.code} | {check.title} |" for check in checks),
            "",
            "</details>",
        ]
    return "\n".join(lines)


def simulated() -> str:
    """The report on the tests' healthy 8 × H100 machine, one GPU of which is too hot."""
    hot = {
        "clock_event_reasons": ["hw_slowdown", "hw_thermal_slowdown"],
        "clock_sm_mhz": 345,
        "temperature_c": 86,
        "power_draw_w": 171.0,
    }
    gpus = [h100.gpu(n, **(hot if n == h100.VICTIM else {})) for n in range(h100.COUNT)]
    snapshot = whole(nvml=h100.nvml(gpus), nvidia_smi=h100.smi(gpus), cuda=h100.cuda(gpus))
    probe = msgspec.structs.replace(snapshot.machine.nvml, sources={"*": "NVML"})
    machine = msgspec.structs.replace(snapshot.machine, nvml=probe)
    snapshot = msgspec.structs.replace(snapshot, machine=machine)

    def restore(text: str) -> str:
        return re.sub("|".join(NAMES), lambda token: NAMES[token.group()], text)

    text = terminal.render(build(snapshot, diagnose(snapshot)), snapshot, restore=restore)
    return f"```text\n{text}```"


def tensor_cores() -> str:
    """The table of a simulated H100, whose PyTorch is left with its defaults."""
    machine = tensor_runs.MACHINES["H100"]
    runs = [tensor_runs.level_run(machine, level) for level in ("L0", "L1")]
    runs.append(tensor_runs.level_run(machine, "L2", "torch"))
    snapshot = tensor_runs.snapshot(machine, runs)
    page = Page()
    tensorcores.section(page, build(snapshot, diagnose(snapshot)), snapshot)
    return f"```text\n{page.text().strip()}\n```"


def marked(name: str) -> tuple[str, str]:
    return f"<!-- {name}: tests/readme.py -->", f"<!-- /{name} -->"


def renewed(text: str) -> str:
    """README's text with the generated parts as they have to be."""
    parts = {"codes": codes(), "simulated": simulated(), "tensor-cores": tensor_cores()}
    for name in MARKS:
        begin, end = marked(name)
        pattern = re.escape(begin) + r".*?" + re.escape(end)
        new = f"{begin}\n{parts[name]}\n{end}"
        text = re.sub(pattern, lambda match, new=new: new, text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    README.write_text(renewed(README.read_text()))
