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
from whole import whole

from envcheck.checks.engine import diagnose
from envcheck.checks.registry import AREAS, all_checks
from envcheck.reports import terminal
from envcheck.reports.model import build

README = Path(__file__).resolve().parents[1] / "README.md"
MARKS = ("codes", "simulated")

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


def marked(name: str) -> tuple[str, str]:
    return f"<!-- {name}: tests/readme.py -->", f"<!-- /{name} -->"


def renewed(text: str) -> str:
    """README's text with the generated parts as they have to be."""
    parts = {"codes": codes(), "simulated": simulated()}
    for name in MARKS:
        begin, end = marked(name)
        pattern = re.escape(begin) + r".*?" + re.escape(end)
        new = f"{begin}\n{parts[name]}\n{end}"
        text = re.sub(pattern, lambda match, new=new: new, text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    README.write_text(renewed(README.read_text()))
