"""`envcheck fleet collect` beside a bare playbook that runs the same collector by Ansible's module `script`.

    .venv/bin/python benchmarks/fleet_ansible.py [--hosts 25 50 100] [--forks 20] [--repeat 2]

The hosts are the tests' own (a real sshd each, in namespaces), with one Python; both ask the same
hosts, in turn. What is told: seconds, their ratio, and what a host costs with more of them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "tests" / "functional"), str(REPOSITORY)]

BARE = """\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.script: {script} --level quick
      args:
        executable: python3
      register: told
    - ansible.builtin.copy:
        content: "{{{{ told.stdout }}}}"
        dest: {answers}/{{{{ inventory_hostname }}}}.json
      delegate_to: localhost
      vars:
        ansible_connection: local
        ansible_python_interpreter: {python}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="+", default=[25, 50, 100])
    parser.add_argument("--forks", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--kept", action="store_true", help="the playbook writes each answer, too")
    options = parser.parse_args()
    import ssh_hosts  # type: ignore[import-not-found]

    python = ssh_hosts.python_of(f"3.{sys.version_info[1]}")
    print(f"{'hosts':>5} {'envcheck':>9} {'bare':>9} {'ratio':>6} {'a host':>8}")
    for count in options.hosts:
        hosts = [
            ssh_hosts.Host(f"gpu{n:03d}", python=python, groups=("all_of_them",))
            for n in range(1, count + 1)
        ]
        with ssh_hosts.serve_hosts(hosts) as made:
            ours, bare = [], []
            for _ in range(options.repeat):
                bare.append(timed(made, options, envcheck=False))
                ours.append(timed(made, options, envcheck=True))
            one, other = statistics.median(ours), statistics.median(bare)
            ratio, each = one / other, 1000 * one / count
            print(f"{count:5} {one:7.1f} s {other:7.1f} s {ratio:6.2f} {each:5.0f} ms", flush=True)


def timed(made: Any, options: argparse.Namespace, *, envcheck: bool) -> float:
    """Seconds of one of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inventory = ["-i", str(made.inventory), "--forks", str(options.forks)]
        if envcheck:
            argv = [sys.executable, "-m", "envcheck", "fleet", "collect", *inventory, str(folder)]
            argv += ["--level", "quick", "--deadline", "600"]
        else:
            argv = ["ansible-playbook", *inventory, str(playbook(folder, options.kept))]
        began = time.monotonic()
        done = subprocess.run(
            argv,
            env={**os.environ, **made.variables},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        took = time.monotonic() - began
        if done.returncode:
            raise SystemExit(f"{argv[0]}: {(done.stderr or done.stdout)[-2000:]}")
    return took


def playbook(folder: Path, kept: bool) -> Path:
    from envcheck import single_file

    script, answers, book = folder / "collector.py", folder / "answers", folder / "bare.yml"
    script.write_bytes(single_file.build_script({}))
    answers.mkdir()
    text = BARE.format(script=script, answers=answers, python=sys.executable)
    book.write_text(text if kept else text.partition("    - ansible.builtin.copy")[0])
    return book


if __name__ == "__main__":
    main()
