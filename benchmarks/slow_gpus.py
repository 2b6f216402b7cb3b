"""How often a slow GPU is found, and how often a healthy one is mistaken: by noise, machines and looks.

    .venv/bin/python benchmarks/slow_gpus.py [--fleets 200] [--slower 0.05]

Simulated rates (five a GPU, one GPU in each fleet is slower) go through the outliers of a fleet; prints a
table as Markdown. Noise of a chip stays the same at each look, noise of a measurement does not; the GPUs of a
machine have 0.2 % in common. A healthy chip as slow as the slow one counts as false, too.
"""

from __future__ import annotations

import argparse
import random
from statistics import fmean

from envcheck.attributes.model import Measurement
from envcheck.fleet.model import JudgedMachine
from envcheck.fleet.rate_outliers import rate_outliers

RATES, SHARED = 5, 0.002
FLEETS = ((40, 1), (40, 8))  # machines, GPUs of each
NOISES = ((0.0, 0.02), (0.003, 0.01), (0.006, 0.01), (0.01, 0.003))  # of chips, of measurements
LOOKS = (1, 3, 8)


def fleet(
    chance: random.Random,
    machines: int,
    gpus: int,
    noise: tuple[float, float],
    looks: int,
    slow: float,
) -> list[JudgedMachine]:
    """GPU 0 of the first machine is slower by this share."""
    found = []
    for number in range(machines):
        shared, rates = chance.gauss(1, SHARED), []
        for gpu in range(gpus):
            chip = shared * chance.gauss(1, noise[0]) * (1 - slow * (number == gpu == 0))
            for key in range(RATES):
                value = fmean(100 * chip * chance.gauss(1, noise[1]) for _ in range(looks))
                rates.append(
                    Measurement(
                        key=f"kernels.{key}",
                        words=str(key),
                        value=value,
                        unit="T",
                        device=f"GPU {gpu}",
                    )
                )
        name = f"m{number}"
        found.append(
            JudgedMachine(name=name, state="healthy", product="p", rates=rates, looks=looks)
        )
    return found


def row(
    fleets: int, machines: int, gpus: int, noise: tuple[float, float], looks: int, slow: float
) -> str:
    found = wrong = 0
    for seed in range(fleets):
        made = fleet(random.Random(seed), machines, gpus, noise, looks, slow)
        outliers, _ = rate_outliers({"p": made})
        named = {(one.machine, device) for one in outliers for device in one.devices}
        found += ("m0", "GPU 0") in named
        wrong += bool(named - {("m0", "GPU 0")})
    shares = (
        f"{noise[0]:.1%} | {noise[1]:.1%} | {looks} | {found / fleets:.0%} | {wrong / fleets:.0%}"
    )
    return f"| {machines} × {gpus} | {shares} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--slower", type=float, default=0.05)
    arguments = parser.parse_args()
    print(
        "| machines × GPUs | noise of chips | of measurements | looks | found | fleets with a false one |"
    )
    print("|---|---|---|---|---|---|")
    for machines, gpus in FLEETS:
        for noise in NOISES:
            for looks in LOOKS:
                print(
                    row(arguments.fleets, machines, gpus, noise, looks, arguments.slower),
                    flush=True,
                )


if __name__ == "__main__":
    main()
