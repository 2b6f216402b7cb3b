"""Made-up results of fleets: a few machines, a thousand, with hostile names and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envcheck.fleet.model import (
    SCHEMA,
    AttributeOutlier,
    Camp,
    FleetCounts,
    FleetResult,
    JudgedMachine,
    MachineProblem,
    ProblemGroup,
    RateOutlier,
    SharedFault,
    Split,
    Unanswered,
)

H100 = "8 × NVIDIA H100 80GB HBM3"
HOSTILE = (
    "\x1b[2J\x1b[31mall is well",
    "a\u202egnp.exe",
    "x" * 10_000,
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "line\nFAIL DRV-002 forged",
    "[bold red]markup[/]",
    "javascript:alert(1)",
    "\ud800half",
    "null\x00byte",
)


def machine(name: str, state: str = "healthy", **changes: Any) -> JudgedMachine:
    shown: dict[str, Any] = {"product": H100, "summary": f"Ubuntu, driver 535, {H100}"}
    shown |= {"verdict": "healthy: 8 × H100", "collected_at": "2026-01-01T00:00:00Z"}
    if state == "broken":
        shown |= {"verdict": "1 problem: versions do not match", "problems": [problem()]}
    if state == "silent":
        shown = {"answer": "unreachable", "reason": "No route to host"}
    if state == "blind":
        state, shown = "silent", shown | {"reason": "the driver does not answer"}
    return JudgedMachine(name=name, state=state, **(shown | changes))  # type: ignore[arg-type]


def problem(code: str = "DRV-002", level: str = "fail", **changes: Any) -> MachineProblem:
    shown = {"title": "One version", "headline": "kernel module and libraries do not match"}
    shown |= {
        "message": "The module is 535.104.05.",
        "remedy": "Reboot.",
        "kind": f"{code} Reboot.",
    }
    return MachineProblem(
        code=code,
        level=level,  # type: ignore[arg-type]
        **(shown | {"commands": ["sudo reboot"], "devices": ["GPU 3"]} | changes),
    )


def group(machines: Sequence[str], code: str = "DRV-002", **changes: Any) -> ProblemGroup:
    of = problem(code)
    shown: dict[str, Any] = {"level": "fail", "title": of.title, "headline": of.headline}
    shown |= {"message": of.message, "remedy": of.remedy, "commands": of.commands}
    shown |= {"hosts": ",".join(machines)}
    return ProblemGroup(code=code, machines=list(machines), **(shown | changes))


def attribute_outlier(name: str, **changes: Any) -> AttributeOutlier:
    shown: dict[str, Any] = {
        "product": H100,
        "key": "gpus.vbios",
        "words": "VBIOS",
        "value": "96.00.5E",
    }
    shown |= {"usual": "96.00.74", "agree": 207, "of": 208, "per": "device", "devices": ["GPU 3"]}
    return AttributeOutlier(machine=name, **(shown | changes))


def rate_outlier(name: str, **changes: Any) -> RateOutlier:
    shown: dict[str, Any] = {"product": H100, "key": "kernels.L0.fp16", "words": "FP16 at L0"}
    shown |= {"value": 529.4, "unit": "TFLOP/s", "median": 569.3, "below": 0.0701, "of": 208}
    shown |= {"deviations": 9.2, "device": "GPU 6", "devices": ["GPU 6"]}
    return RateOutlier(machine=name, **(shown | changes))


def fleet_result(machines: Sequence[JudgedMachine], **changes: Any) -> FleetResult:
    """Groups and silence are made of the machines, unless they are given."""
    ill = [one.name for one in machines if one.problems]
    silent = [one.name for one in machines if one.state == "silent"]
    shown: dict[str, Any] = {"groups": [group(ill)] if ill else []}
    shown["unanswered"] = [
        Unanswered(
            outcome="unreachable",
            reason="No route to host",
            machines=silent,
            hosts=",".join(silent),
        )
        for _ in silent[:1]
    ]
    shown |= {"attribute_outliers": [], "rate_outliers": [], "splits": [], "shared": []}
    states = [one.state for one in machines]
    counts = FleetCounts(
        machines=len(states),
        healthy=states.count("healthy"),
        degraded=states.count("degraded"),
        broken=states.count("broken"),
        silent=states.count("silent"),
        unanswered=sum(one.answer != "answered" for one in machines),
    )
    made = {"schema": SCHEMA, "envcheck": "0.0", "counts": counts, "machines": list(machines)}
    return FleetResult(**(made | shown | changes))


def three() -> FleetResult:
    """One is well, one is not, one is silent."""
    return fleet_result([machine("a"), machine("b", "broken"), machine("c", "silent")])


def everything(count: int = 1000) -> FleetResult:
    """A bit of all that can be told, on machines whose names do not fold."""
    names = [f"node-{number * 7919 % 100003:05}.example.org" for number in range(count)]
    states = [
        "broken" if number % 9 == 0 else "silent" if number % 31 == 0 else "healthy"
        for number in range(count)
    ]
    machines = [machine(name, state) for name, state in zip(names, states, strict=True)]
    machines[1] = machine(names[1], "blind")
    return fleet_result(
        machines,
        groups=[group(names[n::40], f"GPU-{n:03}") for n in range(1, 38)],
        attribute_outliers=[
            attribute_outlier(name, value=f"v{n}") for n, name in enumerate(names[:50])
        ],
        rate_outliers=[rate_outlier(name, value=500.0 + n) for n, name in enumerate(names[50:90])],
        splits=[
            Split(
                product=H100,
                key="driver.version",
                words="driver",
                camps=[
                    Camp(value="535", machines=names[:500], hosts=",".join(names[:500])),
                    Camp(value="", machines=names[500:], hosts=",".join(names[500:])),
                ],
            )
        ],
        shared=[
            SharedFault(
                kind="switch",
                name=f"leaf{n}",
                code="NET-001",
                words="has a port that is down",
                machines=names[n : n + 5],
                hosts=",".join(names[n : n + 5]),
                of=8,
            )
            for n in range(30)
        ],
    )


def hostile() -> FleetResult:
    """Every word that came from elsewhere is somebody's who means no good."""
    names = [f"{text}{number}" for number, text in enumerate(HOSTILE)]
    bad = HOSTILE[0]
    machines = [
        machine(
            name,
            "broken",
            product=text,
            summary=text,
            verdict=text,
            collected_at=text,
            groups=[("group", text)],
            problems=[
                problem(
                    title=text,
                    headline=text,
                    message=text,
                    remedy=text,
                    commands=[text.replace("\n", " ")],
                )
            ],
        )
        for name, text in zip(names, HOSTILE, strict=True)
    ]
    machines.append(machine(bad, "silent", reason=bad))
    return fleet_result(
        machines,
        groups=[
            group(
                [name],
                title=text,
                headline=text,
                message=text,
                remedy=text,
                commands=[text.replace("\n", " ")],
                of_one=name,
            )
            for name, text in zip(names, HOSTILE, strict=True)
        ],
        attribute_outliers=[
            attribute_outlier(bad, value=text, usual=text, words=text) for text in HOSTILE
        ],
        rate_outliers=[
            rate_outlier(bad, words=text, unit=text, device=text, also=[text]) for text in HOSTILE
        ],
        shared=[
            SharedFault(kind=text, name=text, code="", words=text, machines=[bad], hosts=bad, of=3)
            for text in HOSTILE
        ],
    )
