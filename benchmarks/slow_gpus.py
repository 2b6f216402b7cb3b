"""How often a slow GPU is found, and how often a healthy one is mistaken: by noise, machines and looks.

    .venv/bin/python benchmarks/slow_gpus.py [--fleets 200] [--slower 0.05]

Simulated rates (five a GPU, one GPU in each fleet is slower) go through the outliers of a fleet; prints a
table as Markdown. Noise of a chip stays the same at each look, noise of a measurement does not; the GPUs of a
machine have 0.2 % in common. Of the others that are named, the slowest chips of a fleet (3 % slower than its
median in truth) are counted apart from the false ones.
"""

from __future__ import annotations

import argparse
import random
from statistics import fmean, median

from envcheck.attributes.model import Measurement
from envcheck.fleet.model import JudgedMachine
from envcheck.fleet.rate_outliers import LEAST, rate_outliers

RATES, SHARED = 5, 0.002
FLEETS = ((40, 1), (40, 8))  # machines, GPUs of each
NOISES = ((0.0, 0.02), (0.003, 0.01), (0.01, 0.003))  # of chips, of measurements
LOOKS = (1, 3, 8)


def fleet(
    chance: random.Random,
    machines: int,
    gpus: int,
    noise: tuple[float, float],
    looks: int,
    slow: float,
) -> tuple[list[JudgedMachine], dict[tuple[str, str], float]]:
    """The machines, and the true rate of each GPU. GPU 0 of the first machine is slower by this share."""
    found, true = [], {}
    for number in range(machines):
        shared, rates = chance.gauss(1, SHARED), []
        for gpu in range(gpus):
            chip = shared * chance.gauss(1, noise[0]) * (1 - slow * (number == gpu == 0))
            true[f"m{number}", f"GPU {gpu}"] = chip
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
    return found, true


def row(
    fleets: int, machines: int, gpus: int, noise: tuple[float, float], looks: int, slow: float
) -> str:
    found = tail = wrong = 0
    for seed in range(fleets):
        made, true = fleet(random.Random(seed), machines, gpus, noise, looks, slow)
        outliers, _ = rate_outliers({"p": made})
        named = {(one.machine, device) for one in outliers for device in one.devices}
        found += ("m0", "GPU 0") in named
        others = {true[one] / median(true.values()) for one in named - {("m0", "GPU 0")}}
        tail += any(rate <= 1 - LEAST for rate in others)
        wrong += any(rate > 1 - LEAST for rate in others)
    shares = " | ".join(f"{count / fleets:.0%}" for count in (found, tail, wrong))
    return f"| {machines} × {gpus} | {noise[0]:.1%} | {noise[1]:.1%} | {looks} | {shares} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--slower", type=float, default=0.05)
    arguments = parser.parse_args()
    print(
        "| machines × GPUs | noise of chips | of measurements | looks | found"
        " | fleets with a slow healthy chip | with a false one |"
    )
    print("|---|---|---|---|---|---|---|")
    for machines, gpus in FLEETS:
        for noise in NOISES:
            for looks in LOOKS:
                print(
                    row(arguments.fleets, machines, gpus, noise, looks, arguments.slower),
                    flush=True,
                )


if __name__ == "__main__":
    main()
