"""Twenty mutations in central judgement, each with the unit test file that has to notice it.

    .venv/bin/python benchmarks/mutations.py [NUMBER ...]

Each mutation is applied to a copy of the repository and only its test file is run. A mutation that stays
green is printed as MISSED, and the exit code is 1.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", "docs"
)


class Mutation(NamedTuple):
    """One change. file, old, new: in the source; old stands there once. tests: below tests/unit."""

    file: str
    old: str
    new: str
    tests: str


MUTATIONS = (
    # which outcome a check has, and what follows from what
    Mutation(
        "envcheck/checks/engine.py",
        'if any(finding.level == "fail" for finding in findings):',
        'if all(finding.level == "fail" for finding in findings):',
        "test_engine.py",
    ),
    Mutation("envcheck/checks/engine.py", "elif blocked:", "elif not blocked:", "test_engine.py"),
    Mutation(
        "envcheck/checks/engine.py",
        "return not at_cause or not at_effect or at_effect <= at_cause",
        "return True",
        "test_engine.py",
    ),
    Mutation(
        "envcheck/checks/engine.py",
        'elif (cause.outcome, effect.outcome) != ("warn", "warn"):',
        'elif cause.outcome != "warn":',
        "test_engine.py",
    ),
    # causes and remedies
    Mutation(
        "envcheck/findings/causes.py",
        "if missing := self.parameters() - params.keys():",
        "if missing := params.keys() - self.parameters():",
        "test_causes.py",
    ),
    Mutation(
        "envcheck/findings/commands.py",
        "elif first and _NEVER_FIRST & one.effects:",
        "elif not first and _NEVER_FIRST & one.effects:",
        "test_remedy_commands.py",
    ),
    Mutation(
        "envcheck/findings/commands.py",
        'if "resets" in one.effects and not before & {"evidence", "mode"}:',
        'if "resets" in one.effects and not before:',
        "test_remedy_commands.py",
    ),
    # a fleet's groups and outliers
    Mutation(
        "envcheck/fleet/groups.py",
        'kind=" ".join([result.code, cause.key, *shared, *cases]),',
        "kind=result.code,",
        "test_fleet_judging.py",
    ),
    Mutation(
        "envcheck/fleet/rate_outliers.py", "LEAST = 0.03", "LEAST = 0.3", "test_fleet_outliers.py"
    ),
    Mutation(
        "envcheck/fleet/attribute_outliers.py",
        "MAJORITY = 0.75",
        "MAJORITY = 0.4",
        "test_fleet_outliers.py",
    ),
    # attributes, profiles and differences
    Mutation(
        "envcheck/attributes/bounds.py",
        '">": have > limit,',
        '">": have >= limit,',
        "test_profiles.py",
    ),
    Mutation(
        "envcheck/attributes/difference.py",
        "if abs(change) <= bound:",
        "if change <= bound:",
        "test_diff.py",
    ),
    # Tensor Cores
    Mutation(
        "envcheck/tensorcores/rates.py",
        "if done >= MARGIN * ceiling:",
        "if done <= MARGIN * ceiling:",
        "test_tensor_rates.py",
    ),
    Mutation(
        "envcheck/tensorcores/signatures.py",
        'if {"tensor", "not tensor"} <= words:',
        'if {"tensor"} <= words:',
        "test_tensor_signatures.py",
    ),
    Mutation(
        "envcheck/tensorcores/hardware.py",
        "if own and sum(own.values()) > sum(cores.values()):",
        "if own:",
        "test_tensor_hardware.py",
    ),
    # what fits a machine
    Mutation(
        "install/fit/image_rules.py",
        "if driver >= Version(release.min_driver):",
        "if driver > Version(release.min_driver):",
        "test_image_fit.py",
    ),
    # foreign text and redaction
    Mutation(
        "envcheck/json_text.py",
        "    except RecursionError:",
        "    except ZeroDivisionError:",
        "test_snapshot.py",
    ),
    Mutation(
        "install/registry/documents.py",
        'if (parsed.os, parsed.architecture) != ("linux", wanted):',
        "if parsed.architecture != wanted:",
        "test_image_documents.py",
    ),
    Mutation(
        "envcheck/collector/redact.py",
        "homes = [re.escape(home) for home in homes if len(home) > 1]",
        "homes = []",
        "test_redact.py",
    ),
    Mutation(
        "install/fit/gpu_rules.py",
        "if machine.driver_version >= Version(release.driver):",
        "if machine.driver_version > Version(release.driver):",
        "test_fit_gpu.py",
    ),
)


def survives(mutation: Mutation, copy: Path) -> bool:
    """Whether the test file passes with the mutation. Raises ValueError if it cannot be applied."""
    path = copy / mutation.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise ValueError(
            f"{mutation.file}: {mutation.old!r} occurs {text.count(mutation.old)} times"
        )
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        return passes(mutation.tests, copy)
    finally:
        path.write_text(text, encoding="utf-8")


def passes(tests: str, copy: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", f"tests/unit/{tests}"]
    return subprocess.run(command, cwd=copy, capture_output=True).returncode == 0


def main(numbers: list[int]) -> int:
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "envcheck"
        shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=LEFT_OUT)
        for tests in dict.fromkeys(mutation.tests for mutation in MUTATIONS):
            if not passes(tests, copy):
                print(f"{tests} fails without any mutation")
                return 2
        for number, mutation in enumerate(MUTATIONS, 1):
            if numbers and number not in numbers:
                continue
            green = survives(mutation, copy)
            missed += green
            word = "MISSED" if green else "red   "
            print(
                f"{number:2} {word} {mutation.file}: {mutation.new.strip()}  ({mutation.tests})",
                flush=True,
            )
    print(f"{missed} of {len(numbers) or len(MUTATIONS)} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]]))
