"""Results of fleets as tests of reports want them: made up, without a Snapshot."""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec.structs import replace

from envcheck.attributes.model import Measurement
from envcheck.fleet.model import (
    AttributeOutlier,
    Camp,
    FleetResult,
    JudgedMachine,
    MachineProblem,
    RateOutlier,
    SharedFault,
    Split,
)
from envcheck.fleet.result import result

H100 = "8 × NVIDIA H100 80GB HBM3"
A100 = "8 × NVIDIA A100-SXM4-80GB"
UNDER = "PTX 8.4, clocks as they are"

TF32 = MachineProblem(
    code="TC-004",
    level="fail",
    title="Tensor Cores compute FP16 products",
    headline="FP16 products are computed without Tensor Cores",
    message="On GPU 3, FP16 products reach 61 TFLOP/s, which CUDA cores reach alone.",
    devices=["GPU 3"],
    remedy="Update the driver to 550.54 or newer, and restart.",
    commands=["sudo apt-get install nvidia-driver-550", "sudo reboot"],
    kind="TC-004 update",
)
ECC = MachineProblem(
    code="GPU-021",
    level="fail",
    title="Memory without uncorrectable errors",
    headline="a GPU's memory has uncorrectable errors",
    message="GPU 5 has 3 uncorrectable errors since its last reset.",
    devices=["GPU 5"],
    remedy="Drain the machine and have the GPU exchanged.",
    commands=["nvidia-smi -q -d ECC"],
    kind="GPU-021 exchange",
)
LINK = MachineProblem(
    code="PCIE-003",
    level="warn",
    title="PCIe links at their full width",
    headline="a GPU's link has 8 of 16 lanes",
    message="GPU 1 is linked with 8 of its 16 lanes.",
    devices=["GPU 1"],
    remedy="Reseat the GPU or its riser.",
    kind="PCIE-003 reseat",
)


def machine(name: str, place: int = 0, *problems: MachineProblem) -> JudgedMachine:
    fails = any(problem.level == "fail" for problem in problems)
    product = A100 if place % 5 == 4 else H100
    generator = random.Random(name)
    median = 281.0 if product == A100 else 742.0
    return JudgedMachine(
        name=name,
        state="problems" if fails else "healthy",
        verdict=f"{len(problems)} problems" if fails else "All is well",
        product=product,
        summary=f"Ubuntu 22.04, driver 550.54.15, {product}",
        collected_at=f"2026-03-{1 + place % 3:02}T08:{place % 60:02}:00Z",
        groups=[
            ("rack", f"rack-{1 + place // 16:02}"),
            ("switch", f"leaf{1 + place // 48}"),
            ("partition", "a100" if product == A100 else "h100"),
            ("image", "Ubuntu 22.04.4 LTS"),
        ],
        problems=list(problems),
        rates=[
            Measurement(
                key="kernels.L0.fp16",
                words="FP16 at L0",
                value=generator.gauss(median, median * 0.004),
                unit="TFLOP/s",
                device=f"GPU {gpu}",
                under=UNDER,
            )
            for gpu in range(8)
        ],
        page=f"{name}.html",
    )


