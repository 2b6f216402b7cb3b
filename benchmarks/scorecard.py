"""How much of what is wrong envcheck's doctor sees, and how often it cries wolf:

    .venv/bin/python benchmarks/scorecard.py [--write] [--only WORDS]

Runs the command line on made-up machines with a fault each (tests/faulty), holds the public reports of
tests/corpus against what is told of them, and looks at machines on which all is well. Takes some minutes;
needs gcc and name spaces (as root, or where users may make them). --write writes docs/scorecard.md and
README's totals.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
for folder in ("", "unit", "functional"):
    sys.path.insert(0, str(REPOSITORY / "tests" / folder))

from faulty import card, themes  # noqa: E402
from faulty.score import total  # noqa: E402
from world.enter import NoNamespaces  # noqa: E402
from world.libraries import NoCompiler  # noqa: E402

PAGE = REPOSITORY / "docs" / "scorecard.md"
README = REPOSITORY / "README.md"
TOTALS = re.compile(r"(<!-- scorecard -->\n).*?(<!-- end of scorecard -->)", re.S)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--write", action="store_true", help="write docs/scorecard.md and README's totals"
    )
    parser.add_argument(
        "--only", metavar="WORDS", help="the faults whose name or theme matches, and nothing else"
    )
    options = parser.parse_args()
    chosen = [
        fault
        for fault in themes.all_faults()
        if options.only is None or re.search(options.only, f"{fault.theme}: {fault.name}")
    ]
    try:
        taken = (
            card.take(chosen, _progress)
            if options.only is None
            else card.faults_alone(chosen, _progress)
        )
    except (NoNamespaces, NoCompiler) as error:
        sys.stderr.write(f"scorecard: the made-up machines cannot be made here: {error}\n")
        return 4
    text = card.page(taken)
    print(text[text.index("## Faults") :])
    if options.write and options.only is None:
        PAGE.write_text(text)
        README.write_text(
            TOTALS.sub(lambda found: found[1] + totals(taken) + found[2], README.read_text())
        )
    return 0


def totals(taken: card.Card) -> str:
    """README's lines."""
    faults, reports = total(taken.themes), total(taken.report_rows)
    machines = sum(group.machines for group in taken.healthy)
    return (
        "| what | | found and named | remedy | misled |\n|---|---|---|---|---|\n"
        f"| faults, put below envcheck | {faults.faults} | {faults.named} | {faults.remedied} "
        f"| {faults.misleading} |\n"
        f"| public problem reports | {reports.faults} | {reports.named} | {reports.remedied} "
        f"| {reports.misleading} |\n"
        f"| healthy machines | {machines} | | | {taken.false_failures} |\n"
    ) + "".join(
        f"| {one.name}, at first sight, {one.set} set "
        f"| {one.cases} | {one.cause} | {one.remedy} | {one.misled} |\n"
        for one in taken.first
    )


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done}/{of} ")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
