"""What the doctor makes of real environments that were broken, and whether what it prints repairs them:

    .venv/bin/python benchmarks/broken_environments.py [--only WORDS]

Each row of broken_environments.toml breaks a copy (of hard links) of a real environment: TensorFlow 1.15,
2.15 and the newest, PyTorch, JAX, all for CPUs (tests/functional/real_targets.py makes them; about 5 GB).
The doctor looks at it as its user would start it; then the commands of the finding that names the cause are
run as printed, and the framework has to work. A line for each: n where the cause is named, r where the
commands repaired it. Needs the public index; takes some seconds a row.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import tomli

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests" / "functional"))

from real_targets import real_target  # noqa: E402

TABLE = Path(__file__).with_suffix(".toml")
ENVCHECK = Path(sys.executable).with_name("envcheck")
SECONDS = 1800  # a framework may have to be fetched again
# Commands that would change this machine, and not the environment, are not run.
OF_THE_MACHINE = re.compile(
    r"\b(sudo|apt|apt-get|dnf|reboot|systemctl|docker|podman)\b|\$\{?[A-Z_]+:?\?"
)
WORKS = {
    "tensorflow-1.15": "import tensorflow as tf; tf.compat.v1.Session().run(tf.matmul([[1.0]], [[2.0]]))",
    "tensorflow": "import tensorflow as tf; tf.matmul([[1.0]], [[2.0]]).numpy()",
    "torch": "import torch; torch.ones(2, 2) @ torch.ones(2, 2)",
    "jax": "import jax.numpy as np; (np.ones((2, 2)) @ np.ones((2, 2))).block_until_ready()",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="WORDS", default="", help="the rows whose name matches")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="what was printed, and what it did"
    )
    options = parser.parse_args()
    rows = [
        row
        for row in tomli.loads(TABLE.read_text())["broken"]
        if re.search(options.only, f"{row['target']}: {row['name']}")
    ]
    counts = [0, 0, 0]
    for row in rows:
        with tempfile.TemporaryDirectory() as scratch:
            marks, words = _tried(row, Path(scratch))
        for place, mark in enumerate(marks):
            counts[place] += mark != "-"
        print(
            f"{marks} {row['target']}: {row['name']}: {words if options.verbose else words[:100]}"
        )
    print(f"{len(rows)} environments: {counts[0]} found, {counts[1]} named, {counts[2]} repaired")
    return 0


def _tried(row: dict[str, Any], scratch: Path) -> tuple[str, str]:
    """The marks f, n, r, and what the doctor found."""
    target, work = real_target(row["target"]), scratch / "work"
    home = scratch / "env"
    subprocess.run(["cp", "-al", str(target), str(home)], check=True)
    work.mkdir()
    (site,) = home.glob("lib/python3*/site-packages")
    places = {
        "PY": str(home / "bin" / "python"),
        "SITE": str(site),
        "WORK": str(work),
        "TARGETS": str(target.parent),
    }
    _shell(row["breaks"], {**os.environ, **places}, scratch, check=True)
    variables = {
        name: re.sub(r"\$([A-Z]+)", lambda found: places[found[1]], value)
        for name, value in row.get("variables", {}).items()
    }
    environ = {**os.environ, **variables, "PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    findings = _findings(home, work, environ, row.get("limit", "true"))
    right = [one for one in findings if re.search(row["says"], _words(one), re.I | re.S)]
    if not right:
        return ("f--" if findings else "---"), "; ".join(one["headline"] for one in findings)
    commands = [
        command
        for one in right[:1]
        for command in (one.get("remedy") or {}).get("commands", [])
        if not OF_THE_MACHINE.search(command)
    ]
    usual = WORKS.get(row["target"]) or WORKS[row["target"].partition("-")[0]]
    works = f'"{places["PY"]}" -c "$WORKS" >/dev/null'
    ended = _shell(
        "\n".join([row.get("limit", "true"), *commands, works]),
        {**environ, "WORKS": row.get("works", usual)},
        work,
    )
    words = [
        right[0]["message"],
        *commands,
        ended.stderr.strip()[-300:] if ended.returncode else "",
    ]
    return ("fn-" if ended.returncode else "fnr"), " | ".join(words)


def _findings(home: Path, work: Path, environ: dict[str, str], limit: str) -> list[dict[str, Any]]:
    """What fails or warns of the environment, the first first."""
    doctor = f"'{ENVCHECK}' doctor --level=quick --format=json --target '{home}'"
    ended = _shell(f"{limit}; {doctor}", environ, work)
    try:
        report = json.loads(ended.stdout)
    except ValueError:
        raise SystemExit(f"the doctor failed: {ended.stderr}") from None
    return [
        finding
        for result in report["results"]
        if result["outcome"] in ("fail", "warn") and result["code"] != "PCI-001"
        for finding in result["findings"]
    ]


def _words(finding: dict[str, Any]) -> str:
    subjects = (subject["text"] for subject in finding.get("subjects", []))
    return " ".join([finding["headline"], finding["message"], *subjects])


def _shell(
    text: str, environ: dict[str, str], cwd: Path, check: bool = False
) -> subprocess.CompletedProcess[str]:
    shell = shutil.which("bash") or "sh"
    return subprocess.run(
        [shell, "-ec" if check else "-c", text],
        env=environ,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        check=check,
    )


if __name__ == "__main__":
    sys.exit(main())