def fleet(count: int) -> FleetResult:
    """A fleet with some of everything, as large as asked for; the same for the same number."""
    generator = random.Random(count)
    machines = []
    for place in range(count):
        name = f"gpu{1 + place:04}"
        chance = generator.random()
        if chance < 0.02:
            machines.append(_silent(name, place, generator))
        elif chance < 0.03:
            machines.append(
                replace(
                    machine(name, place),
                    state="could-not-look",
                    verdict="NVML did not answer within 60 s",
                )
            )
        elif chance < 0.05 or (place // 16 == 2 and place % 3):
            machines.append(machine(name, place, TF32))
        elif chance < 0.06 or place == 1:
            machines.append(machine(name, place, ECC, LINK))
        elif chance < 0.075:
            machines.append(machine(name, place, LINK))
        else:
            machines.append(machine(name, place))
    return with_odd(result(machines))


def _silent(name: str, place: int, generator: random.Random) -> JudgedMachine:
    reasons = [
        ("unreachable", "ssh: connect to host port 22: No route to host"),
        ("timed-out", "no answer within 120 s"),
    ]
    outcome, reason = generator.choice(reasons)
    return JudgedMachine(
        name=name,
        state="unanswered",
        answer=outcome,  # type: ignore[arg-type]
        reason=reason,
        groups=machine(name, place).groups,
    )


def with_odd(found: FleetResult) -> FleetResult:
    """With outliers among those that are well."""
    well = [one for one in found.machines if one.state == "healthy" and one.product == H100]
    if len(well) < 3:
        return found
    odd, slow = well[1], well[-2:]
    facts = [
        AttributeOutlier(
            machine=odd.name,
            product=H100,
            key="gpus.vbios",
            words="VBIOS",
            value="96.00.68.00.01",
            usual="96.00.89.00.01",
            agree=len(well) * 8 - 2,
            of=len(well) * 8,
            devices=["GPU 3", "GPU 4"],
            per="device",
        ),
        AttributeOutlier(
            machine=odd.name,
            product=H100,
            key="host.kernel",
            words="kernel",
            value="5.15.0-91-generic",
            usual="5.15.0-102-generic",
            agree=len(well) - 1,
            of=len(well),
        ),
    ]
    rates, machines = [], {one.name: one for one in found.machines}
    for number, one in enumerate(slow):
        value = 742 * (0.91 - 0.02 * number)
        figures = [replace(one.rates[0], value=value), *one.rates[1:]]
        machines[one.name] = replace(one, rates=figures)
        rates.append(
            RateOutlier(
                machine=one.name,
                product=H100,
                key="kernels.L0.fp16",
                words="FP16 at L0",
                value=value,
                unit="TFLOP/s",
                median=742.0,
                below=1 - value / 742,
                deviations=18.0 + number,
                of=len(well) * 8,
                device="GPU 0",
                under=UNDER,
                devices=["GPU 0"],
                also=["FP8 at L0: 8.7 % below"],
            )
        )
    camps = [
        Camp(value="12.4", machines=[one.name for one in well[::2]], hosts="gpu[0001-0499]"),
        Camp(value="12.2", machines=[one.name for one in well[1::2]], hosts="gpu[0500-1000]"),
    ]
    return replace(
        found,
        attribute_outliers=facts,
        rate_outliers=rates,
        splits=[Split(product=H100, key="target.cuda", words="CUDA", camps=camps)],
        shared=_shared(found),
        machines=list(machines.values()),
    )


def _shared(found: FleetResult) -> list[SharedFault]:
    here = [
        one.name
        for one in found.machines
        if ("rack", "rack-03") in one.groups and TF32 in one.problems
    ]
    if not here:
        return []
    return [
        SharedFault(
            kind="rack",
            name="rack-03",
            code=TF32.code,
            words=TF32.headline,
            machines=here,
            hosts=",".join(here),
            of=16,
            elsewhere=sum(TF32 in one.problems for one in found.machines) - len(here),
        )
    ]


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "javascript:alert(3)",
    "../../etc/passwd",
    "a b&c'd\"e",
    "\u202egpu\x1b[31m\n\x00",
    "</style><style>*{display:none}",
    "#main",
    "x" * 300,
    "</script><script>alert(4)</script>",
]


def hostile(names: Sequence[str] = HOSTILE) -> FleetResult:
    """Where every word that comes from outside is a trap."""
    machines = []
    for place, name in enumerate(names):
        problem = MachineProblem(
            code="GPU-001",
            level="fail",
            title=name,
            headline=name,
            message=name,
            devices=[name],
            remedy=name,
            commands=[name],
            kind=name,
        )
        one = machine(name, place, problem)
        machines.append(
            replace(
                one,
                product=name,
                verdict=name,
                summary=name,
                collected_at=name,
                simulated=name,
                groups=[("rack", names[place // 2]), (name, "a")],
                page=f"page-{place}.html",
            )
        )
    machines.append(
        JudgedMachine(name=names[0] * 2, state="unanswered", answer="failed", reason=names[0])
    )
    found = with_odd(result(machines))
    first = names[0]
    return replace(
        found,
        attribute_outliers=[
            AttributeOutlier(
                machine=first,
                product=first,
                key=first,
                words=name,
                value=name,
                usual=name,
                agree=9,
                of=10,
                devices=[name],
                because=name,
            )
            for name in names
        ],
        rate_outliers=[
            RateOutlier(
                machine=name,
                product=names[0],
                key="kernels.L0.fp16",
                words=name,
                value=600.0,
                unit=name,
                median=742.0,
                below=0.2,
                deviations=9.0,
                of=80,
                device=name,
                under=UNDER,
                also=[name],
            )
            for name in names
        ],
        splits=[
            Split(
                product=first,
                key=first,
                words=first,
                camps=[Camp(value=n, machines=[n], hosts=n) for n in names],
            )
        ],
        shared=[
            SharedFault(kind=n, name=n, code=n, words=n, machines=[n], hosts=n, of=2, also=[(n, n)])
            for n in names
        ],
    )
